"""Streams, order of messages, exit status, and who ends with whom."""

import json
import os
import signal
import socket
import subprocess
import sys
import time

import psutil
import pytest

from tests.lsp.client import ROOT, at, position
from tests.lsp.conftest import VOUCHED
from tests.lsp.models import NORM, marked


def alive(process):
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def descendants(process):
    return [child.pid for child in psutil.Process(process).children(recursive=True)]


def wait_until(test, seconds=10):
    deadline = time.monotonic() + seconds
    while not test():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_requests_before_initialize_and_after_shutdown_are_refused(start, project):
    client = start("--stdio", "--clientProcessId=1", "--node-ipc")
    early = client.reply(client.start_request("textDocument/hover", {**at("file:///x.py"), "position": position(0, 0)}))
    assert early["error"]["code"] == -32002
    client.initialize(project)
    again = client.reply(client.start_request("initialize", {"processId": None, "rootUri": None, "capabilities": {}}))
    assert again["error"]["code"] == -32600
    unknown = client.reply(client.start_request("textDocument/nothing", {}))
    assert unknown["error"]["code"] == -32601
    assert client.request("shutdown") is None
    late = client.reply(client.start_request("textDocument/hover", {**at("file:///x.py"), "position": position(0, 0)}))
    assert late["error"]["code"] == -32600
    client.notify("exit")
    assert client.process.wait(10) == 0
    assert b"--node-ipc" in b"".join(client.errors)


def test_malformed_messages_are_answered_with_what_is_wrong_and_harm_nobody(start, project):
    client = start()
    wrong = client.reply(client.start_request("initialize", 3))
    assert wrong["error"]["code"] == -32602
    client.initialize(project, options=VOUCHED)

    def error(method, params):
        found = client.reply(client.start_request(method, params))["error"]
        return found["code"], found["message"]

    missing = (
        "textDocument/hover: required field missing @ .params.text_document; required field missing @ .params.position"
    )
    assert error("textDocument/hover", {}) == (-32602, missing)
    for params in (None, 5, [1], {**at("file:///x.py"), "position": {"line": "x"}}):
        assert error("textDocument/hover", params)[0] == -32602
    client.notify("textDocument/didOpen", {"textDocument": 7})
    client.notify("textDocument/didChange", {"x": 1})
    client.notify("textDocument/didClose", at("file:///never.py"))
    client.change("file:///never.py", "x", 2)
    for body, code in ((b"hello", -32700), (b"[{}]", -32600), (b"5", -32600)):
        client._outgoing.put(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        assert client.reply(None)["error"]["code"] == code
        del client._replies[None]
    name = client.open(project / "norm.py", NORM)
    client.wait_for_hints(name)
    assert client.shutdown() == 0
    assert not any("internal error" in line for line in client.logged())
    assert b"dropped a notification: textDocument/didOpen" in b"".join(client.errors)


def test_exit_without_shutdown_and_a_closed_pipe_end_with_status_1(start, project):
    told, hung = start(), start()
    told.initialize(project)
    told.notify("exit")
    hung.initialize(project)
    hung.process.stdin.close()
    assert (told.process.wait(10), hung.process.wait(10)) == (1, 1)


def test_everything_ends_when_the_server_or_its_editor_is_killed(start, project):
    editor = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    watched, killed = start(), start()
    watched.initialize(project, options=VOUCHED, process=editor.pid)
    killed.initialize(project, options=VOUCHED)
    below = []
    for client in (watched, killed):
        client.open(project / "loop.py", marked("while True: pass"))
        wait_until(lambda client=client: len(descendants(client.process.pid)) >= 2, 30)
        below += descendants(client.process.pid)
    editor.kill()
    editor.wait()
    killed.process.send_signal(signal.SIGKILL)
    assert watched.process.wait(10) == 1
    wait_until(lambda: not any(map(alive, below)))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_server_and_all_below_it_while_its_editor_is_silent(number, start, project):
    client = start()
    client.initialize(project, options=VOUCHED)
    client.open(project / "loop.py", marked("while True: pass"))
    wait_until(lambda: len(descendants(client.process.pid)) >= 2, 30)
    below = descendants(client.process.pid)
    client.process.send_signal(number)
    assert client.process.wait(5) == 1
    wait_until(lambda: not any(map(alive, below)))


def test_shutdown_answers_when_every_process_is_gone(start, project):
    client = start()
    client.initialize(project, options=VOUCHED)
    client.open(project / "loop.py", marked("while True: pass"))
    wait_until(lambda: len(descendants(client.process.pid)) >= 2, 30)
    below = descendants(client.process.pid)
    client.request("shutdown")
    assert not any(map(alive, below))
    client.notify("exit")
    assert client.process.wait(10) == 0


def test_shutdown_ends_what_still_waits_for_an_answer(start, observed):
    client = start()
    client.initialize(observed.parent, options=VOUCHED)
    name = client.open(observed)
    client.wait_for_diagnostics(name)
    waiting = client.start_request("workspace/executeCommand", {"command": "topos.openPlan", "arguments": [name]})
    assert client.shutdown() == 0
    assert client.reply(waiting)["error"]["code"] == -32800


def test_tcp_serves_one_editor_on_loopback(tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(tmp_path)}
    command = [sys.executable, "-m", "topos_lsp", "--tcp", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, env=environment, text=True) as server:
        try:
            line = server.stderr.readline()
            port = int(line.rpartition(":")[2])
            with socket.create_connection(("127.0.0.1", port)) as connection:
                body = json.dumps(
                    {"jsonrpc": "2.0", "id": 1, "method": "initialize",
                     "params": {"processId": None, "rootUri": None, "capabilities": {}}}
                ).encode()  # fmt: skip
                connection.sendall(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
                with connection.makefile("rb") as stream:
                    length = int(stream.readline().partition(b":")[2])
                    while stream.readline() != b"\r\n":
                        pass
                    assert json.loads(stream.read(length))["result"]["serverInfo"]["name"] == "topos"
            assert server.wait(10) == 1
        finally:
            server.kill()


def test_what_user_code_prints_or_reads_never_reaches_the_protocol(start, project):
    client = start()
    client.initialize(project, options=VOUCHED)
    noise = (
        "import os, sys\n"
        "os.write(1, b'Content-Length: 5\\r\\n\\r\\nxxxxx'); print('y' * 100_000, flush=True); os.write(2, b'z' * 1000)\n"
        "assert sys.stdin.read() == ''\n"
    )
    name = client.open(project / "noise.py", noise + NORM)
    client.wait_for_hints(name)
    assert client.shutdown() == 0


def test_a_refused_command_is_told_in_its_answer_and_as_no_bug(start, project):
    client = start()
    client.initialize(project, options={"untrustedWorkspace": True})
    path = project / "norm.py"
    name = client.open(path, NORM)

    def refused(command, *arguments):
        reply = client.reply(
            client.start_request("workspace/executeCommand", {"command": command, "arguments": list(arguments)})
        )
        return reply["error"]["message"]

    assert refused("topos.openPlan", name) == "the viewer reads files, and this buffer has none; save it first"
    path.write_text(NORM)
    assert "not trusted" in refused("topos.openPlan", name)
    assert refused("topos.emit", name, "zz") == "zz has no plan; trace it first"
    assert "'topos.nothing' is not defined" in refused("topos.nothing")
    for nameless in ({"command": "topos.retrace"}, {"command": "topos.retrace", "arguments": []}):
        reply = client.reply(client.start_request("workspace/executeCommand", nameless))
        assert reply["error"]["code"] == -32602
    assert refused("topos.restartAgent", 5) == "5 is no open Python file"
    assert refused("topos.toggleHints", "x").startswith("no hints are of the kind 'x'; there are taken, declined")
    client.wait(lambda: sum("topos: refused: " in line for line in client.logged()) == 8)
    assert not any("internal error" in line for line in client.logged())
    assert client.shutdown() == 0
    assert b"Traceback" not in b"".join(client.errors)
