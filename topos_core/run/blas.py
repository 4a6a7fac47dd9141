"""How many threads NumPy's BLAS uses while tapes run; the setting belongs to the whole process, so runs share it."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import get_ident
from typing import Any

from topos_core.ops.blas_gate import BLAS


class _Setting:
    """The process' BLAS and who wants how many threads of it; the least wins, since bits depend on the number.

    A forked child goes on with its parent's, and with what its one thread wants. No fork meets the lock taken: whoever takes it
    is inside the gate.
    """

    def __init__(self) -> None:
        from threadpoolctl import ThreadpoolController

        self.lock = threading.Lock()
        self.libraries: list[Any] = ThreadpoolController().select(user_api="blas").lib_controllers
        self.own: list[int] = []
        self.wanted: list[tuple[int, int]] = []
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.inherit)

    def enter(self, count: int) -> None:
        with BLAS, self.lock:
            if not self.wanted:
                self.own = [library.get_num_threads() for library in self.libraries]
            self.wanted.append((get_ident(), count))
            self.apply()

    def leave(self, count: int) -> None:
        with BLAS, self.lock:
            self.wanted.remove((get_ident(), count))
            self.apply()

    def apply(self) -> None:
        for library, own in zip(self.libraries, self.own, strict=True):
            target = min((count for _, count in self.wanted), default=own)
            if library.get_num_threads() != target:
                _set(library, target)

    def inherit(self) -> None:
        _settings()[os.getpid()] = self
        if self.wanted:
            self.wanted = [want for want in self.wanted if want[0] == get_ident()]
            self.apply()


def _set(library: Any, count: int) -> None:
    """Sets the number whatever thread asks.

    threadpoolctl 3.8 ignores every thread but the first that ever asked, since it takes threads for rivals; ours agree. Its
    public way around it, to clear who decides before and after, takes from callers what they have decided, and 7 microseconds a run.
    """
    getattr(library, "_real_set_num_threads", library.set_num_threads)(count)


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

    Threads that meet here have one setting: a second one would take the first one's number for the caller's own.
    """
    known = _settings()
    return known.get(process) or known.setdefault(process, _Setting())
