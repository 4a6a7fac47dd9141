"""Rolling, tiling and repeating: slices and broadcasts; copies, as in NumPy."""

from __future__ import annotations

import builtins
import operator
from typing import Any

import numpy as np

from topos_core.recording import formulas, lookup, movement
from topos_core.recording.axes import flattens, one_axis, some_axes
from topos_core.recording.value import Value


def roll(x: Value, shift: Any, axis: Any = None) -> Value:
    """Records np.roll: two slices, swapped."""
    if axis is None:
        flat = movement.reshape(x, (-1,))
        total = builtins.sum(shift) if isinstance(shift, (tuple, list)) else shift
        return formulas.fresh(movement.reshape(_roll_axis(flat, total, 0), x.type.shape))
    axes = some_axes(x, axis, repeated=True)
    shifts = tuple(shift) if isinstance(shift, (tuple, list)) else (shift,) * len(axes)
    if len(axes) == 1:
        axes = axes * len(shifts)
    if len(shifts) != len(axes):
        raise x.recorder.error(f"roll: {len(shifts)} shifts along {len(axes)} axes; give one per axis")
    result = x
    for at, by in zip(axes, shifts, strict=True):
        result = _roll_axis(result, by, at)
    return formulas.fresh(result)


def tile(x: Value, reps: Any) -> Value:
    """Records np.tile: a broadcast along new axes."""
    counts = movement.extents_of(x, reps)
    rank = builtins.max(len(counts), x.ndim)
    counts = (1,) * (rank - len(counts)) + counts
    shape = (1,) * (rank - x.ndim) + x.type.shape
    spaced = movement.reshape(x, tuple(each for extent in shape for each in (1, extent)))
    wide = movement.spread(
        spaced, tuple(each for count, extent in zip(counts, shape, strict=True) for each in (count, extent))
    )
    return formulas.fresh(
        movement.reshape(wide, tuple(count * extent for count, extent in zip(counts, shape, strict=True)))
    )


def repeat(x: Value, repeats: Any, axis: Any = None) -> Value:
    """Records np.repeat: a broadcast for one count, a gather for one count per element."""
    if flattens(x, axis):
        x, axis = movement.reshape(x, (-1,)), 0
    at = one_axis(x, axis)
    if isinstance(repeats, Value):
        raise x.recorder.error("np.repeat by a recorded count: the length would depend on data; repeat by a number")
    counts = np.asarray(repeats)
    shape = x.type.shape
    if counts.size == 1:
        count = int(counts.reshape(()))
        spaced = movement.reshape(x, (*shape[: at + 1], 1, *shape[at + 1 :]))
        wide = movement.spread(spaced, (*shape[: at + 1], count, *shape[at + 1 :]))
        return formulas.fresh(movement.reshape(wide, (*shape[:at], shape[at] * count, *shape[at + 1 :])))
    if counts.shape != (shape[at],):
        raise x.recorder.error(f"repeat: {counts.size} counts for axis {at} of {x.type}; give one, or one per element")
    return lookup.gather(x, np.repeat(np.arange(shape[at]), counts), at)


def _roll_axis(x: Value, shift: Any, axis: int) -> Value:
    extent = x.type.shape[axis]
    by = operator.index(shift) % extent if extent else 0
    if not by:
        return x
    parts = (movement.cut_axis(x, axis, extent - by, extent), movement.cut_axis(x, axis, 0, extent - by))
    return x.recorder.record("concat", parts, {"axis": axis})
