"""How many elements each window has: what an average divides by that leaves its padding out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from topos_core.matching.context import Context
from topos_core.matching.facts import Layout, Sides, Window, WindowReduceFacts
from topos_core.matching.view import View, read

LARGEST: Final = 1 << 16
"""Elements of a table of counts that is looked at."""


def divisors(windows: Sequence[Window], counted: Sequence[Sides], shape: Sequence[int]) -> np.ndarray:
    """Gives what each position divides by: i64, one axis per axis of x, extent 1 where nothing slides."""
    table = np.ones((1,) * len(shape), np.int64)
    for axis, (window, sides, extent) in enumerate(zip(windows, counted, shape, strict=True)):
        if window != Window():
            along = [-1 if k == axis else 1 for k in range(len(shape))]
            table = table * _taps(window, sides, extent).reshape(along)
    return table


def counted_by_ones(
    facts: WindowReduceFacts, shape: Sequence[int], ones: WindowReduceFacts, other: Sequence[int]
) -> tuple[Sides, ...] | None:
    """Says what an average counts beside its image that is divided by the same windows over ones.

    Args:
        facts: The sum over windows.
        shape: Extents of its image.
        ones: The sum over windows of an image of ones; its axes are the last ones of the other.
        other: Extents of that image; 1 where nothing slides.
    """
    if ones.reducer != "sum" or ones.pad_fill not in (None, 0.0) or len(other) > len(shape):
        return None
    first = len(shape) - len(other)
    counted: list[Sides] = [(0, 0)] * len(shape)
    for axis, window in enumerate(facts.windows):
        same = ones.windows[axis - first] if axis >= first else Window()
        if window == same == Window():
            continue
        if (window.size, window.stride, window.dilation) != (same.size, same.stride, same.dilation):
            return None
        if window.base_dilation != 1 or same.base_dilation != 1:
            return None
        extent, ones_extent = shape[axis], other[axis - first]
        before = window.low - same.low
        counted[axis] = sides = (before, ones_extent - before - extent)
        if min(sides) < 0:
            return None  # ones that do not cover the image
        if _positions(window, extent) != _positions(same, ones_extent):
            return None
    return tuple(counted)


def counted_by_table(
    context: Context, facts: WindowReduceFacts, shape: Sequence[int], number: int
) -> tuple[Sides, ...] | None:
    """Says whether a divisor is a constant table of the elements that each window has in the image."""
    view = context.view(number)
    table = _constant(context, view)
    if table is None or table.ndim != len(shape):
        return None
    counted = ((0, 0),) * len(shape)
    expected = divisors(facts.windows, counted, shape)
    table, expected = np.broadcast_arrays(table, expected)
    return counted if np.array_equal(table, expected) else None


def is_unmoved(layout: Layout, shape: Sequence[int]) -> bool:
    """Says whether a result's axes are those of its image, in their places."""
    return layout.shape == tuple(shape) and layout.roles == tuple(str(axis) for axis in range(len(shape)))


def repeated(view: View, shape: Sequence[int]) -> bool:
    """Says whether a view repeats its base along leading or unit axes and moves nothing, as broadcasting does."""
    if view.bounds or any(view.offsets) or view.base < 0 or len(view.base_shape) > len(view.axes):
        return False
    first = len(view.axes) - len(view.base_shape)
    for axis, digits in enumerate(view.axes):
        own = axis - first
        for digit in digits:
            moves = [(k, step) for k, step in enumerate(digit.coefficients) if step]
            if moves and (len(digits) != 1 or moves != [(own, 1)] or digit.extent != view.base_shape[own]):
                return False
        if own >= 0 and view.base_shape[own] != 1 and not any(any(digit.coefficients) for digit in digits):
            return False
    return len(view.axes) == len(shape)


def _taps(window: Window, counted: Sides, extent: int) -> np.ndarray:
    """Counts the taps of each window along one axis that lie in the image or at most `counted` beside it."""
    first = np.arange(_positions(window, extent)) * window.stride - window.low
    taps = first[:, None] + np.arange(window.size) * window.dilation
    counts: np.ndarray = ((taps >= -counted[0]) & (taps < extent + counted[1])).sum(axis=1)
    return counts


def _positions(window: Window, extent: int) -> int:
    reach = (window.size - 1) * window.dilation + 1
    return max(0, (extent + window.low + window.high - reach) // window.stride + 1)


def _constant(context: Context, view: View) -> np.ndarray | None:
    """Gives a constant's elements as a view reads them, extent 1 along axes that repeat it; casts are passed."""
    if view.base < 0:
        return None
    op = context.op(view.base)
    if op.name == "cast":
        base = _constant(context, context.view(op.operands[0]))
    elif op.name == "constant" and isinstance(op.attributes["value"], np.ndarray):
        base = op.attributes["value"]
    else:
        return None
    if base is None or base.size > LARGEST or base.ndim != len(view.base_shape):
        return None
    if op.name == "cast":
        base = np.broadcast_to(base, view.base_shape)
    axes = tuple(axis if any(any(digit.coefficients) for digit in axis) else () for axis in view.axes)
    return read(view._replace(axes=axes), base)
