"""Keeps memory small: replies are large, short-lived, and parsed in several threads."""

from __future__ import annotations

import ctypes
import functools
import gc
import sys
from collections.abc import Callable
from typing import Final

_ARENA_MAX: Final = -8  # of mallopt
_YOUNG: Final = (
    50_000  # objects made before the youngest are looked through: 2 ms; the default, 700, is met 100 times a reply
)


def share() -> None:
    """Has all threads take memory from one place, so that what one of them freed serves the next; before any starts."""
    allocator = getattr(_library(), "mallopt", None)
    if allocator is not None:
        allocator(_ARENA_MAX, 1)


def collect_rarely() -> None:
    """Leaves what exists to itself and has the collector look at new objects only now and then; once everything is loaded."""
    gc.freeze()
    gc.set_threshold(_YOUNG, 20, 20)


def settle() -> None:
    """Takes what is held by now out of the collector's sight: looking through a few plans would keep a question waiting for 50 ms.

    Documents hold no cycles, so they go when nobody holds them any more.
    """
    gc.freeze()


def trim() -> None:
    """Returns freed memory where the C library keeps it; a few milliseconds, so in a thread."""
    _trimmer()()


@functools.cache
def _trimmer() -> Callable[[], object]:
    function = getattr(_library(), "malloc_trim", None)
    return (lambda: None) if function is None else (lambda: function(0))


def _library() -> ctypes.CDLL | None:
    """Gives the C library; another one than glibc lacks what is asked of it here."""
    return ctypes.CDLL(None) if sys.platform == "linux" else None
