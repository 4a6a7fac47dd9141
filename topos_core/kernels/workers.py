"""Worker threads for kernels.

A job is a kernel and its block. The caller leads: it takes part itself and also does what nobody else has claimed, so a
job never waits for a thread that the machine has not woken yet. A worker that has run out of work stays awake in native
code for some microseconds, because a plan's kernels follow one another closely, then sleeps; a busy machine therefore
never sees threads spin for long. A job that comes while the crew is busy with another caller's runs on its caller alone.

Workers live in native code and sleep on locks of the interpreter's that need no interpreter lock: a worker that had to
ask for it, to say that it sleeps or to wake, missed the job that its caller had just begun (`bodies/crew.py`). They may run
on every processor of the caller's but the one that it runs on itself: the machine often wakes a worker where its waker
is, and there it waits for the caller while the caller waits for it (`processors.py`).
"""

from __future__ import annotations

import ctypes
import os
import threading
import time
from array import array
from functools import cache
from typing import Any, Final

from topos_core.kernels.library import Kernel, kernel
from topos_core.kernels.processors import apart, current_processor
from topos_core.kernels.vocabulary.blocks import CREW, LINE, WORKER, index

SPINS: Final = 4000
"""Pauses that an idle worker stays awake for: 40 to 150 microseconds."""
SPREAD_SECONDS: Final = 0.05
"""How long workers stay where they were sent while their caller does not move; its processors may have changed by then."""
MOST: Final = 32
"""Threads that a job can have: a ticket has so many bits for slots."""
_WORD: Final = 8


def run_on(threads: int, job: Kernel, block: array[int]) -> None:
    """Runs a kernel on up to so many threads, the calling one included; every slot of the job runs exactly once.

    Args:
        threads: At least 2.
        job: A kernel of a block whose first word is the address of its counters, for one worker.
        block: Its argument block.
    """
    crew = _crews().get(os.getpid()) or _hired(os.getpid())
    if not crew.busy.acquire(blocking=False):
        job.call(block.buffer_info()[0], 0)
        return
    try:
        crew.run(min(threads, MOST), job, block)
    finally:
        crew.busy.release()


@cache
def _crews() -> dict[int, _Crew]:
    """Keeps each process' crew; a forked child hires its own."""
    return {}


_crews()  # before any thread can need it


def _hired(process: int) -> _Crew:
    """Gives the process' crew that is hired first: threads may meet here, and a crew is one for all."""
    return _crews().setdefault(process, _Crew())


def ask() -> tuple[Kernel, Kernel]:
    """Asks for what starts and what holds the crew's threads, so that they are there when a run has several first."""
    return kernel("crew", "lead"), kernel("crew", "follow")


class _Crew:
    """The threads of one process and the words that they share.

    The words are never freed: workers still look at them while the interpreter ends.
    """

    def __init__(self) -> None:
        self.busy = threading.Lock()
        self.lead, self.follow = ask()
        for each in (self.lead, self.follow):
            assert each.address  # before there are threads: a fork must meet none of them while it compiles
        lines = -(-len(CREW) * _WORD // LINE)
        python = ctypes.pythonapi
        python.PyMem_RawCalloc.restype = ctypes.c_size_t
        start: int = python.PyMem_RawCalloc(ctypes.c_size_t(lines + 2 * MOST + 1), ctypes.c_size_t(LINE))
        if not start:
            raise MemoryError
        self.address = start + -start % LINE
        self.words = (ctypes.c_int64 * len(CREW)).from_address(self.address)
        self.counters = self.address + lines * LINE
        self._set("counters", self.counters)
        self._set("workers", self.counters + (MOST + 1) * LINE)
        self._set("lock", _address(python.PyThread_acquire_lock))
        self._set("unlock", _address(python.PyThread_release_lock))
        self._set("spins", SPINS)
        self.workers: list[threading.Thread] = []
        self.placed = (-1, 0)
        self.until = 0.0

    def run(self, threads: int, job: Kernel, block: array[int]) -> None:
        while len(self.workers) < threads - 1:
            self.workers.append(self._hire(len(self.workers)))
        self._spread()
        words = self.words
        block[0] = self.counters
        words[_KERNEL], words[_BLOCK], words[_HELPERS] = job.address, block.buffer_info()[0], threads - 1
        self.lead.call(self.address, threads)

    def _hire(self, number: int) -> threading.Thread:
        """Starts a thread that follows for as long as the process lives."""
        address = self.words[index(CREW, "workers")] + number * len(WORKER) * _WORD
        words = (ctypes.c_int64 * len(WORKER)).from_address(address)
        words[index(WORKER, "crew")] = self.address
        words[index(WORKER, "gate")] = _closed_gate()
        words[index(WORKER, "slot")] = number + 1
        thread = threading.Thread(target=self.follow.call, args=(address, 0), name="topos worker", daemon=True)
        thread.start()
        return thread

    def _spread(self) -> None:
        """Keeps workers off the processor that the caller runs on."""
        placed, now = (current_processor(), len(self.workers)), time.monotonic()
        if placed == self.placed and now < self.until:
            return
        self.placed, self.until = placed, now + SPREAD_SECONDS
        for worker in self.workers:
            apart(worker, placed[0])

    def _set(self, name: str, value: int) -> None:
        self.words[index(CREW, name)] = value


_KERNEL: Final = index(CREW, "kernel")
_BLOCK: Final = index(CREW, "block")
_HELPERS: Final = index(CREW, "helpers")


def _closed_gate() -> int:
    """Makes a lock that is taken; never freed, since its worker never leaves."""
    python = ctypes.pythonapi
    python.PyThread_allocate_lock.restype = ctypes.c_size_t
    gate: int = python.PyThread_allocate_lock()
    if not gate:
        raise MemoryError
    python.PyThread_acquire_lock(ctypes.c_size_t(gate), 1)
    return gate


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0
