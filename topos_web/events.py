"""Tells every open page that a plan changed: server-sent events, which reconnect by themselves, or the last ones when polled."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import deque
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

HEARTBEAT_SECONDS: Final = 15.0
KEPT: Final = 256  # events, for pages that poll


@dataclass(slots=True)
class Hub:
    """Hands events from any thread to the pages' streams; closing it ends them, so that the server can stop.

    A proxy may hold a stream back until it ends. A page that hears nothing of its stream's first event polls instead.
    """

    _loop: asyncio.AbstractEventLoop | None = None
    _queues: set[asyncio.Queue[str | None]] = field(default_factory=set)
    _closed: bool = False
    _last: int = 0
    _kept: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=KEPT))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def publish(self, event: str, data: Mapping[str, Any]) -> None:
        """Sends an event to every open stream; callable from any thread."""
        with self._lock:
            self._last += 1
            self._kept.append({"number": self._last, "event": event, "data": data})
        self._send(f"event: {event}\ndata: {json.dumps(data)}\n\n")

    def after(self, number: int | None) -> dict[str, Any]:
        """Gives the events behind a number, all that are kept at most, and whether some are missing; no number asks for the last."""
        with self._lock:
            if number is None:
                return {"last": self._last, "events": [], "missed": False}
            missed = number > self._last or number < self._last - len(
                self._kept
            )  # another server's number, or an old one
            found = [] if missed else [event for event in self._kept if event["number"] > number]
            return {"last": self._last, "events": found, "missed": missed}

    def close(self) -> None:
        """Ends every stream."""
        self._closed = True
        self._send(None)

    async def stream(self) -> AsyncIterator[str]:
        """Yields events until the hub closes; a comment now and then keeps proxies from hanging up."""
        self._loop = asyncio.get_running_loop()
        queue: asyncio.Queue[str | None] = asyncio.Queue()
        self._queues.add(queue)
        try:
            yield "event: hello\ndata: {}\n\n"
            while not self._closed:
                try:
                    message = await asyncio.wait_for(queue.get(), HEARTBEAT_SECONDS)
                except TimeoutError:
                    message = ": still here\n\n"
                if message is None:
                    return
                yield message
        finally:
            self._queues.discard(queue)

    def _send(self, message: str | None) -> None:
        loop = self._loop
        if loop is None or loop.is_closed():
            return
        for queue in tuple(self._queues):
            loop.call_soon_threadsafe(queue.put_nowait, message)
