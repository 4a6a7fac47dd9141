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

import contextlib
import itertools
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, Self

import topos_core
from topos_core.errors import ConfigurationError, TraceError
from topos_core.session import processes
from topos_core.session.limits import MIB, Limits
from topos_core.session.messages import PROTOCOL, Decoder, MessageError, check_reply, encode, failure
from topos_core.session.places import place_in_stack, position
from topos_core.session.version import VERSION

Progress = Callable[[str, int, int], None]

_START_SECONDS: Final = 60.0
_END_SECONDS: Final = 2.0
_HANG_UP_SECONDS: Final = 0.3
_MAX_OWNERS: Final = 16


class Cancelled(Exception):
    """Somebody cancelled the request, or closed the agent, while it ran."""


class _Lost(Exception):
    """The warm process is gone, and with it everything that it watched."""

    def __init__(self, supervisor: _Supervisor) -> None:
        super().__init__()
        self.supervisor = supervisor


class Agent:
    """A warm process that runs the user's code for one project root and one interpreter.

    Args:
        root: The project's root; paths in requests and replies are relative to it.
        interpreter: The Python that runs user code; the one running topos by default (`workspace.find_interpreter`).
        limits: Time, memory, output and network of every request.
    """

    def __init__(self, root: str | Path, *, interpreter: str | None = None, limits: Limits | None = None) -> None:
        self.root = os.path.abspath(root)
        self.limits = limits or Limits()
        self.interpreter = interpreter or sys.executable
        self._identities = itertools.count(1)
        self._lock = threading.Lock()
        self._files: dict[str, _File] = {}
        self._supervisor: _Supervisor | None = None
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

    def trace(
        self,
        path: str,
        text: str | None = None,
        *,
        entries: Sequence[str] | None = None,
        specs: Sequence[str | None] | None = None,
        options: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        progress: Progress | None = None,
    ) -> dict[str, Any]:
        """Runs a file and records its entries (all marked ones unless named); gives `entries` and `output`, or `error`."""
        request = {
            "do": "trace", "path": path, "text": text, "entries": _list(entries), "specs": _list(specs),
            "root": self.root, "options": dict(options or {}),
        }  # fmt: skip
        return self.request(request, timeout, progress)

    def replan(
        self, target: str, options: Mapping[str, Any] | None = None, *, timeout: float | None = None
    ) -> dict[str, Any]:
        """Plans a traced target again on the same tape and match pool; gives `document`."""
        return self.request({"do": "replan", "target": target, "options": dict(options or {})}, timeout)

    def emit(
        self,
        target: str,
        options: Mapping[str, Any] | None = None,
        *,
        verify: bool = False,
        timeout: float | None = None,
        progress: Progress | None = None,
    ) -> dict[str, Any]:
        """Emits a traced target as StableHLO; gives `text`, and `verification` where asked for."""
        request = {"do": "emit", "target": target, "options": dict(options or {}), "verify": verify}
        return self.request(request, timeout, progress)

    def run(
        self,
        target: str,
        *,
        timeout: float | None = None,
        progress: Progress | None = None,
        **arguments: Any,
    ) -> dict[str, Any]:
        """Runs a traced target (`backend inputs compare fidelity threads seed cost machine`); gives `result`."""
        return self.request({"do": "run", "target": target, **arguments}, timeout, progress)

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
        except _Lost as lost:  # somebody killed the warm process; user code that does so does it again
            self._drop(lost.supervisor)
            try:
                return ask(message, seconds, progress)
            except _Lost as again:
                self._drop(again.supervisor)
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
            supervisor, self._supervisor = self._supervisor, None
            for file in self._files.values():
                for worker in file.workers():
                    worker.kill("cancelled")
            self._files.clear()
        if supervisor is not None:
            supervisor.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _trace(self, message: Mapping[str, Any], seconds: float, progress: Progress | None) -> dict[str, Any]:
        file = self._file(message["path"])
        ticket = file.cancels
        with file.turn:
            worker = self._fork(file, ticket)
            try:
                reply = worker.ask(message, seconds, progress)
            except BaseException:
                worker.kill("cancelled")
                raise
            finally:
                file.running.discard(worker)
            targets = {entry["target"] for entry in reply.get("entries", []) if "document" in entry}
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
                file.running.discard(owner)

    def _retire(self, newest: _File) -> None:
        """Ends the owners asked least recently once there are too many."""
        owners = sorted(
            (f for f in self._files.values() if f.owner is not None and f is not newest), key=lambda f: f.used
        )
        for file in owners[: max(0, len(owners) + 1 - _MAX_OWNERS)]:
            if file.owner is not None and not file.running:
                file.owner.kill("released")
                file.owner = None

    def _fork(self, file: _File, ticket: int) -> _Worker:
        supervisor = self._running()
        worker = supervisor.fork(next(self._identities), self, file.path)
        self._enter(file, worker, ticket)
        return worker

    def _enter(self, file: _File, worker: _Worker, ticket: int) -> None:
        """Lets `cancel` see a worker; a cancel that came since the request began ends it here."""
        with self._lock:
            if self._closed or file.cancels != ticket:
                worker.kill("cancelled")
                raise Cancelled
            file.running.add(worker)

    def _running(self) -> _Supervisor:
        with self._lock:
            if self._closed:
                raise Cancelled
            if self._supervisor is None or not self._supervisor.alive():
                self._start()
            assert self._supervisor is not None
            return self._supervisor

    def _drop(self, supervisor: _Supervisor) -> None:
        with self._lock:
            if self._supervisor is supervisor:
                self._supervisor = None
        supervisor.close()

    def _start(self) -> None:
        self._supervisor = _Supervisor(self.interpreter, self.root, self.limits)

    def _file(self, path: str) -> _File:
        key = self._key(path)
        with self._lock:
            return self._files.setdefault(key, _File(key))

    def _key(self, path: str) -> str:
        return os.path.normpath(os.path.join(self.root, path))


@dataclass(slots=True)
class _File:
    """One file: who owns its targets, what runs for it, and what was traced last."""

    path: str
    turn: threading.RLock = field(default_factory=threading.RLock)
    owner: _Worker | None = None
    running: set[_Worker] = field(default_factory=set)
    targets: set[str] = field(default_factory=set)
    trace: dict[str, Any] | None = None
    used: float = 0.0
    cancels: int = 0

    def workers(self) -> set[_Worker]:
        return self.running | ({self.owner} if self.owner is not None else set())


class _Supervisor:
    """The warm process's end of the line."""

    def __init__(self, interpreter: str, root: str, limits: Limits) -> None:
        self._control, theirs = socket.socketpair()
        core = os.path.dirname(os.path.abspath(topos_core.__file__))
        settings = {
            "control": theirs.fileno(), "core": core, "network": limits.network, "memory": limits.memory, "root": root,
        }  # fmt: skip
        self._interpreter = interpreter
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  # closed in close()
        self._lock = threading.Lock()
        self._hello: dict[str, Any] | None = None
        bootstrap = os.path.join(core, "session", "bootstrap.py")
        try:
            self._process = subprocess.Popen(
                [interpreter, bootstrap, json.dumps(settings)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._errors,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
                cwd=root,
            )
        except OSError as error:
            self._control.close()
            self._errors.close()
            raise ConfigurationError(
                f"the interpreter {interpreter} cannot be started in {root} ({error.strerror}); "
                "correct `interpreter` in the user's settings",
                code="TP501",
            ) from error
        finally:
            theirs.close()

    def alive(self) -> bool:
        return self._process.poll() is None

    def hello(self) -> dict[str, Any]:
        with self._lock:
            if self._hello is None:
                self._hello = self._handshake()
            return self._hello

    def fork(self, identity: int, agent: Agent, path: str) -> _Worker:
        self.hello()
        ours, channel = socket.socketpair()
        output_read, output_write = os.pipe()
        report_read, report_write = os.pipe()
        try:
            with self._lock:
                descriptors = [channel.fileno(), output_write, report_write]
                socket.send_fds(self._control, [encode({"do": "fork", "id": identity})], descriptors)
        except OSError as error:
            for descriptor in (output_read, report_read):
                os.close(descriptor)
            ours.close()
            raise _Lost(self) from error
        finally:
            channel.close()
            os.close(output_write)
            os.close(report_write)
        return _Worker(identity, self, ours, output_read, report_read, agent.root, path, agent.limits)

    def kill(self, identity: int, reason: str) -> None:
        with self._lock, contextlib.suppress(OSError):  # a supervisor that is gone took its workers along
            self._control.sendall(encode({"do": "kill", "id": identity, "reason": reason}))

    def close(self) -> None:
        """Closes the control socket, on which the process ends its workers and itself; kills it if it does not."""
        self._control.close()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            processes.kill_tree(self._process.pid)
            self._process.wait()
        self._errors.close()

    def _handshake(self) -> dict[str, Any]:
        self._control.settimeout(_START_SECONDS)
        decoder = Decoder()
        frames: list[dict[str, Any]] = []
        try:
            while not frames:
                data = self._control.recv(65536)
                if not data:
                    raise self._died()
                frames = decoder.feed(data)
        except (OSError, MessageError) as error:
            raise self._died() from error
        finally:
            with contextlib.suppress(OSError):  # closed meanwhile
                self._control.settimeout(None)
        first = frames[0]
        if "error" in first:
            raise TraceError(str(first["error"]["message"]), code=str(first["error"]["code"]))
        hello = first.get("hello", {})
        if (hello.get("protocol"), hello.get("version")) != (PROTOCOL, VERSION):
            raise TraceError(
                f"the agent speaks protocol {hello.get('protocol')} of topos {hello.get('version')}, this is protocol "
                f"{PROTOCOL} of topos {VERSION}; restart the editor or server",
                code="TP409",
            )
        return dict(hello)

    def _died(self) -> ConfigurationError | Cancelled:
        try:
            status = self._process.wait(_END_SECONDS)
            self._errors.seek(0)
            lines = self._errors.read(64 * 1024).decode("utf-8", "replace").strip().splitlines()
        except subprocess.TimeoutExpired:
            status, lines = None, ["it gave no sign of life"]
        except ValueError:
            return Cancelled()  # the agent was closed meanwhile
        last = lines[-1] if lines else "it printed nothing"
        return ConfigurationError(
            f"the interpreter {self._interpreter} ended with status {status} before it could run anything: {last}",
            code="TP501",
        )


class _Worker:
    """One forked process, as long as somebody here holds it."""

    def __init__(
        self, identity: int, supervisor: _Supervisor, channel: socket.socket, output: int, report: int, root: str,
        path: str, limits: Limits,
    ) -> None:  # fmt: skip
        self.identity = identity
        self._supervisor = supervisor
        self._channel = channel
        self._output = output
        self._report = report
        self._root = root
        self._path = path
        self._limits = limits
        self._requests = itertools.count(1)
        self._decoder = Decoder()
        self._reports = Decoder()
        self._death: dict[str, Any] | None = None
        self._let_go = False
        self._traced_text: str | None = None
        self._text = _Output(limits.output)
        os.set_blocking(output, False)
        os.set_blocking(report, False)

    def __del__(self) -> None:
        self._channel.close()
        for descriptor in (self._output, self._report):
            os.close(descriptor)

    def alive(self) -> bool:
        self._read_report()
        return self._death is None

    def kill(self, reason: str) -> None:
        self._let_go = self._let_go or reason in ("cancelled", "released")
        self._supervisor.kill(self.identity, reason)

    def ask(self, message: Mapping[str, Any], seconds: float, progress: Progress | None) -> dict[str, Any]:
        """Sends a request, drains what user code prints, and waits for the reply, the death or the deadline."""
        number = next(self._requests)
        if message["do"] == "trace":
            self._traced_text = message.get("text")
        self._text = _Output(self._limits.output)
        deadline = time.monotonic() + seconds
        outgoing = memoryview(encode({**message, "id": number}))
        hung_up: float | None = None  # since when the channel is closed: a process that is ending takes a moment
        patience: float | None = None  # once killed or hung up on, how long the report may take
        while True:
            self._read_output()
            if self._read_report():
                return self._told(self._after_death(seconds))
            now = time.monotonic()
            late, hanging = now >= deadline, hung_up is not None and now >= hung_up + _HANG_UP_SECONDS
            if patience is None and (late or hanging):
                self.kill("time" if late else "hung up")
                patience = now + _END_SECONDS
            if patience is not None and now >= patience:
                return self._told(failure("TP407", "the process that runs the code does not end when it is killed"))
            until = patience or (deadline if hung_up is None else hung_up + _HANG_UP_SECONDS)
            readable, writable = self._wait(until - now, hung_up is None, bool(outgoing))
            if writable:
                outgoing = self._send(outgoing)
            if readable:
                try:
                    data = self._channel.recv(1 << 20)
                    frames = self._decoder.feed(data)
                    reply = self._pick(str(message["do"]), number, frames, progress)
                except (ConnectionError, MessageError) as error:
                    if isinstance(error, MessageError):
                        self.kill("forged")
                        return self._told(_forged(error))
                    data, reply = b"", None
                hung_up = hung_up if data else time.monotonic()
                if reply is not None:
                    return self._told(reply)

    def _wait(self, seconds: float, reading: bool, writing: bool) -> tuple[bool, bool]:
        """Waits until anything happens; says whether the channel can be read and written."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._report, selectors.EVENT_READ)
            if not self._text.ended:
                selector.register(self._output, selectors.EVENT_READ)
            events = (selectors.EVENT_READ if reading else 0) | (selectors.EVENT_WRITE if writing else 0)
            if events:
                selector.register(self._channel, events)
            ready = {key.fd: mask for key, mask in selector.select(max(0.0, seconds))}
        mask = ready.get(self._channel.fileno(), 0)
        return bool(mask & selectors.EVENT_READ), bool(mask & selectors.EVENT_WRITE)

    def _send(self, outgoing: memoryview) -> memoryview:
        try:
            return outgoing[self._channel.send(outgoing[: 1 << 16], socket.MSG_DONTWAIT) :]
        except BlockingIOError:
            return outgoing
        except OSError:
            return outgoing[:0]  # the other end is gone; its report says why

    def _pick(
        self, do: str, number: int, frames: Sequence[dict[str, Any]], progress: Progress | None
    ) -> dict[str, Any] | None:
        for frame in frames:
            if frame.get("id") != number:
                raise MessageError(f"a reply to request {frame.get('id')!r} came, request {number} is asked")
            if "progress" not in frame:
                check_reply(do, frame)
                return {key: value for key, value in frame.items() if key != "id"}
            step = frame["progress"]
            if progress is not None:
                try:
                    progress(str(step["title"]), int(step["done"]), int(step["total"]))
                except (TypeError, KeyError, ValueError) as error:
                    raise MessageError(f"progress is {step!r}") from error
        return None

    def _told(self, reply_or_error: dict[str, Any]) -> dict[str, Any]:
        """Adds what was printed: to the reply, and to its error where there is one."""
        reply: dict[str, Any] = {"error": reply_or_error} if "code" in reply_or_error else reply_or_error
        self._read_output()  # what came between the last look and the end
        text = self._text.text()
        reply["output"] = text
        for told in (reply, *reply.get("entries", ())):
            if "error" in told:
                told["error"]["output"] = text
        return reply

    def _read_output(self) -> None:
        for _ in range(64):  # a flood must not keep us from looking at the clock
            try:
                data = os.read(self._output, 65536)
            except BlockingIOError:
                return
            self._text.add(data)
            if not data:
                return

    def _read_report(self) -> bool:
        while self._death is None:
            try:
                data = os.read(self._report, 65536)
            except BlockingIOError:
                return False
            if not data:
                self._death = {"exit": None, "signal": None, "reason": "supervisor", "resident": 0, "stack": ""}
            for frame in self._reports.feed(data):
                self._death = frame.get("died", self._death)
        return True

    def _after_death(self, seconds: float) -> dict[str, Any]:
        """Says why the process ended, as an error; raises `Cancelled` where we ended it for somebody."""
        assert self._death is not None
        death = self._death
        place = position(place_in_stack(death["stack"], self._path, self._traced_text), self._root)
        if self._let_go:
            raise Cancelled
        match death["reason"]:
            case "time":
                message = (
                    f"running the file and recording its entries took longer than {seconds:g} s; "
                    "shorten what runs on import, or raise the time limit"
                )
                return failure("TP405", message, **place)
            case "memory":
                message = (
                    f"the process held {death['resident'] // MIB} MiB, the limit is {self._limits.memory // MIB} MiB; "
                    "build the model without its full weights, or raise the memory limit"
                )
                return failure("TP406", message, **place)
            case "supervisor":
                raise _Lost(self._supervisor)
        return failure("TP407", _ending(death))


class _Output:
    """What was printed: the first and the last part, the middle counted."""

    def __init__(self, limit: int) -> None:
        self._half = limit // 2
        self._head = bytearray()
        self._tail = bytearray()
        self._dropped = 0
        self.ended = False

    def add(self, data: bytes) -> None:
        """Takes what was read; nothing read means that every writer has closed the stream."""
        self.ended = self.ended or not data
        room = self._half - len(self._head)
        self._head += data[:room]
        self._tail += data[room:] if room > 0 else data
        excess = len(self._tail) - self._half
        if excess > 0:
            del self._tail[:excess]
            self._dropped += excess

    def text(self) -> str:
        middle = f"\n... {self._dropped} bytes left out ...\n".encode() if self._dropped else b""
        return (bytes(self._head) + middle + bytes(self._tail)).decode("utf-8", "replace")


def _ending(death: Mapping[str, Any]) -> str:
    from topos_core.session.worker import CHANNEL_LOST

    if death["reason"] == "hung up" or death["exit"] == CHANNEL_LOST:
        return (
            "the code closed a descriptor that was not its own, on which topos answers; close only what the code opened"
        )
    if death["signal"] is not None:
        name = _signal_name(death["signal"])
        hint = "; the system may have run out of memory" if name == "SIGKILL" else ""
        return f"the process that runs the code was ended by {name}{hint}"
    return (
        f"the code ended its process with status {death['exit']} (`os._exit` or a library); "
        "put script code below `if __name__ == '__main__':`"
    )


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _forged(error: MessageError) -> dict[str, Any]:
    return failure("TP407", f"the process that runs the code sent what is no reply of topos: {error}")


def _first_error(reply: Mapping[str, Any]) -> dict[str, Any]:
    found = next((entry["error"] for entry in reply.get("entries", []) if "error" in entry), None)
    return found or failure("TP408", "the file has no entry any more")


def _list(values: Sequence[Any] | None) -> list[Any] | None:
    return None if values is None else list(values)
