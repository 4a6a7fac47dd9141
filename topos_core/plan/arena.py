"""Where buffers lie in a run's arena: one piece of memory whose parts are used again as soon as nobody reads them.

What the caller gets lies outside: those buffers are the caller's own.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from topos_core.plan.liveness import Buffer

LINE: Final = 64
"""Buffers start on cache lines."""


@dataclass(frozen=True, slots=True)
class Arena:
    """The layout of one run's memory.

    Args:
        bytes: Its size.
        offsets: Where each buffer starts that lies in it; others are allocated one by one.
        outside: Bytes of those, which the caller gets.
    """

    bytes: int
    offsets: Mapping[int, int]
    outside: int


def lay_out(buffers: Sequence[Buffer]) -> Arena:
    """Places buffers in the order in which they are made, each into the smallest gap that holds it.

    With n buffers and at most g gaps at a time it takes n log n + n g steps.
    """
    last: dict[int, list[Buffer]] = {}
    for buffer in buffers:
        if buffer.dropped is not None:
            last.setdefault(buffer.dropped, []).append(buffer)
    waiting = sorted(last)
    offsets: dict[int, int] = {}
    gaps = _Gaps()
    at = 0
    for buffer in buffers:
        while at < len(waiting) and waiting[at] < buffer.made:
            for old in last[waiting[at]]:
                gaps.give(offsets[old.value], _rounded(old.bytes))
            at += 1
        if buffer.dropped is not None:
            offsets[buffer.value] = gaps.take(_rounded(buffer.bytes))
    outside = sum(buffer.bytes for buffer in buffers if buffer.dropped is None)
    return Arena(gaps.end, offsets, outside)


def _rounded(size: int) -> int:
    return size + -size % LINE


class _Gaps:
    """Free parts between the used ones, by where they start; what lies beyond `end` was never used."""

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.sizes: dict[int, int] = {}
        self.end = 0

    def take(self, size: int) -> int:
        fitting = [(self.sizes[start], start) for start in self.starts if self.sizes[start] >= size]
        if fitting:
            _, start = min(fitting)
            left = self._remove(start) - size
            if left:
                self._add(start + size, left)
            return start
        start = self.end
        if self.starts and self.starts[-1] + self.sizes[self.starts[-1]] == self.end:
            start = self.starts[-1]
            self._remove(start)
        self.end = start + size
        return start

    def give(self, start: int, size: int) -> None:
        place = bisect_left(self.starts, start)
        if place < len(self.starts) and self.starts[place] == start + size:
            size += self._remove(start + size)
        if place and self.starts[place - 1] + self.sizes[self.starts[place - 1]] == start:
            start = self.starts[place - 1]
            size += self._remove(start)
        self._add(start, size)

    def _add(self, start: int, size: int) -> None:
        insort(self.starts, start)
        self.sizes[start] = size

    def _remove(self, start: int) -> int:
        del self.starts[bisect_left(self.starts, start)]
        return self.sizes.pop(start)
