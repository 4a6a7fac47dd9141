"""Putting values together and taking them apart: concatenate, stack, split, pad, roll, tile, repeat and their kin."""

from __future__ import annotations

import builtins
import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from topos_core.recording import constant, elementwise, formulas, indexing, movement, views
from topos_core.recording.axes import one_axis, some_axes
from topos_core.recording.recorder import Recorder, recorder_of
from topos_core.recording.value import Value
from topos_core.tape.type import numpy_dtype


def concatenate(arrays: Any, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind") -> Value:
    """Records np.concatenate."""
    recorder = recorder_of(arrays)
    if out is not None:
        raise recorder.error("np.concatenate(out=...) writes into an array; use the returned value")
    values = _lifted(recorder, arrays)
    if axis is None:
        values, axis = [movement.reshape(value, (-1,)) for value in values], 0
    if not values[0].ndim:
        raise recorder.error("concatenate of scalar values; use np.stack")
    wanted = elementwise.common(recorder, tuple(values)) if dtype is None else constant.dtype_named(recorder, dtype)
    at = one_axis(values[0], axis)
    cast = tuple(elementwise.cast(value, wanted) for value in values)
    return recorder.record("concat", cast, {"axis": at}) if len(cast) > 1 else formulas.fresh(cast[0])


def stack(arrays: Any, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind") -> Value:
    """Records np.stack: every value gets a new axis, then they are concatenated."""
    recorder = recorder_of(arrays)
    values = _lifted(recorder, arrays)
    for value in values:
        if value.type.shape != values[0].type.shape:
            raise recorder.error(
                f"stack: {values[0].type} and {value.type} have different shapes; np.concatenate joins along an axis"
            )
    return concatenate([movement.expand_dims(value, axis) for value in values], axis, out, dtype=dtype)


def vstack(arrays: Any, *, dtype: Any = None, casting: str = "same_kind") -> Value:
    """Records np.vstack."""
    return concatenate([atleast(value, 2) for value in _lifted(recorder_of(arrays), arrays)], 0, dtype=dtype)


def hstack(arrays: Any, *, dtype: Any = None, casting: str = "same_kind") -> Value:
    """Records np.hstack."""
    values = [atleast(value, 1) for value in _lifted(recorder_of(arrays), arrays)]
    return concatenate(values, 0 if values[0].ndim == 1 else 1, dtype=dtype)


def dstack(arrays: Any) -> Value:
    """Records np.dstack."""
    return concatenate([atleast(value, 3) for value in _lifted(recorder_of(arrays), arrays)], 2)


def column_stack(arrays: Any) -> Value:
    """Records np.column_stack: vectors become columns."""
    values = _lifted(recorder_of(arrays), arrays)
    return concatenate([value if value.ndim > 1 else movement.reshape(value, (value.size, 1)) for value in values], 1)


def append(x: Any, values: Any, axis: Any = None) -> Value:
    """Records np.append."""
    recorder = recorder_of(x, values)
    return concatenate([constant.lift(recorder, x), constant.lift(recorder, values)], axis)


def block(arrays: Any) -> Value:
    """Records np.block: nested lists are joined along the last axis, then the one before, and so on."""
    recorder = _recorder_within(arrays)
    depth = _depth(arrays)

    def join(part: Any, level: int) -> Value:
        if not isinstance(part, list):
            return atleast_leading(constant.lift(recorder, part), rank)
        return concatenate([join(each, level - 1) for each in part], -level)

    rank = builtins.max(depth, *(np.ndim(leaf) for leaf in _leaves(arrays)))
    return formulas.fresh(join(arrays, depth)) if not isinstance(arrays, list) else join(arrays, depth)


def atleast(x: Value, rank: int) -> Value:
    """Records np.atleast_1d, 2d and 3d."""
    shape = x.type.shape
    if len(shape) >= rank:
        return x
    if rank == 3 and len(shape) == 2:
        return movement.reshape(x, (*shape, 1))
    if rank == 3 and len(shape) == 1:
        return movement.reshape(x, (1, *shape, 1))
    return atleast_leading(x, rank)


def atleast_leading(x: Value, rank: int) -> Value:
    """Adds leading axes of extent 1."""
    return movement.reshape(x, (*(1,) * (rank - x.ndim), *x.type.shape))


def each_atleast(rank: int) -> Callable[..., Any]:
    """Makes np.atleast_<rank>d: one value for one operand, a tuple for several."""

    def function(*arrays: Any) -> Any:
        recorder = recorder_of(*arrays)
        found = []
        for array in arrays:
            value = constant.lift(recorder, array)
            found.append(views.shared(value, atleast(value, rank)))
        return found[0] if len(found) == 1 else tuple(found)

    return function


def split(x: Value, parts: Any, axis: Any = 0, *, uneven: bool = False) -> list[Value]:
    """Records np.split and np.array_split: slices."""
    at = one_axis(x, axis)
    extent = x.type.shape[at]
    if isinstance(parts, (int, np.integer)):
        count = int(parts)
        if count < 1 or (extent % count and not uneven):
            raise x.recorder.error(
                f"split: axis {at} of {x.type} has {extent} elements, which do not divide into {count}; np.array_split may be uneven"
            )
        sizes = [extent // count + (k < extent % count) for k in range(count)]
        cuts = list(itertools.accumulate(sizes))[:-1]
    else:
        cuts = [operator.index(cut) for cut in parts]
    lead = (slice(None),) * at
    return [views.getitem(x, (*lead, slice(a, b))) for a, b in itertools.pairwise([0, *cuts, None])]


def unstack(x: Value, *, axis: Any = 0) -> tuple[Value, ...]:
    """Records np.unstack: every index along an axis."""
    lead = (slice(None),) * one_axis(x, axis)
    return tuple(views.getitem(x, (*lead, k)) for k in range(x.type.shape[one_axis(x, axis)]))


def pad(x: Value, pad_width: Any, mode: Any = "constant", **keywords: Any) -> Value:
    """Records np.pad: `constant` by the pad op, `edge reflect symmetric wrap` by gathers."""
    recorder = x.recorder
    widths = _widths(x, pad_width)
    if mode == "constant":
        fills = keywords.pop("constant_values", 0)
        _no_more(recorder, "np.pad", keywords)
        if isinstance(fills, Value):
            raise recorder.error("np.pad with a recorded fill is not recorded; pad with 0 and use np.where")
        if np.ndim(fills) == 0:
            low, high = zip(*widths, strict=True) if widths else ((), ())
            return formulas.fresh(movement.pad_with(x, low, high, _fill(x, fills)))
        return _pad_sides(x, widths, np.broadcast_to(np.asarray(fills), (x.ndim, 2)))
    if mode not in ("edge", "reflect", "symmetric", "wrap"):
        raise recorder.error(f"np.pad(mode={mode!r}) is not recorded; use constant, edge, reflect, symmetric or wrap")
    result = x
    for axis, width in enumerate(widths):
        if any(width):
            result = indexing.gather(result, np.pad(np.arange(x.type.shape[axis]), width, mode=mode, **keywords), axis)
    return formulas.fresh(result)


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
    if axis is None:
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
    return indexing.gather(x, np.repeat(np.arange(shape[at]), counts), at)


def diff(x: Any, n: int = 1, axis: Any = -1, prepend: Any = None, append: Any = None) -> Value:
    """Records np.diff: neighbours subtracted, n times."""
    recorder = recorder_of(x, prepend, append)
    value = constant.lift(recorder, x)
    if n == 0:
        return value  # NumPy gives the operand itself, not a copy
    at = one_axis(value, axis)
    column = tuple(1 if k == at else extent for k, extent in enumerate(value.type.shape))
    ends = [value]
    for end, place in ((prepend, 0), (append, 2)):
        if end is not None:
            other = constant.lift(recorder, end)
            ends.insert(place, movement.spread(other, column) if other.ndim == 0 else other)
    result = concatenate(ends, at) if len(ends) > 1 else value
    for _ in range(n):
        extent = result.type.shape[at]
        later = movement.cut_axis(result, at, builtins.min(1, extent), extent)
        earlier = movement.cut_axis(result, at, 0, builtins.max(extent - 1, 0))
        result = elementwise.apply(np.not_equal if value.type.dtype == "bool" else np.subtract, (later, earlier))
    return result


def meshgrid(*arrays: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> tuple[Value, ...]:
    """Records np.meshgrid: every vector along its own axis, broadcast."""
    recorder = recorder_of(*arrays)
    vectors = [movement.reshape(constant.lift(recorder, array), (-1,)) for array in arrays]
    axes = list(range(len(vectors)))
    if indexing == "xy" and len(vectors) > 1:
        axes[0], axes[1] = 1, 0
    shape = [0] * len(vectors)
    for vector, at in zip(vectors, axes, strict=True):
        shape[at] = vector.size
    grids = []
    for vector, at in zip(vectors, axes, strict=True):
        line = movement.reshape(vector, tuple(vector.size if k == at else 1 for k in range(len(vectors))))
        grids.append(formulas.fresh(line if sparse else movement.spread(line, tuple(shape))))
    return tuple(grids)


def broadcast_arrays(*arrays: Any, subok: bool = False) -> tuple[Value, ...]:
    """Records np.broadcast_arrays."""
    recorder = recorder_of(*arrays)
    values = [constant.lift(recorder, array) for array in arrays]
    try:
        shape = np.broadcast_shapes(*(value.type.shape for value in values))
    except ValueError:
        shown = " and ".join(str(value.type) for value in values)
        raise recorder.error(
            f"broadcast_arrays: {shown} do not broadcast together; trailing extents must be equal or 1"
        ) from None
    return tuple(views.shared(value, movement.spread(value, shape)) for value in values)


def _lifted(recorder: Recorder, arrays: Any) -> list[Value]:
    if isinstance(arrays, Value):
        return list(arrays)
    values = [constant.lift(recorder, array) for array in arrays]
    if not values:
        raise recorder.error("nothing to join; give at least one array")
    return values


def _widths(x: Value, pad_width: Any) -> list[tuple[int, int]]:
    given: Any = pad_width
    if isinstance(pad_width, dict):
        by_axis = {one_axis(x, axis): np.broadcast_to(width, 2) for axis, width in pad_width.items()}
        given = [by_axis.get(axis, (0, 0)) for axis in range(x.ndim)]
    try:
        widths = np.broadcast_to(np.asarray(given), (x.ndim, 2))
    except ValueError:
        raise x.recorder.error(
            f"np.pad of {x.type}: pad_width {pad_width!r} does not fit; give (before, after) per axis"
        ) from None
    if widths.dtype.kind not in "iu" or widths.min(initial=0) < 0:
        raise x.recorder.error(f"np.pad: pad_width {pad_width!r} must be made of integers from 0; slice to crop")
    return [(int(low), int(high)) for low, high in widths]


def _fill(x: Value, fill: Any) -> Any:
    return np.asarray(fill).astype(numpy_dtype(x.type.dtype))[()]


def _pad_sides(x: Value, widths: Sequence[tuple[int, int]], fills: np.ndarray) -> Value:
    """Pads axis after axis, each side with its own fill: the corners are those of the last axis, as in NumPy."""
    result = x
    for axis, (width, fill) in enumerate(zip(widths, fills, strict=True)):
        for side in (0, 1):
            low, high = [0] * x.ndim, [0] * x.ndim
            (low, high)[side][axis] = width[side]
            result = movement.pad_with(result, low, high, _fill(x, fill[side]))
    return formulas.fresh(result)


def _roll_axis(x: Value, shift: Any, axis: int) -> Value:
    extent = x.type.shape[axis]
    by = operator.index(shift) % extent if extent else 0
    if not by:
        return x
    parts = (movement.cut_axis(x, axis, extent - by, extent), movement.cut_axis(x, axis, 0, extent - by))
    return x.recorder.record("concat", parts, {"axis": axis})


def _no_more(recorder: Recorder, name: str, keywords: dict[str, Any]) -> None:
    if keywords:
        raise recorder.error(f"{name}({', '.join(keywords)}=...) is not recorded; leave it out")


def _leaves(arrays: Any) -> list[Any]:
    return [leaf for part in arrays for leaf in _leaves(part)] if isinstance(arrays, list) else [arrays]


def _depth(arrays: Any) -> int:
    return 1 + builtins.max((_depth(part) for part in arrays), default=0) if isinstance(arrays, list) else 0


def _recorder_within(arrays: Any) -> Recorder:
    return recorder_of(*_leaves(arrays))
