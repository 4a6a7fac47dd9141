"""Large buffers that a program uses again: within a run, from run to run, and when the caller drops a result.

A buffer goes back when the last array that looks at it is gone, views included, so nobody has to predict lifetimes.
Fresh pages cost more than most kernels: 64 MB from the system take 30 ms to touch, from the pool none.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

POOLED_BYTES: Final = 256 << 10
"""Smaller arrays are the allocator's, which keeps them itself."""
KEPT: Final = 4
"""Free buffers of one size that wait for the next taker."""
ALIGNMENT: Final = 64


class Pool:
    """Free buffers by size. Taking and giving back are single operations on lists, so threads and finalizers may mix."""

    __slots__ = ("free",)

    def __init__(self) -> None:
        self.free: dict[int, list[np.ndarray]] = {}

    def empty(self, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        """Gives an uninitialised C-contiguous array."""
        size = math.prod(shape) * dtype.itemsize
        if size < POOLED_BYTES:
            return np.empty(shape, dtype)
        rounded = size_class(size)
        waiting = self.free.setdefault(rounded, [])
        try:
            memory = waiting.pop()
        except IndexError:
            memory = np.empty(rounded + ALIGNMENT, np.uint8)
        return np.asarray(_Lease(memory, waiting, size)).view(dtype).reshape(shape)


class _Lease:
    """Memory that is in use; numpy keeps it alive as the base of the arrays that look at it."""

    __slots__ = ("__array_interface__", "memory", "waiting")

    def __init__(self, memory: np.ndarray, waiting: list[np.ndarray], size: int) -> None:
        self.memory, self.waiting = memory, waiting
        start = memory.__array_interface__["data"][0]
        self.__array_interface__ = {
            "data": (start + -start % ALIGNMENT, False), "shape": (size,), "typestr": "|u1", "version": 3,
        }  # fmt: skip

    def __del__(self) -> None:
        if len(self.waiting) < KEPT:
            self.waiting.append(self.memory)


def size_class(size: int) -> int:
    """Rounds up to an eighth of the power of two below, so that at most an eighth is wasted."""
    step = 1 << max(0, size.bit_length() - 4)
    return -(-size // step) * step
