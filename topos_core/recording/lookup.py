"""Lookups: index arrays and recorded indices as gathers; indices below 0 count from the end, as in NumPy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from topos_core.ops.lookup import outside
from topos_core.recording import constant, elementwise, movement
from topos_core.recording.axes import flattens, one_axis
from topos_core.recording.bounds import bounds_of, is_never_negative
from topos_core.recording.recorder import recorder_of
from topos_core.recording.value import Value
from topos_core.tape.type import INTEGERS


def take(x: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Value:
    """Records np.take: a gather, or a slice for one static index."""
    recorder = recorder_of(x, indices)
    if out is not None:
        raise recorder.error("np.take(out=...) writes into an array; use the returned value")
    x = constant.lift(recorder, x)
    if flattens(x, axis):
        x, axis = movement.reshape(x, (-1,)), 0
    at = one_axis(x, axis)
    extent = x.type.shape[at]
    if not isinstance(indices, Value):
        static = np.asarray(indices)
        if mode == "clip":
            static = np.clip(static, 0, extent - 1)
        elif mode == "wrap":
            static = static % extent
        indices = static
    elif mode == "clip":
        indices = elementwise.clip(indices, 0, extent - 1)
    elif mode == "wrap":
        indices = indices % extent
    return gather(x, indices, at)


def gather(x: Value, indices: Any, axis: int, *, from_end: bool = True) -> Value:
    """Replaces an axis by the axes of an integer index; recorded indices below 0 count from the end, if `from_end`."""
    extent = x.type.shape[axis]
    if not isinstance(indices, Value):
        static = static_indices(x, indices, extent, axis)
        if static.ndim == 0:
            at = int(static)
            lead = x.type.shape[:axis]
            return movement.reshape(movement.cut_axis(x, axis, at, at + 1), (*lead, *x.type.shape[axis + 1 :]))
        return x.recorder.record("gather", (x, constant.table(x.recorder, static, "i64")), {"axis": axis})
    return x.recorder.record("gather", (x, counted(indices, extent, from_end=from_end)), {"axis": axis})


def take_along_axis(x: Any, indices: Any, axis: Any = -1, *, from_end: bool = True) -> Value:
    """Records np.take_along_axis: a gather over the elements, counted row by row.

    `from_end`: whether an index below 0 counts from the end; otherwise it is out of range.
    """
    recorder = recorder_of(x, indices)
    x, indices = (constant.lift(recorder, each) for each in (x, indices))
    if axis is None:
        x, axis = movement.reshape(x, (-1,)), 0
    at = one_axis(x, axis)
    if indices.ndim != x.ndim:
        raise recorder.error(
            f"take_along_axis: {x.type} and indices {indices.type} differ in rank; reshape the indices"
        )
    shapes = [tuple(1 if k == at else extent for k, extent in enumerate(each.type.shape)) for each in (x, indices)]
    try:
        rows = np.broadcast_shapes(*shapes)
    except ValueError:
        raise recorder.error(
            f"take_along_axis: {x.type} and indices {indices.type} do not broadcast outside axis {at}"
        ) from None
    indices = inside(indices, x.type.shape[at], from_end=from_end)
    wide = [
        movement.moveaxis(movement.spread(each, (*rows[:at], each.type.shape[at], *rows[at + 1 :])), at, -1)
        for each in (x, indices)
    ]
    extent = x.type.shape[at]
    outer = wide[0].type.shape[:-1]
    first = (np.arange(math.prod(outer)) * extent).reshape(*outer, 1)
    places = elementwise.apply(np.add, (wide[1], first))
    found = x.recorder.record("gather", (movement.reshape(wide[0], (-1,)), places), {"axis": 0})
    return movement.moveaxis(found, -1, at)


def static_indices(x: Value, indices: Any, extent: int, axis: int) -> np.ndarray:
    """Checks an index array and counts what is below 0 from the end; i64."""
    table = np.asarray(indices).astype(np.int64)
    if table.size and (table.min() < -extent or table.max() >= extent):
        worst = int(table.min()) if table.min() < -extent else int(table.max())
        raise x.recorder.error(f"index {worst} is out of range for axis {axis} of {x.type}; it has {extent} elements")
    return np.where(table < 0, table + extent, table)


def inside(indices: Value, extent: int, *, from_end: bool = True) -> Value:
    """Counts indices of an axis that is merged with others, each held to its own extent: merged, one may lie elsewhere.

    What is known to lie inside needs no op for it. Raises as `counted` does.
    """
    low, known = _lowest(indices, extent, from_end), bounds_of(indices)
    is_held = indices.size == 0 or (low <= known.low and known.high < extent) or _is_constant(indices)
    held = indices if is_held else indices.recorder.record("within", (indices,), {"low": low, "high": extent})
    return counted(held, extent, from_end=from_end)


def counted(indices: Value, extent: int, *, from_end: bool = True) -> Value:
    """Casts indices to i32 or i64 and counts those below 0 from the end, unless none can be.

    Args:
        indices: Recorded integers.
        extent: How many elements the axis has.
        from_end: Whether an index below 0 counts from the end; otherwise it is out of range.

    Raises:
        RecordingError: The indices are no integers, or constant and outside.
    """
    low = _lowest(indices, extent, from_end)
    if _is_constant(indices) and indices.size:
        known = bounds_of(indices)
        worst = known.low if known.low < low else known.high
        if not low <= worst < extent:
            raise indices.recorder.error(outside(int(worst), low, extent))
    wide = indices if indices.type.dtype == "i32" and extent < 2**31 else elementwise.cast(indices, "i64")
    return elementwise.select(wide < 0, wide + extent, wide) if low < 0 else wide


def _lowest(indices: Value, extent: int, from_end: bool) -> int:
    """Gives the lowest index that may be: 0 where none counts from the end."""
    if indices.type.dtype not in INTEGERS:
        raise indices.recorder.error(f"indices are {indices.type}; cast them to an integer dtype")
    return -extent if from_end and not is_never_negative(indices) else 0


def _is_constant(indices: Value) -> bool:
    return indices.recorder.ops[indices.index].name == "constant"
