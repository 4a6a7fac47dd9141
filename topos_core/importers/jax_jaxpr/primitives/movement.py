"""Shapes, slices, pads, joins and lookups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from topos_core.importers.jax_jaxpr.equation import Equation, Translate, Unsupported
from topos_core.recording import elementwise, joining, movement
from topos_core.recording.value import Value
from topos_core.tape.type import FLOATS


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
    """A slice at literal places; JAX moves places that reach over the end."""
    starts = equation.literals[1:]
    if any(start is None for start in starts):
        raise Unsupported("it slices at a place that only a run knows")
    sizes = equation.params["slice_sizes"]
    low = [
        min(max(int(start), 0), extent - size)
        for start, extent, size in zip(starts, equation.x.shape, sizes, strict=True)
    ]
    return movement.cut(equation.x, low, [start + size for start, size in zip(low, sizes, strict=True)])


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
    """Rows of one axis by a column of indices: what `x[i]`, `jnp.take` and embeddings make."""
    x, indices = equation.operands
    numbers, sizes = equation.params["dimension_numbers"], equation.params["slice_sizes"]
    if len(numbers.start_index_map) != 1 or numbers.operand_batching_dims or indices.shape[-1] != 1:
        raise Unsupported("it looks up by several axes at once")
    axis = numbers.start_index_map[0]
    whole = all(size == extent for at, (size, extent) in enumerate(zip(sizes, x.shape, strict=True)) if at != axis)
    if tuple(numbers.collapsed_slice_dims) != (axis,) or not whole or sizes[axis] != 1:
        raise Unsupported("it looks up windows, not rows")
    rows = movement.reshape(indices, indices.shape[:-1])
    places = elementwise.cast(rows, "i32" if rows.type.dtype == "i32" else "i64")
    inside = elementwise.clip(places, 0, x.shape[axis] - 1)
    found = equation.recorder.record("gather", (x, inside), {"axis": axis})
    if "FILL" in str(equation.params["mode"]):
        fill = equation.params["fill_value"]
        if fill is None:
            fill = np.nan if x.type.dtype in FLOATS else 0
        lead = (*(1,) * axis, *rows.shape, *(1,) * (x.ndim - axis - 1))
        found = elementwise.select(movement.reshape(elementwise.apply(np.equal, (places, inside)), lead), found, fill)
    offsets = [at for at in range(found.ndim) if not axis <= at < axis + rows.ndim]
    order: list[int] = []
    batch, slices = iter(range(axis, axis + rows.ndim)), iter(offsets)
    for at in range(found.ndim):
        order.append(next(slices if at in numbers.offset_dims else batch))
    return movement.transpose(found, tuple(order))


def _expand(equation: Equation) -> Any:
    return movement.reshape(equation.x, equation.result.shape)


PRIMITIVES: Final[Mapping[str, Translate]] = {
    "broadcast_in_dim": _broadcast, "reshape": _reshape, "squeeze": _squeeze, "expand_dims": _expand,
    "transpose": _transpose, "rev": _reverse, "concatenate": _concatenate, "split": _split, "slice": _slice,
    "dynamic_slice": _dynamic_slice, "pad": _pad, "iota": _iota, "gather": _gather,
}  # fmt: skip
