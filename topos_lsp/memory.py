"""Gives memory back to the system: replies are large, short-lived, and parsed in several threads."""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable


def trim() -> None:
    """Returns freed memory where the C library keeps it; a few milliseconds, so in a thread."""
    _trimmer()()


@functools.cache
def _trimmer() -> Callable[[], object]:
    if sys.platform != "linux":
        return lambda: None
    try:
        function = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError):  # another C library
        return lambda: None
    return lambda: function(0)
