"""Large pieces of memory that a program uses again: an arena per run, and what callers give back by dropping it.

A piece goes back when the last array that looks at it is gone, views included. Fresh pages cost more than most kernels:
64 MB from the system take 30 ms to touch, from the pool none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from topos_core.kernels.launch import address_of

POOLED_BYTES: Final = 256 << 10
"""Smaller pieces are the allocator's, which keeps them itself."""
KEPT: Final = 4
"""Free pieces of one size that wait for the next taker."""
PAGE: Final = 4096
PLACE: Final = 2048
"""Where in a page every piece starts. Large arrays of the allocator start at 16: were a result to start just behind, at 64, a loop's
loads would wait for stores to the same place in another page. gelu of 4M elements takes 1.49 ms from 16 to 2048, and 1.85 to 64."""


class Pool:
    """Free memory by size. Taking and giving back are single operations on lists, so threads and finalizers may mix."""

    __slots__ = ("free",)

    def __init__(self) -> None:
        self.free: dict[int, list[Piece]] = {}

    def memory(self, size: int) -> np.ndarray:
        """Gives so many uninitialised bytes, at `PLACE` in a page where they are pooled."""
        if size < POOLED_BYTES:
            return np.empty(size, np.uint8)
        waiting = self.free.setdefault(size, [])
        try:
            piece = waiting.pop()
        except IndexError:
            piece = _piece(size)
        return np.asarray(_Lease(piece, waiting))


class Piece(NamedTuple):
    """Memory, and how NumPy is told of the part that is lent: made once, since every run borrows.

    Args:
        memory: A page larger than what is lent.
        interface: NumPy's array interface of what is lent.
    """

    memory: np.ndarray
    interface: Mapping[str, Any]


def _piece(size: int) -> Piece:
    memory = np.empty(size + PAGE, np.uint8)
    start = address_of(memory)
    place = start + (PLACE - start) % PAGE
    return Piece(memory, {"data": (place, False), "shape": (size,), "typestr": "|u1", "version": 3})


class _Lease:
    """A piece that is in use; numpy keeps it alive as the base of the arrays that look at it."""

    __slots__ = ("__array_interface__", "piece", "waiting")

    def __init__(self, piece: Piece, waiting: list[Piece]) -> None:
        self.piece, self.waiting = piece, waiting
        self.__array_interface__ = piece.interface

    def __del__(self) -> None:
        if len(self.waiting) < KEPT:
            self.waiting.append(self.piece)
