"""The client's end of one worker: asks it, drains what it prints, and says why it ended where it did."""

from __future__ import annotations

import itertools
import os
import selectors
import signal
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from topos_core.session import processes
from topos_core.session.limits import MIB, Limits
from topos_core.session.messages import Decoder, Frame, MessageError, check_reply, encode, failure
from topos_core.session.places import place_in_stack, position

if TYPE_CHECKING:
    from topos_core.session.warm_process import WarmProcess

Progress = Callable[[str, int, int], None]

_END_SECONDS: Final = 2.0
_HANG_UP_SECONDS: Final = 0.3
_SLOW: Final = {"trace": ("running the file and recording its entries", "shorten what runs on import")}


class Cancelled(Exception):
    """Somebody cancelled the request, or closed the agent, while it ran."""


class Lost(Exception):
    """The warm process is gone, and with it everything that it watched."""

    def __init__(self, warm: WarmProcess) -> None:
        super().__init__()
        self.warm = warm


class Conversation:
    """One forked worker, as long as somebody here holds it.

    Args:
        warm: Who forked it and kills it.
        identity: Its number there.
        channel, output, report: Ours of its channel, of its output pipe and of its report pipe; closed with this.
        root, path: The project's root and the file that it runs.
        limits: What it may use.
    """

    def __init__(
        self, warm: WarmProcess, identity: int, channel: socket.socket, output: int, report: int, root: str, path: str,
        limits: Limits,
    ) -> None:  # fmt: skip
        self._warm = warm
        self._identity = identity
        self._channel = channel
        self._output = output
        self._report = report
        self._root = root
        self._path = path
        self._limits = limits
        self._requests = itertools.count(1)
        self._decoder = Decoder()
        self._reports = Decoder()
        self._process: int | None = None
        self._death: dict[str, Any] | None = None
        self._let_go = False
        self._traced_text: str | None = None
        self._text = Output(limits.output)
        os.set_blocking(output, False)
        os.set_blocking(report, False)

    def __del__(self) -> None:
        self._channel.close()
        for descriptor in (self._output, self._report):
            os.close(descriptor)

    def alive(self) -> bool:
        """Says whether the worker still runs."""
        self._read_report()
        return self._death is None

    def kill(self, reason: str) -> None:
        """Asks for its end, for a `reason` (time, cancelled, released, hung up, forged); does not wait.

        A cancelled one is killed from here: the warm process may be importing a framework, which takes seconds.
        """
        self._let_go = self._let_go or reason in ("cancelled", "released")
        if (
            reason == "cancelled" and self._process is not None and self._death is None
        ):  # not waited for: its number is its own
            processes.kill_tree(self._process)
        self._warm.kill(self._identity, reason)

    def ask(self, message: Mapping[str, Any], seconds: float, progress: Progress | None) -> dict[str, Any]:
        """Sends a request, drains what user code prints, and waits for the reply, the death or the deadline.

        Raises:
            Cancelled: Somebody here had it killed.
            Lost: The warm process is gone.
        """
        number = next(self._requests)
        if message["do"] == "trace":
            self._traced_text = message.get("text")
        self._text = Output(self._limits.output)
        deadline = time.monotonic() + seconds
        outgoing = memoryview(encode({**message, "id": number}))
        hung_up: float | None = None  # since when the channel is closed: a process that is ending takes a moment
        patience: float | None = None  # once killed or hung up on, how long the report may take
        killed = False  # for its time
        while True:
            self._read_output()
            if self._read_report():
                return self._told(self._after_death(str(message["do"]), seconds))
            now = time.monotonic()
            late, hanging = now >= deadline, hung_up is not None and now >= hung_up + _HANG_UP_SECONDS
            if patience is None and (late or hanging):
                self.kill("time" if late else "hung up")
                patience, killed = now + _END_SECONDS, late
            if patience is not None and now >= patience:  # a process of gigabytes takes seconds to end
                return self._told(_too_slow(str(message["do"]), seconds, self._limits) if killed else _unended())
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

    def _pick(self, do: str, number: int, frames: Sequence[Frame], progress: Progress | None) -> dict[str, Any] | None:
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
                self._process = frame.get("born", self._process)
                self._death = frame.get("died", self._death)
        return True

    def _after_death(self, do: str, seconds: float) -> dict[str, Any]:
        """Says why the process ended, as an error; raises `Cancelled` where we ended it for somebody."""
        assert self._death is not None
        death = self._death
        place = position(place_in_stack(death["stack"], self._path, self._traced_text), self._root)
        if self._let_go:
            raise Cancelled
        match death["reason"]:
            case "time":
                return _too_slow(do, seconds, self._limits, **place)
            case "memory":
                message = (
                    f"{_held(death['resident'])}, the limit is {self._limits.memory // MIB} MiB; "
                    f"build the model without its full weights, or raise `memory` in {self._limits.memory_in}"
                )
                return failure("TP406", message, **place)
            case "unstarted":
                return failure(
                    "TP407", f"the system starts no further process ({death['stack']}); end others and ask again"
                )
            case "supervisor":
                raise Lost(self._warm)
        return failure("TP407", _ending(death, os.path.relpath(self._path, self._root)))


class Output:
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
        """Gives what is kept, with a note where the middle was."""
        middle = f"\n... {self._dropped} bytes left out ...\n".encode() if self._dropped else b""
        return (bytes(self._head) + middle + bytes(self._tail)).decode("utf-8", "replace")


def _too_slow(do: str, seconds: float, limits: Limits, **place: Any) -> dict[str, Any]:
    what, remedy = _SLOW.get(do, (f"the request to {do}", "ask for less"))
    message = f"{what} took longer than {seconds:g} s; {remedy}, or raise `seconds` in {limits.seconds_in}"
    return failure("TP405", message, **place)


def _unended() -> dict[str, Any]:
    return failure("TP407", "the process that runs the code does not end when it is killed")


def _ending(death: Mapping[str, Any], file: str) -> str:
    """Says how the process of a file ended; which of its lines did it, an ended process cannot tell."""
    if death["reason"] == "hung up" or death["exit"] == processes.CHANNEL_LOST:
        return (
            f"{file} closed a descriptor that was not its own, on which topos answers; close only what the code opened"
        )
    if death["signal"] is not None:
        name = _signal_name(death["signal"])
        hint = "; the system may have run out of memory" if name == "SIGKILL" else ""
        return f"the process that runs {file} was ended by {name}{hint}; look at native code that it calls last"
    who = (
        "`os._exit` or a library"
        if death["exit"] != processes.BROKEN
        else "`os._exit`, a library, or a builtin that it replaced"
    )
    return (
        f"{file} ended its process with status {death['exit']} ({who}); take that out of the "
        "entry, and put script code below `if __name__ == '__main__':`"
    )


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _forged(error: MessageError) -> dict[str, Any]:
    return failure("TP407", f"the process that runs the code sent what is no reply of topos: {error}")


def _held(resident: int) -> str:
    """Says what the process held, where it was seen before the kernel ended it."""
    return f"the process held {resident // MIB} MiB" if resident else "the process grew past its memory"
