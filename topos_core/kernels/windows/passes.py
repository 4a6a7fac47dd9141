"""Cuts a reduction over several windowed axes into passes over one or two neighbouring ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from topos_core.matching.facts import Window

NOTHING = Window()


class Pass(NamedTuple):
    """One reduction of [outer, rows, columns, inner] to [outer, result_rows, result_columns, inner]."""

    outer: int
    rows: int
    columns: int
    inner: int
    down: Window
    across: Window

    @property
    def result_rows(self) -> int:
        """Counts rows of the result."""
        return positions(self.rows, self.down)

    @property
    def result_columns(self) -> int:
        """Counts columns of the result."""
        return positions(self.columns, self.across)

    @property
    def line(self) -> int:
        """Counts the columns that the windows of one result row read, borders included."""
        return max(
            0, (self.result_columns - 1) * self.across.stride + (self.across.size - 1) * self.across.dilation + 1
        )

    @property
    def result_size(self) -> int:
        """Counts elements of the result."""
        return self.outer * self.result_rows * self.result_columns * self.inner


def passes(shape: Sequence[int], windows: Sequence[Window]) -> tuple[Pass, ...]:
    """Pairs neighbouring windowed axes from the last one on; each pass sees the result of the ones before."""
    sliding = [axis for axis, window in enumerate(windows) if window != NOTHING]
    groups: list[tuple[int, ...]] = []
    while sliding:
        axis = sliding.pop()
        if sliding and sliding[-1] == axis - 1:
            groups.append((sliding.pop(), axis))
        else:
            groups.append((axis,))
    extents = list(shape)
    result = []
    for group in reversed(groups):
        result.append(_pass(extents, windows, group))
        for axis in group:
            extents[axis] = positions(extents[axis], windows[axis])
    return tuple(result) or (Pass(1, 1, math.prod(shape), 1, NOTHING, NOTHING),)


def _pass(extents: Sequence[int], windows: Sequence[Window], group: tuple[int, ...]) -> Pass:
    first, last = group[0], group[-1]
    outer, inner = math.prod(extents[:first]), math.prod(extents[last + 1 :])
    if len(group) == 2:
        return Pass(outer, extents[first], extents[last], inner, windows[first], windows[last])
    if inner == 1:
        return Pass(outer, 1, extents[last], 1, NOTHING, windows[last])
    return Pass(outer, extents[first], inner, 1, windows[first], NOTHING)


def positions(extent: int, window: Window) -> int:
    """Counts where a window fits."""
    reach = (window.size - 1) * window.dilation + 1
    return max(0, (extent + window.low + window.high - reach) // window.stride + 1)
