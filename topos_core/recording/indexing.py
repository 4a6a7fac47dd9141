"""Indexing: slices, integers, None and Ellipsis as movement; index arrays and recorded indices as gathers."""

from __future__ import annotations

import math
import operator
from typing import Any, NamedTuple

import numpy as np

from topos_core.recording import lookup, movement
from topos_core.recording.formulas import fresh as fresh
from topos_core.recording.value import Value
from topos_core.tape.type import INTEGERS


class _Basic(NamedTuple):
    """The basic part of an index: per operand axis a slice, whether to reverse it, and the shape that results."""

    start: list[int]
    stop: list[int]
    step: list[int]
    reversed: list[int]


class _Chosen(NamedTuple):
    """What a static mask chooses along one of its axes, and the extent that the indexed axis must have."""

    places: np.ndarray
    extent: int


def getitem(x: Value, key: Any) -> tuple[Value, bool]:
    """Records `x[key]`; tells too whether NumPy would have copied."""
    keys = _expanded(x, key)
    if any(isinstance(k, (np.ndarray, Value)) for k in keys):
        return _advanced(x, keys), True
    basic = _Basic([], [], [], [])
    shape: list[int] = []
    axis = 0
    for k in keys:
        if k is Ellipsis:
            continue
        if k is None:
            shape.append(1)
            continue
        length = _basic(x, axis, k, basic)
        if length is not None:
            shape.append(length)
        axis += 1
    scalar = not shape and not _has_ellipsis(key)  # NumPy gives a scalar, which shares no memory
    result = movement.reshape(_moved(x, basic), tuple(shape))
    return (fresh(result), True) if scalar else (result, False)


def _has_ellipsis(key: Any) -> bool:
    return key is Ellipsis or (isinstance(key, tuple) and any(k is Ellipsis for k in key))


def _expanded(x: Value, key: Any) -> list[Any]:
    """Turns an index into one entry per operand axis, with None where an axis is added; masks become index arrays."""
    keys: list[Any] = []
    for k in key if isinstance(key, tuple) else (key,):
        keys.extend(_normal(x, k))
    if not any(k is Ellipsis for k in keys):
        keys.append(Ellipsis)
    if _ellipses(keys) > 1:
        raise x.recorder.error("an index holds two ellipses; keep one")
    taken = sum(k is not None and k is not Ellipsis for k in keys)
    if taken > x.ndim:
        raise x.recorder.error(f"too many indices: {x.type} has {x.ndim} axes, {taken} are indexed")
    at = next(i for i, k in enumerate(keys) if k is Ellipsis)
    keys[at + 1 : at + 1] = [slice(None)] * (x.ndim - taken)  # the ellipsis stays: even an empty one parts index arrays
    axis = 0
    for place, k in enumerate(keys):
        if isinstance(k, _Chosen):
            if k.extent != x.type.shape[axis]:
                raise x.recorder.error(
                    f"a mask of {k.extent} over axis {axis} of {x.type}, which has {x.type.shape[axis]}; make them equal"
                )
            keys[place] = k.places
        axis += k is not None and k is not Ellipsis
    return keys


def _ellipses(keys: list[Any]) -> int:
    """Counts ellipses by identity: a recorded value would answer `==` with a value."""
    return sum(k is Ellipsis for k in keys)


def _normal(x: Value, k: Any) -> list[Any]:
    r = x.recorder
    if k is None or k is Ellipsis:
        return [k]
    if isinstance(k, slice):
        if any(isinstance(bound, Value) for bound in (k.start, k.stop, k.step)):
            raise r.error(
                "a slice bound is a recorded value, so the length would depend on data; slice by numbers, or mask with np.where"
            )
        return [k]
    if isinstance(k, Value):
        if k.type.dtype == "bool":
            raise r.error("a recorded mask selects as many elements as the data says; write np.where(mask, x, 0)")
        if k.type.dtype not in INTEGERS:
            raise r.error(f"an index of dtype {k.type.dtype}; cast it to an integer dtype")
        return [k]
    if isinstance(k, (bool, np.bool_)):
        raise r.error("indexing by a single bool is not recorded; write x[None] or x[:0]")
    if isinstance(k, (list, tuple, range, np.ndarray)):
        table = np.asarray(k) if not isinstance(k, (list, tuple, range)) or len(k) else np.zeros(0, np.int64)
        if table.dtype == bool:
            return [_Chosen(places, extent) for places, extent in zip(table.nonzero(), table.shape, strict=True)]
        if table.dtype.kind not in "iu":
            raise r.error(f"an index array of dtype {table.dtype}; use integers or bools")
        return [int(table)] if table.ndim == 0 else [table]
    try:
        return [operator.index(k)]
    except TypeError:
        raise r.error(
            f"an index of type {type(k).__name__}; use integers, slices, None, Ellipsis or integer arrays"
        ) from None


def _basic(x: Value, axis: int, k: Any, basic: _Basic) -> int | None:
    """Adds one axis's slice; gives the extent that it leaves, or None for an integer, which drops the axis."""
    extent = x.type.shape[axis]
    if isinstance(k, slice):
        try:
            first, end, step = k.indices(extent)
        except (TypeError, ValueError) as error:
            raise x.recorder.error(f"slice of axis {axis} of {x.type}: {error}") from None
        length = len(range(first, end, step))
        if step < 0:  # a reversed ascending slice
            first, step = first + (length - 1) * step, -step
            if length > 1:
                basic.reversed.append(axis)
        basic.start.append(first if length else 0)
        basic.stop.append(first + (length - 1) * step + 1 if length else 0)
        basic.step.append(step if length > 1 else 1)
        return length
    if not -extent <= k < extent:
        raise x.recorder.error(f"index {k} is out of range for axis {axis} of {x.type}; it has {extent} elements")
    basic.start.append(k % extent)
    basic.stop.append(k % extent + 1)
    basic.step.append(1)
    return None


def _moved(x: Value, basic: _Basic) -> Value:
    result = movement.cut(x, basic.start, basic.stop, basic.step)
    return movement.flip(result, tuple(basic.reversed)) if basic.reversed else result


def _advanced(x: Value, keys: list[Any]) -> Value:
    """Applies the basic part, merges the indexed axes into one, and gathers along it, as NumPy places the result."""
    r = x.recorder
    basic = _Basic([], [], [], [])
    indexed: list[tuple[int, Any]] = []  # (operand axis, index)
    layout: list[tuple[str, int]] = []  # what the result is made of, in order: a kept axis, a new one, an index, a gap
    axis = 0
    for k in keys:
        if k is None or k is Ellipsis:
            layout.append(("new", 1) if k is None else ("gap", 0))
            continue
        if isinstance(k, slice):
            length = _basic(x, axis, k, basic)
            layout.append(("kept", length or 0))
        else:
            basic.start.append(0)
            basic.stop.append(x.type.shape[axis])
            basic.step.append(1)
            if isinstance(k, int) and not -x.type.shape[axis] <= k < x.type.shape[axis]:
                raise r.error(
                    f"index {k} is out of range for axis {axis} of {x.type}; it has {x.type.shape[axis]} elements"
                )
            layout.append(("index", axis))
            indexed.append((axis, k))
        axis += 1
    sliced = _moved(x, basic)
    axes = [at for at, _ in indexed]
    rest = [at for at in range(x.ndim) if at not in axes]
    places = [position for position, (what, _) in enumerate(layout) if what == "index"]
    together = places == list(range(places[0], places[0] + len(places)))
    before = sum(what == "kept" for what, _ in layout[: places[0]]) if together else 0
    front = rest[:before]
    ordered = movement.permute(sliced, [*front, *axes, *rest[before:]])
    extents = [x.type.shape[at] for at in axes]
    lead = tuple(sliced.type.shape[at] for at in front)
    tail = tuple(sliced.type.shape[at] for at in rest[before:])
    merged = movement.reshape(ordered, (*lead, math.prod(extents), *tail))
    index = _linear(x, [k for _, k in indexed], extents, axes)
    found = lookup.gather(merged, index, len(lead))
    index_shape = tuple(np.shape(index)) if not isinstance(index, Value) else index.type.shape
    shape: list[int] = [] if together else list(index_shape)
    for position, (what, length) in enumerate(layout):
        if what in ("kept", "new"):
            shape.append(length)
        elif what == "index" and together and position == places[0]:
            shape.extend(index_shape)
    return movement.reshape(found, tuple(shape))


def _linear(x: Value, indices: list[Any], extents: list[int], axes: list[int]) -> Any:
    """Counts one index over the merged axes: static where every index is."""
    if len(indices) == 1:
        return indices[0]
    strides = movement.row_major_strides(extents)
    counted = [
        lookup.inside(k, extent) if isinstance(k, Value) else lookup.static_indices(x, k, extent, axis)
        for k, extent, axis in zip(indices, extents, axes, strict=True)
    ]
    shapes = [k.shape for k in counted]
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        shown = " and ".join(str(list(shape)) for shape in shapes)
        raise x.recorder.error(f"index arrays of shapes {shown} do not broadcast together") from None
    total: Any = None
    for k, stride in zip(counted, strides, strict=True):
        part = k * stride if stride != 1 else k
        total = part if total is None else total + part
    return total
