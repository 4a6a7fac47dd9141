"""Keeps memory small: replies are large, short-lived, and parsed in several threads."""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable
from typing import Final

_ARENA_MAX: Final = -8  # of mallopt


def share() -> None:
    """Has all threads take memory from one place, so that what one of them freed serves the next; before any starts."""
    allocator = getattr(_library(), "mallopt", None)
    if allocator is not None:
        allocator(_ARENA_MAX, 1)


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
