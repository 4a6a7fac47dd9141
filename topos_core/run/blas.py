"""How many threads NumPy's BLAS uses while tapes run; the setting belongs to the whole process, so runs share it."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any


class _Setting:
    """The process' BLAS and who wants how many threads of it; the least wins, since bits depend on the number."""

    def __init__(self) -> None:
        from threadpoolctl import ThreadpoolController

        self.lock = threading.Lock()
        self.libraries: list[Any] = ThreadpoolController().select(user_api="blas").lib_controllers
        self.own: list[int] = []
        self.wanted: list[int] = []

    def enter(self, count: int) -> None:
        with self.lock:
            if not self.wanted:
                self.own = [library.get_num_threads() for library in self.libraries]
            self.wanted.append(count)
            self.apply()

    def leave(self, count: int) -> None:
        with self.lock:
            self.wanted.remove(count)
            self.apply()

    def apply(self) -> None:
        for library, own in zip(self.libraries, self.own, strict=True):
            target = min(self.wanted, default=own)
            if library.get_num_threads() != target:
                library.set_num_threads(target)


@contextmanager
def blas_threads(count: int) -> Iterator[None]:
    """Runs a block with at most so many BLAS threads; the caller's own setting comes back when the last run ends."""
    setting = _setting(os.getpid())
    setting.enter(count)
    try:
        yield
    finally:
        setting.leave(count)


@cache
def _settings() -> dict[int, _Setting]:
    return {}


_settings()  # before any thread can need it


def _setting(process: int) -> _Setting:
    """Finds a process' loaded BLAS once: the scan of loaded libraries takes milliseconds. NumPy's is loaded by now.

    A forked child has none of the threads that wanted something, and may have met the lock taken. Threads that meet here
    have one setting: a second one would take the first one's number for the caller's own.
    """
    known = _settings()
    return known.get(process) or known.setdefault(process, _Setting())
