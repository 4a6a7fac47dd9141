"""Takes the signals that end the server, from before anything heavy is imported until it has ended."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from types import FrameType
from typing import Any


class Stop:
    """Takes SIGINT and SIGTERM while it is entered: being told to stop is the usual end, and ends with 0."""

    def __init__(self) -> None:
        self.asked: int | None = None
        self._action: Callable[[int, FrameType | None], None] | None = None
        self._kept: dict[int, Any] = {}

    def __enter__(self) -> Stop:
        self._kept = {number: signal.signal(number, self._told) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._kept.items():
            signal.signal(number, handler)

    def then(self, action: Callable[[int, FrameType | None], None]) -> None:
        """Calls back on every signal from now on; before, there is nothing to end, and a signal ends the process at once."""
        self._action = action

    def _told(self, number: int, frame: FrameType | None) -> None:
        self.asked = number
        if self._action is None:
            os._exit(0)
        self._action(number, frame)
