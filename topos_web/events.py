"""Tells every open page that a plan changed: server-sent events, which survive proxies and reconnect by themselves."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

HEARTBEAT_SECONDS: Final = 15.0


@dataclass(slots=True)
class Hub:
    """Hands events from any thread to the pages' streams; closing it ends them, so that the server can stop."""

    _loop: asyncio.AbstractEventLoop | None = None
    _queues: set[asyncio.Queue[str | None]] = field(default_factory=set)
    _closed: bool = False

    def publish(self, event: str, data: Mapping[str, Any]) -> None:
        """Sends an event to every open stream; callable from any thread."""
        self._send(f"event: {event}\ndata: {json.dumps(data)}\n\n")

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
            yield ": open\n\n"
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
