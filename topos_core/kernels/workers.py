"""Worker threads for kernels.

A job is a kernel and its block. The caller leads: it takes part itself and also does what nobody else has claimed, so a
job never waits for a thread that the machine has not woken yet. A worker that has run out of work stays awake in native
code for some microseconds, because a plan's kernels follow one another closely, then sleeps; a busy machine therefore
never sees threads spin for long. A job that comes while the crew is busy with another caller's runs on its caller alone.
"""

from __future__ import annotations

import os
import threading
from functools import cache
from typing import Final

import numpy as np

from topos_core.kernels.library import Kernel, kernel
from topos_core.kernels.vocabulary.blocks import CREW

SPINS: Final = 4000
"""Pauses that an idle worker stays awake for: 40 to 150 microseconds."""
_KERNEL: Final = CREW.index("kernel")
_BLOCK: Final = CREW.index("block")


def run_on(threads: int, job: Kernel, block: int) -> None:
    """Runs a kernel on up to so many threads, the calling one included; every slot of the job runs exactly once."""
    crew = _crew(os.getpid())
    if not crew.busy.acquire(blocking=False):
        job.call(block, 0)
        return
    try:
        crew.run(threads, job, block)
    finally:
        crew.busy.release()


@cache
def _crew(process: int) -> _Crew:
    """Gives the process' crew; a forked child hires its own."""
    return _Crew()


class _Crew:
    """The threads of one process and the words that they share."""

    def __init__(self) -> None:
        self.busy = threading.Lock()
        memory = np.zeros(len(CREW) + 8, np.int64)
        start = memory.__array_interface__["data"][0]
        self.words = memory[-start % 64 // 8 :]
        self.address: int = self.words.__array_interface__["data"][0]
        self.lead = kernel("crew", "lead")
        self.follow = kernel("crew", "follow")
        for each in (self.lead, self.follow):
            assert each.address  # before there are threads: a fork must meet none of them while it compiles
        self.workers: list[_Worker] = []

    def run(self, threads: int, job: Kernel, block: int) -> None:
        while len(self.workers) < threads - 1:
            self.workers.append(_Worker(self))
        self.words[_KERNEL] = job.address
        self.words[_BLOCK] = block
        for worker in self.workers[: threads - 1]:
            worker.wake()
        self.lead.call(self.address, threads)


class _Worker:
    """One thread: follows while there is work, then waits on its lock."""

    def __init__(self, crew: _Crew) -> None:
        self.crew = crew
        self.gate = threading.Lock()
        self.gate.acquire()
        self.asleep = True
        threading.Thread(target=self.serve, name="topos worker", daemon=True).start()

    def wake(self) -> None:
        """Opens the gate of a worker that sleeps."""
        if self.asleep:
            self.asleep = False
            self.gate.release()

    def serve(self) -> None:
        """Helps whenever woken, for as long as the process lives."""
        while True:
            self.gate.acquire()
            self.crew.follow.call(self.crew.address, SPINS)
            self.asleep = True
