"""The agent as its clients see it: commands, the language server and the viewer all run user code through this.

    with Agent(root) as agent:                                  # starts the warm process at once, in the background
        reply = agent.trace("examples/seed_convolution.py")     # or text="..." for an unsaved buffer
        for entry in reply.get("entries", []):                  # {"target", "document"} or {"target", "error"}
            ...
        reply["output"]                                         # what user code printed, in the middle shortened
        agent.replan("examples/seed_convolution.py:main", {"ignore": [0]})["document"]      # what-if: no new trace
        agent.emit("examples/seed_convolution.py:main")["text"]
        agent.run("examples/seed_convolution.py:main", compare=True)["result"]

Every reply is a dict as in `docs/formats.md`, already checked; whatever went wrong with the user's code, its time, its memory or
its process is `reply["error"]` (for `trace` also per entry), never an exception. What is raised: `Cancelled` where
somebody called `cancel()`, and `ConfigurationError` or `TraceError` where the interpreter itself cannot be used.

Each `trace` runs in a process of its own, forked from the warm one, which then owns the targets of that file: `replan`, `emit`
and `run` go to it. A failed trace leaves the last good owner in place, so the last good plan can still be asked. An owner that
died since is made again from its last trace. Methods block, and may be called from any thread (`asyncio.to_thread`); requests for
different files run side by side. `cancel(path)` returns at once and ends the process of that file's running request.
"""

from __future__ import annotations

import itertools
import os
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from topos_core.errors import ConfigurationError, ToposError
from topos_core.session.conversation import Cancelled, Conversation, Lost, Progress
from topos_core.session.limits import Limits
from topos_core.session.messages import failure
from topos_core.session.questions import Questions
from topos_core.session.sources import read_source
from topos_core.session.warm_process import WarmProcess

__all__ = ["Agent", "Cancelled", "Progress"]

_MAX_OWNERS: Final = 16


class Agent(Questions):
    """A warm process that runs the user's code for one project root and one interpreter.

    Args:
        root: The project's root; paths in requests and replies are relative to it.
        interpreter: The Python that runs user code; the one running topos by default (`workspace.find_interpreter`).
        limits: Time, memory, output and network of every request.
        warming: Whether the warm process imports, after a trace that did, what torch and its like are made of, and what topos itself
            imports late: for who traces again and again.
    """

    def __init__(
        self,
        root: str | Path,
        *,
        interpreter: str | None = None,
        limits: Limits | None = None,
        warming: bool = False,
    ) -> None:
        self.root = os.path.abspath(root)
        self.limits = limits or Limits()
        self.interpreter = interpreter or sys.executable
        self._identities = itertools.count(1)
        self._lock = threading.Lock()
        self._files: dict[str, _File] = {}
        self._warm: WarmProcess | None = None
        self._warming = warming
        self._closed = False
        with self._lock:
            self._start()

    def hello(self) -> dict[str, Any]:
        """Waits for the warm process and gives its `version python executable packages network network_reason process`.

        Raises:
            ConfigurationError: The interpreter cannot be started.
            TraceError: TP409, it is too old or lacks NumPy.
        """
        return self._running().hello()

    def prepare(self, path: str, text: str) -> None:
        """Has a process ready for a trace of a text that may follow: forked, the text parsed, nothing of it run.

        Raises:
            Cancelled, ConfigurationError, TraceError: As in `request`.
        """
        file = self._file(path)
        ticket = file.cancels
        with file.turn:
            try:
                worker = self._worker(file, ticket)
                try:
                    reply = worker.ask({"do": "prepare", "path": path, "text": text}, self.limits.seconds, None)
                finally:
                    self._leave(file, worker)
            except Lost as lost:
                self._drop(lost.warm)
                return  # the trace starts another one
            with self._lock:
                if self._closed or "error" in reply:
                    worker.kill("released")
                else:
                    file.ready = worker
                    self._files.setdefault(file.path, file)

    def request(
        self, message: Mapping[str, Any], timeout: float | None = None, progress: Progress | None = None
    ) -> dict[str, Any]:
        """Sends one request and waits for its checked reply; `timeout` in seconds, the limits' time by default.

        Raises:
            Cancelled: `cancel` or `close` was called meanwhile.
            ConfigurationError: The interpreter cannot be started, or no traced target has that name (TP505).
            TraceError: TP409, the interpreter is too old or lacks NumPy.
        """
        seconds = self.limits.seconds if timeout is None else timeout
        ask = self._trace if message["do"] == "trace" else self._ask_owner
        try:
            return ask(message, seconds, progress)
        except Lost as lost:  # somebody killed the warm process; user code that does so does it again
            self._drop(lost.warm)
            try:
                return ask(message, seconds, progress)
            except Lost as again:
                self._drop(again.warm)
                text = "the process that watches the code was killed from outside, twice; the code itself may do so"
                return {"error": failure("TP407", text), "output": ""}

    def cancel(self, path: str | None = None) -> None:
        """Ends the running request of a file, or all of them; they raise `Cancelled`. Does not wait."""
        with self._lock:
            files = list(self._files.values()) if path is None else [self._files.get(self._key(path))]
            for file in files:
                if file is not None:
                    file.cancels += 1
                    for worker in file.running:
                        worker.kill("cancelled")

    def release(self, path: str) -> None:
        """Ends the process that owns a file's targets."""
        with self._lock:
            file = self._files.pop(self._key(path), None)
            for worker in file.workers() if file is not None else ():
                worker.kill("released")

    def close(self) -> None:
        """Ends everything that was started, with its children; running requests raise `Cancelled`."""
        with self._lock:
            self._closed = True
            warm, self._warm = self._warm, None
            for file in self._files.values():
                for worker in file.workers():
                    worker.kill("cancelled")
            self._files.clear()
        if warm is not None:
            warm.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _trace(self, message: Mapping[str, Any], seconds: float, progress: Progress | None) -> dict[str, Any]:
        file = self._file(message["path"])
        ticket = file.cancels
        message = {**message, "text": _text(file.path, message)}  # an owner made again must run what was run before
        with file.turn:
            worker = self._worker(file, ticket)
            try:
                reply = worker.ask(message, seconds, progress)
            except BaseException:
                worker.kill("cancelled")
                raise
            finally:
                self._leave(file, worker)
            targets = {entry["target"] for entry in reply.get("entries", []) if "document" in entry}
            modules = reply.pop("modules", [])
            warm = self._warm
            if targets and self._warming and warm is not None:
                warm.warm(modules)
            if not targets:
                worker.kill("released")
                return reply
            with self._lock:
                previous, file.owner = file.owner, worker
                file.targets, file.trace, file.used = targets, dict(message), time.monotonic()
                self._files.setdefault(file.path, file)
                self._retire(file)
            if previous is not None:
                previous.kill("released")
            return reply

    def _ask_owner(self, message: Mapping[str, Any], seconds: float, progress: Progress | None) -> dict[str, Any]:
        target = message["target"]
        with self._lock:
            file = next((each for each in self._files.values() if target in each.targets), None)
        if file is None:
            raise ConfigurationError(f"no traced target is called {target!r}; trace its file first", code="TP505")
        ticket = file.cancels
        with file.turn:
            if file.owner is None or not file.owner.alive():
                assert file.trace is not None
                file.owner = None
                again = self._trace(file.trace, self.limits.seconds, None)
                if file.owner is None:
                    return {"error": again.get("error") or _first_error(again)}
            owner = file.owner
            file.used = time.monotonic()
            self._enter(file, owner, ticket)
            try:
                return owner.ask(message, seconds, progress)
            finally:
                self._leave(file, owner)

    def _retire(self, newest: _File) -> None:
        """Ends the owners asked least recently once there are too many."""
        owners = sorted(
            (f for f in self._files.values() if f.owner is not None and f is not newest), key=lambda f: f.used
        )
        for file in owners[: max(0, len(owners) + 1 - _MAX_OWNERS)]:
            if file.owner is not None and not file.running:
                file.owner.kill("released")
                file.owner = None

    def _worker(self, file: _File, ticket: int) -> Conversation:
        """Gives the process that is ready for a file, else a new one."""
        with self._lock:
            worker, file.ready = file.ready, None
        if worker is None or not worker.alive():
            worker = self._running().fork(next(self._identities), file.path)
        self._enter(file, worker, ticket)
        return worker

    def _enter(self, file: _File, worker: Conversation, ticket: int) -> None:
        """Lets `cancel` see a worker; a cancel that came since the request began ends it here."""
        with self._lock:
            if self._closed or file.cancels != ticket:
                worker.kill("cancelled")
                raise Cancelled
            file.running.add(worker)

    def _leave(self, file: _File, worker: Conversation) -> None:
        with self._lock:
            file.running.discard(worker)

    def _running(self) -> WarmProcess:
        with self._lock:
            if self._closed:
                raise Cancelled
            if self._warm is None or not self._warm.alive():
                self._start()
            assert self._warm is not None
            return self._warm

    def _drop(self, warm: WarmProcess) -> None:
        with self._lock:
            if self._warm is warm:
                self._warm = None
        warm.close()

    def _start(self) -> None:
        self._warm = WarmProcess(self.interpreter, self.root, self.limits)

    def _file(self, path: str) -> _File:
        key = self._key(path)
        with self._lock:
            return self._files.setdefault(key, _File(key))

    def _key(self, path: str) -> str:
        return os.path.normpath(os.path.join(self.root, path))


@dataclass(slots=True)
class _File:
    """One file: who owns its targets, who is ready for its next trace, what runs for it, and what was traced last."""

    path: str
    turn: threading.RLock = field(default_factory=threading.RLock)
    owner: Conversation | None = None
    ready: Conversation | None = None
    running: set[Conversation] = field(default_factory=set)
    targets: set[str] = field(default_factory=set)
    trace: dict[str, Any] | None = None
    used: float = 0.0
    cancels: int = 0

    def workers(self) -> set[Conversation]:
        return self.running | {each for each in (self.owner, self.ready) if each is not None}


def _text(path: str, message: Mapping[str, Any]) -> str | None:
    """Gives the text to run: what was asked for, else the file's; None where the worker will say what is wrong with it."""
    text: str | None = message.get("text")
    if text is not None or not path.endswith(".py"):
        return text
    try:
        return read_source(path)
    except ToposError:
        return None


def _first_error(reply: Mapping[str, Any]) -> dict[str, Any]:
    found = next((entry["error"] for entry in reply.get("entries", []) if "error" in entry), None)
    return found or failure("TP408", "the file has no entry any more")
