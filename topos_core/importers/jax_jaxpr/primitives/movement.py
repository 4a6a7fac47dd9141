"""Shapes, slices, pads, joins and lookups."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from topos_core.importers.jax_jaxpr.equation import Equation, Translate, Unsupported
from topos_core.recording import elementwise, joining, movement
from topos_core.recording.value import Value
from topos_core.tape.type import FLOATS, TensorType


def _broadcast(equation: Equation) -> Value:
    shape, axes, x = equation.params["shape"], equation.params["broadcast_dimensions"], equation.x
    kept = tuple(x.shape[axes.index(at)] if at in axes else 1 for at in range(len(shape)))
    return movement.spread(movement.reshape(x, kept) if x.ndim else x, tuple(shape))


def _reshape(equation: Equation) -> Value:
    if equation.params.get("dimensions") is not None:
        raise Unsupported("it reorders axes while it reshapes")
    return movement.reshape(equation.x, tuple(equation.params["new_sizes"]))


def _squeeze(equation: Equation) -> Value:
    return movement.reshape(equation.x, equation.result.shape)


def _transpose(equation: Equation) -> Value:
    return movement.transpose(equation.x, tuple(equation.params["permutation"]))


def _reverse(equation: Equation) -> Value:
    return movement.flip(equation.x, tuple(equation.params["dimensions"]))


def _concatenate(equation: Equation) -> Value:
    return joining.concatenate(list(equation.operands), equation.params["dimension"])


def _split(equation: Equation) -> list[Value]:
    axis, sizes = equation.params["axis"], equation.params["sizes"]
    ends = np.cumsum(sizes)
    return [
        movement.cut_axis(equation.x, axis, int(end - size), int(end)) for end, size in zip(ends, sizes, strict=True)
    ]


def _slice(equation: Equation) -> Value:
    params = equation.params
    return movement.cut(equation.x, params["start_indices"], params["limit_indices"], params["strides"])


def _dynamic_slice(equation: Equation) -> Value:
    """A slice at places that may be known in a run alone; JAX moves places that reach over the end."""
    x = equation.x
    for axis, size in enumerate(equation.params["slice_sizes"]):
        extent = x.shape[axis]
        start = _start(equation, 1 + axis, extent - size)
        if isinstance(start, int):
            x = movement.cut_axis(x, axis, start, start + size)
        else:
            places = elementwise.apply(np.add, (_counted(equation, size), start))
            x = equation.recorder.record("gather", (x, places), {"axis": axis})
    return x


def _dynamic_update_slice(equation: Equation) -> Value:
    """Writes the second operand into the first, at places that may be known in a run alone."""
    x, update = equation.operands[:2]
    inside: Value | None = None
    for axis, (size, extent) in enumerate(zip(update.shape, x.shape, strict=True)):
        start = _start(equation, 2 + axis, extent - size)
        away = elementwise.apply(np.subtract, (_counted(equation, extent), start))
        held = elementwise.apply(np.logical_and, (away >= 0, away < size))
        row = movement.reshape(held, tuple(extent if at == axis else 1 for at in range(x.ndim)))
        inside = row if inside is None else elementwise.apply(np.logical_and, (inside, row))
        if size:
            near = elementwise.clip(away, 0, size - 1)
            update = equation.recorder.record("gather", (update, near), {"axis": axis})
    if inside is None:
        return update
    return x if 0 in equation.operands[1].shape else elementwise.select(inside, update, x)


def _start(equation: Equation, operand: int, last: int) -> int | Value:
    """Gives where a slice starts, moved to where it fits: a number where it is known."""
    number = equation.literals[operand]
    if number is not None:
        return min(max(int(number), 0), last)
    given = equation.operands[operand]
    return elementwise.cast(elementwise.clip(elementwise.cast(given, "i64"), 0, last), "i64")


def _counted(equation: Equation, extent: int) -> Value:
    return equation.recorder.record("iota", (), {"type": TensorType("i64", (extent,)), "axis": 0})


def _pad(equation: Equation) -> Value:
    x, number = equation.x, equation.literals[1]
    low, high, between = (tuple(int(each[at]) for each in equation.params["padding_config"]) for at in range(3))
    if number is not None:
        return movement.pad_with(x, low, high, np.asarray(number)[()], between)
    from topos_core.recording import constant

    inside = movement.pad_with(constant.splat(x.recorder, True, "bool", x.shape), low, high, False, between)
    return elementwise.select(inside, movement.pad_with(x, low, high, 0, between), equation.operands[1])


def _iota(equation: Equation) -> Value:
    return equation.recorder.record("iota", (), {"type": equation.result, "axis": int(equation.params["dimension"])})


def _gather(equation: Equation) -> Value:
    """Rows by indices, of one axis or of several at once: what `x[i]`, `x[i, j]`, `jnp.take` and embeddings make."""
    x, indices = equation.operands
    numbers, sizes = equation.params["dimension_numbers"], equation.params["slice_sizes"]
    axes = tuple(numbers.start_index_map)
    if numbers.operand_batching_dims or indices.shape[-1] != len(axes) or not axes:
        raise Unsupported("it looks up within batches of its own")
    whole = all(
        size == (1 if at in axes else extent) for at, (size, extent) in enumerate(zip(sizes, x.shape, strict=True))
    )
    if set(numbers.collapsed_slice_dims) != set(axes) or not whole:
        raise Unsupported("it looks up windows, not rows")
    if len(axes) > 1:  # as one axis: the indexed ones come first and count as one
        kept = [at for at in range(x.ndim) if at not in axes]
        extents = [x.shape[at] for at in axes]
        x = movement.reshape(movement.transpose(x, (*axes, *kept)), (math.prod(extents), *(x.shape[at] for at in kept)))
        axis = 0
    else:
        (axis,) = axes
        extents = [x.shape[axis]]
    rows, inside = _rows(indices, extents)
    found = equation.recorder.record("gather", (x, rows), {"axis": axis})
    if "FILL" in str(equation.params["mode"]):
        fill = equation.params["fill_value"]
        if fill is None:
            fill = np.nan if x.type.dtype in FLOATS else 0
        lead = (*(1,) * axis, *rows.shape, *(1,) * (x.ndim - axis - 1))
        found = elementwise.select(movement.reshape(inside, lead), found, fill)
    offsets = [at for at in range(found.ndim) if not axis <= at < axis + rows.ndim]
    order: list[int] = []
    batch, slices = iter(range(axis, axis + rows.ndim)), iter(offsets)
    for at in range(found.ndim):
        order.append(next(slices if at in numbers.offset_dims else batch))
    return movement.transpose(found, tuple(order))


def _rows(indices: Value, extents: Sequence[int]) -> tuple[Value, Value]:
    """Gives one number for every row of indices, each moved into its extent, and whether none had to be moved."""
    rows: Value | None = None
    inside: Value | None = None
    for at, extent in enumerate(extents):
        column = movement.reshape(movement.cut_axis(indices, indices.ndim - 1, at, at + 1), indices.shape[:-1])
        places = elementwise.cast(column, "i32" if column.type.dtype == "i32" and len(extents) == 1 else "i64")
        near = elementwise.clip(places, 0, extent - 1)
        kept = elementwise.apply(np.equal, (places, near))
        rows = (
            near if rows is None else elementwise.apply(np.add, (elementwise.apply(np.multiply, (rows, extent)), near))
        )
        inside = kept if inside is None else elementwise.apply(np.logical_and, (inside, kept))
    assert rows is not None
    assert inside is not None
    return rows, inside


def _expand(equation: Equation) -> Any:
    return movement.reshape(equation.x, equation.result.shape)


PRIMITIVES: Final[Mapping[str, Translate]] = {
    "broadcast_in_dim": _broadcast, "reshape": _reshape, "squeeze": _squeeze, "expand_dims": _expand,
    "transpose": _transpose, "rev": _reverse, "concatenate": _concatenate, "split": _split, "slice": _slice,
    "dynamic_slice": _dynamic_slice, "dynamic_update_slice": _dynamic_update_slice, "pad": _pad, "iota": _iota, "gather": _gather,
}  # fmt: skip
