"""Putting values together and taking them apart: concatenate, stack, split and their kin."""

from __future__ import annotations

import builtins
import itertools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from topos_core.recording import constant, elementwise, formulas, movement, views
from topos_core.recording.axes import one_axis
from topos_core.recording.recorder import Recorder, recorder_of
from topos_core.recording.value import Value


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


def _leaves(arrays: Any) -> list[Any]:
    return [leaf for part in arrays for leaf in _leaves(part)] if isinstance(arrays, list) else [arrays]


def _depth(arrays: Any) -> int:
    return 1 + builtins.max((_depth(part) for part in arrays), default=0) if isinstance(arrays, list) else 0


def _recorder_within(arrays: Any) -> Recorder:
    return recorder_of(*_leaves(arrays))
