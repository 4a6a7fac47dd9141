"""A language client over plain pipes: it sends what a profile's editor would, and keeps what the server sends."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
SECONDS = 60.0

FULL = {
    "general": {"positionEncodings": ["utf-16"]},
    "workspace": {
        "configuration": True,
        "didChangeConfiguration": {"dynamicRegistration": True},
        "didChangeWatchedFiles": {"dynamicRegistration": True},
        "workspaceFolders": True,
        "applyEdit": True,
        "workspaceEdit": {"documentChanges": True},
        "inlayHint": {"refreshSupport": True},
        "codeLens": {"refreshSupport": True},
        "diagnostics": {"refreshSupport": True},
    },
    "textDocument": {
        "publishDiagnostics": {
            "relatedInformation": True, "versionSupport": True, "codeDescriptionSupport": True, "dataSupport": True,
            "tagSupport": {"valueSet": [1, 2]},
        },
        "hover": {"contentFormat": ["markdown", "plaintext"]},
        "inlayHint": {"dynamicRegistration": True},
        "codeLens": {},
        "codeAction": {
            "codeActionLiteralSupport": {"codeActionKind": {"valueSet": ["", "quickfix", "refactor", "source"]}},
            "dataSupport": True, "resolveSupport": {"properties": ["edit"]},
        },
        "documentSymbol": {"hierarchicalDocumentSymbolSupport": True},
        "diagnostic": {},
    },
    "window": {"workDoneProgress": True, "showDocument": {"support": True}},
}  # fmt: skip


class Patience:
    """Seconds that a wait may take. Between two looks at it a second counts at most: a machine that stood still is not the server's."""

    def __init__(self, seconds):
        self._left = seconds
        self._looked = time.monotonic()

    def left(self):
        """Gives what is left."""
        now = time.monotonic()
        self._left -= min(now - self._looked, 1.0)
        self._looked = now
        return self._left


class Client:
    """One editor with one server.

    `notifications` holds (method, params) in order of arrival; requests of the server are answered with null, with what
    `answers` has for their method (a value, or a function of the params).
    """

    def __init__(self, home, *arguments, environment=None, answers=None, command=None):
        variables = {**os.environ, "XDG_CONFIG_HOME": str(home / "config"), "XDG_CACHE_HOME": str(home / "cache")}
        variables["PYTHONPATH"] = str(ROOT)
        variables.update(environment or {})
        self.process = subprocess.Popen(
            command or [sys.executable, "-m", "topos_lsp", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=home,
            env=variables,
        )
        self.answers = {"workspace/configuration": lambda params: [None] * len(params["items"]), **(answers or {})}
        self.notifications = []
        self.arrivals = []  # when each of them came, in seconds
        self.requests = []
        self.errors = []
        self._number = 0
        self._replies = {}
        self._since = {}
        self._arrived = threading.Condition()
        self._outgoing = queue.SimpleQueue()
        self._threads = [
            threading.Thread(target=target, daemon=True) for target in (self._read, self._write, self._read_errors)
        ]
        for thread in self._threads:
            thread.start()

    # -- sending

    def send(self, message):
        """Sends one message as it is."""
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._outgoing.put(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))

    def notify(self, method, params=None):
        """Sends a notification."""
        self.send({"method": method, "params": params})

    def start_request(self, method, params=None):
        """Sends a request and gives its number."""
        self._number += 1
        self.send({"id": self._number, "method": method, "params": params})
        return self._number

    def reply(self, number, seconds=SECONDS):
        """Waits for the whole reply to a request."""
        self.wait(lambda: number in self._replies, seconds, f"a reply to request {number}")
        return self._replies[number]

    def request(self, method, params=None, seconds=SECONDS):
        """Sends a request and gives its result."""
        reply = self.reply(self.start_request(method, params), seconds)
        assert "error" not in reply, reply["error"]
        return reply["result"]

    # -- the usual conversation

    def initialize(self, folder=None, capabilities=None, options=None, *, process=None, folders=None):
        """Initialises; gives the server's capabilities."""
        roots = folders if folders is not None else [folder] if folder is not None else []
        result = self.request(
            "initialize",
            {
                "processId": process,
                "rootUri": uri(roots[0]) if roots else None,
                "workspaceFolders": [{"uri": uri(each), "name": each.name} for each in roots] or None,
                "capabilities": FULL if capabilities is None else capabilities,
                "initializationOptions": options,
            },
        )
        self.notify("initialized", {})
        return result["capabilities"]

    def open(self, path, text=None, version=1):
        """Opens a buffer and gives its URI."""
        name = path if isinstance(path, str) else uri(path)
        text = path.read_bytes().decode() if text is None else text
        self._since[name] = len(self.notifications)
        self.notify(
            "textDocument/didOpen",
            {"textDocument": {"uri": name, "languageId": "python", "version": version, "text": text}},
        )
        return name

    def change(self, name, text, version):
        """Changes a buffer's whole text."""
        self.notify(
            "textDocument/didChange",
            {"textDocument": {"uri": name, "version": version}, "contentChanges": [{"text": text}]},
        )

    def hover(self, name, line, character):
        """Asks for a hover; gives its text, or None."""
        found = self.request("textDocument/hover", {**at(name), "position": position(line, character)})
        return None if found is None else found["contents"]["value"]

    def hints(self, name, last=10_000):
        """Asks for every inlay hint; gives label by line."""
        found = self.request("textDocument/inlayHint", {**at(name), "range": span(0, 0, last, 0)})
        lines = [hint["position"]["line"] for hint in found]
        assert len(lines) == len(set(lines)), "more than one hint on a line"
        return {hint["position"]["line"]: hint["label"] for hint in found}

    def diagnostics(self, name):
        """Gives the diagnostics that were pushed last for a buffer since it was opened, or None."""
        since = self.notifications[self._since.get(name, 0) :]
        pushed = [p for method, p in since if method == "textDocument/publishDiagnostics" and p["uri"] == name]
        return pushed[-1] if pushed else None

    def wait_for_diagnostics(self, name, test=bool, seconds=SECONDS):
        """Waits until the last pushed diagnostics of a buffer pass a test; gives them."""

        def passes():
            pushed = self.diagnostics(name)
            return pushed is not None and test(pushed["diagnostics"])

        self.wait(passes, seconds, f"diagnostics of {name}, not {self.diagnostics(name)}")
        return self.diagnostics(name)["diagnostics"]

    def wait_for_hints(self, name, test=bool, seconds=SECONDS):
        """Asks for hints again and again until they pass a test."""
        patience = Patience(seconds)
        while not test(found := self.hints(name)):
            assert patience.left() > 0, found
            time.sleep(0.02)
        return found

    def wait_for_lens(self, name, text, seconds=SECONDS):
        """Asks for lenses again and again until there are some and all of them hold a text."""

        def held():
            lenses = self.request("textDocument/codeLens", at(name))
            return lenses and all(text in lens["command"]["title"] for lens in lenses)

        self.wait_for(held, seconds)

    def wait_for(self, test, seconds=SECONDS):
        """Looks again and again until a test passes that nothing from the server announces."""
        patience = Patience(seconds)
        while not test():
            assert patience.left() > 0, "nothing announced it, and it did not come"
            time.sleep(0.02)

    def wait(self, test, seconds=SECONDS, what="what was expected"):
        """Waits until something that arrives makes a test true."""
        patience = Patience(seconds)
        with self._arrived:
            while not test():
                left = patience.left()
                dead = self.process.poll() is not None
                if left <= 0 or dead:
                    said = b"".join(self.errors).decode()
                    raise AssertionError(f"{what} did not come; the server {'ended' if dead else 'is silent'}: {said}")
                self._arrived.wait(min(left, 0.2))

    def logged(self):
        """Gives what the server told the editor's log."""
        return [params["message"] for method, params in list(self.notifications) if method == "window/logMessage"]

    def shutdown(self):
        """Shuts down and exits; gives the exit status."""
        self.request("shutdown")
        self.notify("exit")
        return self.process.wait(SECONDS)

    def close(self):
        """Ends the server, however it stands."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._outgoing.put(None)
        for thread in self._threads:
            thread.join(10)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            with contextlib.suppress(BrokenPipeError):
                stream.close()

    # -- threads

    def _write(self):
        while (data := self._outgoing.get()) is not None:
            try:
                self.process.stdin.write(data)
                self.process.stdin.flush()
            except (BrokenPipeError, ValueError):
                return

    def _read_errors(self):
        for line in self.process.stderr:
            self.errors.append(line)

    def _read(self):
        stream = self.process.stdout
        while True:
            length = 0
            while (header := stream.readline()) not in (b"\r\n", b""):
                if header.lower().startswith(b"content-length:"):
                    length = int(header.partition(b":")[2])
            if not header:
                return
            self._take(json.loads(stream.read(length)))

    def _take(self, message):
        with self._arrived:
            if "method" not in message:
                self._replies[message.get("id")] = message
            elif "id" in message:
                self.requests.append((message["method"], message.get("params")))
                answer = self.answers.get(message["method"])
                result = answer(message["params"]) if callable(answer) else answer
                self.send({"id": message["id"], "result": result})
            else:
                self.arrivals.append(time.perf_counter())
                self.notifications.append((message["method"], message["params"]))
            self._arrived.notify_all()


def uri(path):
    """Gives a path's URI."""
    return Path(path).as_uri()


def at(name):
    """Names a buffer in params."""
    return {"textDocument": {"uri": name}}


def position(line, character):
    """Makes a position."""
    return {"line": line, "character": character}


def span(line, character, end_line, end_character):
    """Makes a range."""
    return {"start": position(line, character), "end": position(end_line, end_character)}
