"""On which processor a thread runs, and keeping another thread off it.

Where a system has no words for that (macOS, Windows), threads stay where the system puts them.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from functools import cache


def current_processor() -> int:
    """Tells the number of the processor that the calling thread runs on just now; -1 where the system does not say."""
    return _asked()()


def apart(thread: threading.Thread, processor: int) -> None:
    """Lets a started thread run on all processors that the calling thread may use, but for one.

    Nothing changes where no other is left, or where the system refuses.
    """
    if processor < 0 or thread.native_id is None or not hasattr(os, "sched_setaffinity"):
        return
    others = os.sched_getaffinity(0) - {processor}
    if not others:
        return
    try:
        os.sched_setaffinity(thread.native_id, others)
    except OSError:  # a sandbox that forbids it; the thread stays where it may run
        return


@cache
def _asked() -> Callable[[], int]:
    """Finds the C library's function; called without giving up the interpreter lock, it takes 0.1 microseconds."""
    try:
        found = ctypes.PyDLL(None).sched_getcpu
    except (AttributeError, OSError, TypeError):  # a system without it; Windows cannot open the process itself
        return lambda: -1
    found.argtypes, found.restype = (), ctypes.c_int
    return found
