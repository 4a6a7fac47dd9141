"""The process that runs user code: one file's module, its tapes and match pools, until it is replaced.

It answers requests on a private channel (`messages.py`), one after the other. Whatever user code does with its standard
streams, its working directory, its descriptors or its children stays here: the channel is checked before each reply, a
forked child that comes back into this loop ends at once, and nothing but JSON leaves.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from topos_core.session import processes
from topos_core.session.limits import IDLE_CPU_SECONDS
from topos_core.session.messages import Decoder, MessageError, encode, failure
from topos_core.session.places import error_of


def warm_up() -> None:
    """Imports what a trace needs; called in the supervisor, before any fork."""
    from topos_core.session import operations

    operations.warm_up()


def main(parent: int, channel: int, output: int, stack: int, settings: Mapping[str, Any]) -> None:
    """Serves requests until the client closes the channel; runs in a forked child and never returns into its parent's code."""
    os.setsid()
    processes.die_with_parent(parent)
    processes.adopt_orphans()
    _redirect(output)
    faulthandler.register(signal.SIGUSR2, file=stack, all_threads=False, chain=False)
    peer = _Channel(channel)
    os.register_at_fork(after_in_child=peer.forget)
    from topos_core.session import operations

    state = operations.State(settings)
    for request in peer.requests():
        _limit_processor(None)
        reply = _answer(state, request, peer.progress(request))
        _flush()
        peer.reply({"id": request.get("id"), **reply})
        _limit_processor(IDLE_CPU_SECONDS)


def _answer(state: Any, request: Mapping[str, Any], progress: Callable[..., None]) -> dict[str, Any]:
    from topos_core.session import operations

    try:
        return operations.perform(state, request, progress)
    except BaseException as error:  # a bug of ours, since operations describe what user code raises; it must be told
        return {"error": error_of(error, "", state.root)}


def _redirect(output: int) -> None:
    """Gives the process an empty standard input and sends both output streams into the captured pipe."""
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(empty)
    os.close(output)
    sys.stdin = sys.__stdin__ = open(0, encoding="utf-8", closefd=False)  # type: ignore[misc]  # noqa: SIM115
    sys.stdout = sys.__stdout__ = open(1, "w", encoding="utf-8", errors="replace", buffering=1, closefd=False)  # type: ignore[misc]  # noqa: SIM115
    sys.stderr = sys.__stderr__ = open(2, "w", encoding="utf-8", errors="replace", buffering=1, closefd=False)  # type: ignore[misc]  # noqa: SIM115


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        try:
            if stream is not None:
                stream.flush()
        except Exception:
            continue  # user code replaced or closed the stream; what it held is lost, and that is its own doing


def _limit_processor(seconds: int | None) -> None:
    """Ends this process by a signal once it has used so much more processor time; None lifts the limit."""
    try:
        import resource
    except ImportError:
        return  # this system has no such limits
    used = time.process_time()
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    soft = hard if seconds is None else int(used) + 1 + seconds
    if hard != resource.RLIM_INFINITY and soft > hard:
        soft = hard
    resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))


class _Channel:
    """The private descriptor, and the guards around it."""

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=descriptor)
        self._socket.setblocking(True)
        self._process = os.getpid()
        self._identity = self._stat()
        self._decoder = Decoder()

    def requests(self) -> Any:
        """Yields requests until the client closes the channel."""
        while True:
            self._check()
            data = self._socket.recv(65536)
            if not data:
                os._exit(0)
            yield from self._decoder.feed(data)

    def progress(self, request: Mapping[str, Any]) -> Callable[..., None]:
        """Gives a function that sends progress of this request."""

        def send(title: str, done: int, total: int) -> None:
            self.reply({"id": request.get("id"), "progress": {"title": title, "done": done, "total": total}})

        return send

    def reply(self, message: Mapping[str, Any]) -> None:
        """Sends one frame; ends the process where the channel is not ours any more."""
        self._check()
        try:
            frame = encode(message)
        except MessageError as error:
            frame = encode(
                {"id": message.get("id"), "error": failure("internal", f"the reply cannot be sent: {error}")}
            )
        self._socket.sendall(frame)

    def forget(self) -> None:
        """Runs in a child that user code forks: the channel belongs to the parent alone."""
        try:
            if self._stat() == self._identity:
                self._socket.close()
        except OSError:
            return  # user code had closed it before

    def _check(self) -> None:
        """Ends a forked child of user code that came back here, and a process whose channel user code closed."""
        if os.getpid() != self._process:
            os._exit(0)
        try:
            same = self._stat() == self._identity
        except OSError:
            same = False
        if not same:  # the number may stand for a file of the user by now: writing would damage it
            os._exit(processes.CHANNEL_LOST)

    def _stat(self) -> tuple[int, int]:
        status = os.fstat(self._socket.fileno())
        return status.st_dev, status.st_ino
