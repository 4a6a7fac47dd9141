"""The warm process: it has imported NumPy and topos, forks one worker per trace, watches them, and runs no user code.

Where the system refuses to fork, or the user switched it off, a worker is a new Python (`spawning.py`) and all else is the same.

It reads commands from its control socket and never blocks on anything else:

    {"do": "fork", "id": 3}  with three descriptors: the worker's channel, its output pipe, its report pipe
    {"do": "kill", "id": 3, "reason": "time"}
    {"do": "warm", "modules": ["torch", "torch.export"]}

Each worker's report pipe carries two frames: `{"born": pid}` and, when it is gone, `{"died": {...}}` with the exit status or
signal, the reason if it was killed (`time`, `memory`, `cancelled`, `released`), its resident bytes, and the Python stack at
that moment; or, for the reason `unstarted`, what the system said. When the control socket closes, everything ends.
"""

from __future__ import annotations

import errno
import gc
import os
import platform
import selectors
import signal
import socket
import sys
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from topos_core.session import processes
from topos_core.session.control_group import ControlGroup, enter, make_control_group
from topos_core.session.messages import PROTOCOL, Decoder, encode
from topos_core.session.spawning import spawn
from topos_core.session.version import VERSION
from topos_core.session.warming import Warming

_NAMED_PACKAGES: Final = (
    "numpy",
    "ml_dtypes",
    "numba",
    "torch",
    "transformers",
    "jax",
    "jaxlib",
    "onnx",
    "onnxruntime",
)
_WATCH_SECONDS: Final = 0.025  # while a worker is busy: at 4 GB/s of page faults it overshoots by 100 MB
_REST_SECONDS: Final = 0.25
_LAST_SECONDS: Final = 1.0
_STACK_SECONDS: Final = 0.2
_STACK_BYTES: Final = 16 * 1024  # with its frame around it, this fits a pipe that nobody reads yet


@dataclass(slots=True)
class _Worker:
    identity: int
    process: int
    report: int
    stack: int
    reason: str | None = None
    resident: int = 0
    dump: str = ""
    processor_ticks: int = 0
    group: ControlGroup | None = None


@dataclass(slots=True)
class _Supervisor:
    control: socket.socket
    wake: int
    settings: Mapping[str, Any]
    workers: dict[int, _Worker] = field(default_factory=dict)
    decoder: Decoder = field(default_factory=Decoder)
    descriptors: list[int] = field(default_factory=list)
    warming: Warming = field(default_factory=Warming)


def main(settings: Mapping[str, Any], online: str | None) -> None:
    """Serves until the control socket closes; `online` is why the network could not be taken away."""
    processes.adopt_orphans()
    control = socket.socket(fileno=settings["control"])
    control.setblocking(True)
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_read, False)
    os.set_blocking(wake_write, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's interrupt is for the client, which then closes us
    if settings["fork"]:
        _warm_up()
        gc.collect()
        gc.freeze()
    control.sendall(encode({"hello": _hello(settings, online)}))
    control.setblocking(False)  # `recv_fds` takes flags and ignores them
    supervisor = _Supervisor(control, wake_read, settings)
    selector = selectors.DefaultSelector()
    selector.register(control, selectors.EVENT_READ)
    selector.register(wake_read, selectors.EVENT_READ)
    keep = {control.fileno(), wake_read, wake_write}
    try:
        busy = False
        while True:
            wait = None if not supervisor.workers else _WATCH_SECONDS if busy else _REST_SECONDS
            selector.select(0 if supervisor.warming.pending else wait)
            _drain(wake_read)
            _reap(supervisor)  # first: who has ended by itself was not killed by the command that follows
            if not _read_commands(supervisor, keep, selector):
                break
            busy = _watch(supervisor)
            if supervisor.warming.pending:
                supervisor.warming.step()
    finally:
        for worker in supervisor.workers.values():
            processes.kill_tree(worker.process)
        deadline = time.monotonic() + _LAST_SECONDS
        while supervisor.workers and time.monotonic() < deadline:
            _reap(supervisor)
            time.sleep(0.001)


def _warm_up() -> None:
    """Imports what every trace needs, so that a fork has it; never numba, whose threads would not survive a fork."""
    import linecache
    import tokenize
    import traceback

    from topos_core.session import worker

    worker.warm_up()
    del linecache, tokenize, traceback


def _hello(settings: Mapping[str, Any], online: str | None) -> dict[str, Any]:
    return {
        "protocol": PROTOCOL,
        "version": VERSION,
        "python": platform.python_version(),
        "executable": sys.executable,
        "packages": _packages(),
        "network": bool(settings["network"]) or online is not None,
        "network_reason": online,
        "process": os.getpid(),
    }


def _packages() -> dict[str, str]:
    """Gives the versions of the packages that decide what topos can do here; they are looked up, not imported."""
    from importlib.metadata import PackageNotFoundError, version

    found: dict[str, str] = {}
    for name in _NAMED_PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _read_commands(supervisor: _Supervisor, keep: set[int], selector: selectors.BaseSelector) -> bool:
    control = supervisor.control
    while True:
        try:
            data, descriptors, _, _ = socket.recv_fds(control, 65536, 16)
        except (BlockingIOError, InterruptedError):
            return True
        except ConnectionError:
            return False
        supervisor.descriptors += descriptors
        for descriptor in descriptors:
            os.set_inheritable(descriptor, False)
        if not data:
            return False
        for command in supervisor.decoder.feed(data):
            if command["do"] == "fork":
                channel, output, report = supervisor.descriptors[:3]
                del supervisor.descriptors[:3]
                _fork(supervisor, command["id"], channel, output, report, keep, selector)
            elif command["do"] == "warm" and supervisor.settings["fork"]:
                supervisor.warming.add(command["modules"])
            elif command["do"] == "kill" and command["id"] in supervisor.workers:
                _end(supervisor.workers[command["id"]], command["reason"])


def _fork(
    supervisor: _Supervisor,
    identity: int,
    channel: int,
    output: int,
    report: int,
    keep: set[int],
    selector: selectors.BaseSelector,
) -> None:
    stack_read, stack_write = os.pipe()
    parent = os.getpid()
    group = make_control_group(f"topos-{parent}-{identity}", supervisor.settings["memory"])
    process = _forked() if supervisor.settings["fork"] else None
    if process is None:
        try:
            process = spawn(parent, channel, output, stack_write, supervisor.settings)
        except OSError as error:
            _report(report, {"died": _death(None, "unstarted", 0, error.strerror or str(error))})
            for descriptor in (channel, output, report, stack_read, stack_write):
                os.close(descriptor)
            if group is not None:
                group.remove()
            return
    if process == 0:
        status = processes.BROKEN
        try:
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGCHLD, signal.SIGINT):
                signal.signal(number, signal.SIG_DFL)
            others = [d for each in supervisor.workers.values() for d in (each.report, each.stack)]
            selector.close()
            for descriptor in (*keep, *others, report, stack_read):
                os.close(descriptor)
            from topos_core.session import worker

            worker.main(parent, channel, output, stack_write, supervisor.settings)
            status = 0
        finally:
            os._exit(status)
    for descriptor in (channel, output, stack_write):
        os.close(descriptor)
    os.set_blocking(stack_read, False)
    if group is not None and not enter(group, process):
        group.remove()
        group = None
    supervisor.workers[identity] = _Worker(identity, process, report, stack_read, group=group)
    _report(report, {"born": process})


def _forked() -> int | None:
    """Forks; None where the system refuses, as it does where it promises no more memory than it has."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # BLAS has threads; it re-makes them after a fork
        try:
            return os.fork()
        except OSError:
            return None


def _watch(supervisor: _Supervisor) -> bool:
    """Ends workers past the memory limit; says whether any of them is using the processor."""
    limit = supervisor.settings["memory"]
    busy = False
    for worker in supervisor.workers.values():
        worker.resident = processes.resident_bytes(worker.process)
        if worker.resident > limit and processes.proportional_bytes(worker.process) > limit:
            _end(worker, "memory")
        ticks = processes.processor_ticks(worker.process)
        busy = busy or ticks != worker.processor_ticks
        worker.processor_ticks = ticks
    return busy


def _end(worker: _Worker, reason: str) -> None:
    if worker.reason is None:
        worker.reason = reason
        if reason in ("time", "memory"):
            worker.dump = _stack_of(worker)
    if worker.group is not None:
        worker.group.kill()
    processes.kill_tree(worker.process)


def _stack_of(worker: _Worker) -> str:
    """Asks the worker's fault handler for its Python stack; empty where user code took the handler or the descriptor."""
    try:
        os.kill(worker.process, signal.SIGUSR2)
    except ProcessLookupError:
        return ""
    text = b""
    deadline = time.monotonic() + _STACK_SECONDS
    while len(text) < _STACK_BYTES and time.monotonic() < deadline:
        try:
            data = os.read(worker.stack, 65536)
        except BlockingIOError:
            if text.endswith(b"\n") and b'worker.py"' in text:
                break
            time.sleep(0.002)
            continue
        if not data:
            break
        text += data
    return text[:_STACK_BYTES].decode("utf-8", "replace")


def _reap(supervisor: _Supervisor) -> None:
    by_process = {worker.process: worker for worker in supervisor.workers.values()}
    while True:
        try:
            process, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            break
        if process == 0:
            break
        worker = by_process.get(process)
        if worker is None:
            continue  # an orphan of user code, adopted and now gone
        del supervisor.workers[worker.identity]
        if worker.group is not None:
            if worker.reason is None and worker.group.was_out_of_memory():
                worker.reason = "memory"
            worker.group.kill()
            worker.group.remove()
        code = os.waitstatus_to_exitcode(status)
        _report(worker.report, {"died": _death(code, worker.reason, worker.resident, worker.dump)})
        os.close(worker.report)
        os.close(worker.stack)
    _kill_orphans(supervisor)


def _death(code: int | None, reason: str | None, resident: int, stack: str) -> dict[str, Any]:
    """Says how a worker ended; a negative code is a signal."""
    return {
        "exit": code if code is not None and code >= 0 else None,
        "signal": -code if code is not None and code < 0 else None,
        "reason": reason,
        "resident": resident,
        "stack": stack,
    }


def _kill_orphans(supervisor: _Supervisor) -> None:
    """Kills what workers left behind: a process that became our child without being a worker."""
    known = {worker.process for worker in supervisor.workers.values()}
    for process in processes.children(os.getpid()):
        if process not in known:
            processes.kill_tree(process)


def _report(descriptor: int, message: Mapping[str, Any]) -> None:
    try:
        os.write(descriptor, encode(message))
    except OSError as error:
        if error.errno != errno.EPIPE:  # the client has let go of this worker
            raise


def _drain(descriptor: int) -> None:
    try:
        while os.read(descriptor, 4096):
            pass
    except BlockingIOError:
        pass
