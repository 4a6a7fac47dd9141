"""Movement: reshape, permute, broadcast, slice, reverse, pad, strided. What changes nothing gives its operand back."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from topos_core.recording.axes import one_axis, some_axes
from topos_core.recording.value import Value
from topos_core.tape.type import numpy_dtype


def extents_of(x: Value, shape: Any) -> tuple[int, ...]:
    """Reads a shape as users write it: an integer or a sequence of integers."""
    given = shape if isinstance(shape, (tuple, list, np.ndarray)) else (shape,)
    try:
        return tuple(operator.index(extent) for extent in given)
    except TypeError:
        raise x.recorder.error(f"shape {shape!r} is not made of integers") from None


def reshape(x: Value, shape: Any, order: str | None = "C") -> Value:
    """Gives the same elements in row-major order; one extent may be -1."""
    if order not in ("C", "A", "K", None):
        raise x.recorder.error(f"order={order!r} is not recorded; write x.T.reshape(...).T, or permute first")
    extents = extents_of(x, shape)
    if -1 in extents:
        known = -math.prod(extents)
        if extents.count(-1) > 1 or known == 0 or x.size % known:
            raise x.recorder.error(f"reshape: {x.type} has {x.size} elements, which do not fill {list(extents)}")
        extents = tuple(x.size // known if extent == -1 else extent for extent in extents)
    return x if extents == x.type.shape else x.recorder.record("reshape", (x,), {"shape": extents})


def permute(x: Value, order: Sequence[int]) -> Value:
    """Result axis k is operand axis order[k]."""
    order = tuple(order)
    return x if order == tuple(range(x.ndim)) else x.recorder.record("permute", (x,), {"order": order})


def transpose(x: Value, axes: Any = None) -> Value:
    """Reorders the axes; reverses them without an order."""
    if axes is None:
        return permute(x, range(x.ndim)[::-1])
    order = some_axes(x, axes)
    if len(order) != x.ndim:
        raise x.recorder.error(
            f"transpose: {x.type} has {x.ndim} axes, the order {list(order)} names {len(order)}; name each once"
        )
    return permute(x, order)


def matrix_transpose(x: Value) -> Value:
    """Swaps the last two axes."""
    if x.ndim < 2:
        raise x.recorder.error(f"matrix transpose of {x.type}: at least two axes are needed")
    return swapaxes(x, -1, -2)


def swapaxes(x: Value, axis1: Any, axis2: Any) -> Value:
    """Exchanges two axes."""
    first, second = one_axis(x, axis1), one_axis(x, axis2)
    order = list(range(x.ndim))
    order[first], order[second] = second, first
    return permute(x, order)


def moveaxis(x: Value, source: Any, destination: Any) -> Value:
    """Moves axes to new places; the others keep their order."""
    moved, targets = some_axes(x, source), some_axes(x, destination)
    if len(moved) != len(targets):
        raise x.recorder.error(f"moveaxis: {len(moved)} axes to {len(targets)} places; give as many of both")
    order = [axis for axis in range(x.ndim) if axis not in moved]
    for target, axis in sorted(zip(targets, moved, strict=True)):
        order.insert(target, axis)
    return permute(x, order)


def rollaxis(x: Value, axis: Any, start: int = 0) -> Value:
    """Moves an axis in front of another, as np.rollaxis."""
    moved = one_axis(x, axis)
    target = one_axis(x, start, x.ndim + 1)
    order = [each for each in range(x.ndim) if each != moved]
    order.insert(target - (moved < target), moved)
    return permute(x, order)


def expand_dims(x: Value, axis: Any) -> Value:
    """Adds axes of extent 1 at the places that they have in the result."""
    rank = x.ndim + (len(axis) if isinstance(axis, (tuple, list)) else 1)
    added = some_axes(x, axis, rank)
    rest = iter(x.type.shape)
    return reshape(x, tuple(1 if at in added else next(rest) for at in range(rank)))


def squeeze(x: Value, axis: Any = None) -> Value:
    """Drops axes of extent 1."""
    dropped = [at for at, extent in enumerate(x.type.shape) if extent == 1] if axis is None else some_axes(x, axis)
    for at in dropped:
        if x.type.shape[at] != 1:
            raise x.recorder.error(
                f"squeeze: axis {at} of {x.type} has extent {x.type.shape[at]}, not 1; index or reduce it"
            )
    return reshape(x, tuple(extent for at, extent in enumerate(x.type.shape) if at not in dropped))


def broadcast_to(x: Value, shape: Any) -> Value:
    """Repeats along axes of extent 1 and along new leading axes."""
    return spread(x, extents_of(x, shape))


def spread(x: Value, shape: tuple[int, ...]) -> Value:
    """Broadcasts to a checked shape."""
    return x if x.type.shape == shape else x.recorder.record("broadcast", (x,), {"shape": shape})


def flip(x: Value, axis: Any = None) -> Value:
    """Reverses axes; all of them without an axis."""
    axes = tuple(sorted(some_axes(x, axis)))
    return x.recorder.record("reverse", (x,), {"axes": axes}) if axes else x


def fliplr(x: Value) -> Value:
    """Reverses axis 1."""
    return flip(x, 1)


def flipud(x: Value) -> Value:
    """Reverses axis 0."""
    return flip(x, 0)


def rot90(x: Value, k: int = 1, axes: Any = (0, 1)) -> Value:
    """Turns by 90 degrees, k times, from the first axis towards the second."""
    first, second = some_axes(x, axes)
    turns = operator.index(k) % 4
    if turns == 2:
        return flip(x, (first, second))
    if turns == 1:
        return swapaxes(flip(x, second), first, second)
    return flip(swapaxes(x, first, second), second) if turns else x


def cut(x: Value, start: Sequence[int], stop: Sequence[int], step: Sequence[int] | None = None) -> Value:
    """Slices every axis by checked non-negative bounds."""
    step = (1,) * x.ndim if step is None else tuple(step)
    start, stop = tuple(start), tuple(stop)
    if start == (0,) * x.ndim and stop == x.type.shape and step == (1,) * x.ndim:
        return x
    return x.recorder.record("slice", (x,), {"start": start, "stop": stop, "step": step})


def cut_axis(x: Value, axis: int, start: int, stop: int) -> Value:
    """Slices one axis by checked bounds."""
    lows, highs = [0] * x.ndim, list(x.type.shape)
    lows[axis], highs[axis] = start, stop
    return cut(x, lows, highs)


def pad_with(
    x: Value, low: Sequence[int], high: Sequence[int], fill: Any, interior: Sequence[int] | None = None
) -> Value:
    """Adds `low` and `high` elements at the ends of each axis (negative ones crop) and `interior` between neighbours."""
    between = (0,) * x.ndim if interior is None else tuple(interior)
    low, high = tuple(low), tuple(high)
    if not any(low) and not any(high) and not any(between):
        return x
    filled = numpy_dtype(x.type.dtype).type(fill)
    return x.recorder.record("pad", (x,), {"fill": filled, "low": low, "high": high, "interior": between})


def strided(x: Value, shape: Sequence[int], strides: Sequence[int], offset: int = 0) -> Value:
    """Reads the row-major elements of x at offset + sum(index * stride)."""
    attributes = {"shape": tuple(shape), "strides": tuple(strides), "offset": offset}
    return x.recorder.record("strided", (x,), attributes)


def row_major_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Gives the strides of a contiguous array, in elements."""
    strides = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * shape[axis + 1]
    return tuple(strides)


def diagonal(x: Value, offset: int = 0, axis1: Any = 0, axis2: Any = 1) -> Value:
    """Gives the diagonal of two axes as the last axis."""
    if x.ndim < 2:
        raise x.recorder.error(f"diagonal of {x.type}: at least two axes are needed")
    first, second = one_axis(x, axis1), one_axis(x, axis2)
    if first == second:
        raise x.recorder.error(f"diagonal: axis1 and axis2 are both {first}; name two axes")
    rest = [axis for axis in range(x.ndim) if axis not in (first, second)]
    ordered = permute(x, [*rest, first, second])
    rows, columns = ordered.type.shape[-2:]
    start = offset if offset >= 0 else -offset * columns
    length = max(0, min(rows + min(offset, 0), columns - max(offset, 0)))
    lead = ordered.type.shape[:-2]
    if length == 0:
        return reshape(cut_axis(ordered, len(lead), 0, 0), (*lead, 0))
    return strided(ordered, (*lead, length), (*row_major_strides(ordered.type.shape)[:-2], columns + 1), start)
