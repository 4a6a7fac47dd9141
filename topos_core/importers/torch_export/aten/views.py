"""Views: how a node that shares its operand's memory follows it, and how the operand follows a changed view."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from topos_core.importers.torch_export.aten import movement as forms
from topos_core.importers.torch_export.call import Call
from topos_core.recording import movement
from topos_core.recording.value import Value

Pair = tuple[Callable[[Value], Value], Callable[[Value, Value], "Value | None"]]


def _same(call: Call, x: Value, *rest: Any) -> Pair:
    return lambda base: base, lambda _, new: new


def _reshaped(call: Call, x: Value, *rest: Any) -> Pair:
    shape = call.shape
    return lambda base: movement.reshape(base, shape), lambda old, new: movement.reshape(new, old.type.shape)


def _permuted(order_of: Callable[..., tuple[int, ...]]) -> Callable[..., Pair]:
    def pair(call: Call, x: Value, *rest: Any) -> Pair:
        order = order_of(x, *rest)
        inverse = tuple(int(at) for at in np.argsort(order))
        return lambda base: movement.permute(base, order), lambda _, new: movement.permute(new, inverse)

    return pair


def _cut(call: Call, x: Value, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Pair:
    axis, low, high = forms.bounds(x, dim, start, end)

    def replay(base: Value) -> Value:
        return forms.sliced(base, axis, low, high, step)

    def restore(old: Value, new: Value) -> Value:
        return _spliced(old, new, axis, low, high) if step == 1 else _spread(old, new, axis, low, step)

    return replay, restore


def _chosen(call: Call, x: Value, dim: int, index: int) -> Pair:
    axis = dim % x.ndim
    at = index % x.type.shape[axis]
    kept = (*x.type.shape[:axis], 1, *x.type.shape[axis + 1 :])
    shape = (*x.type.shape[:axis], *x.type.shape[axis + 1 :])
    return (
        lambda base: movement.reshape(movement.cut_axis(base, axis, at, at + 1), shape),
        lambda old, new: _spliced(old, movement.reshape(new, kept), axis, at, at + 1),
    )


def _spliced(old: Value, new: Value, axis: int, low: int, high: int) -> Value:
    extent = old.type.shape[axis]
    parts = [new]
    if low > 0:
        parts.insert(0, movement.cut_axis(old, axis, 0, low))
    if high < extent:
        parts.append(movement.cut_axis(old, axis, high, extent))
    joined: Any = np.concatenate(parts, axis=axis) if len(parts) > 1 else new
    return joined  # type: ignore[no-any-return]


def _spread(old: Value, new: Value, axis: int, low: int, step: int) -> Value:
    """Puts every `step`-th element of an axis, from `low` on, back among those between them."""
    extent, count = old.type.shape[axis], new.type.shape[axis]
    if count == 0:
        return old
    at = np.arange(extent)
    taken = (at >= low) & ((at - low) % step == 0)
    before, between, after = ([0] * old.ndim for _ in range(3))
    before[axis], between[axis], after[axis] = low, step - 1, extent - low - (count - 1) * step - 1
    placed = movement.pad_with(new, before, after, np.zeros((), new.dtype), between)
    whole: Any = np.where(taken.reshape([-1 if each == axis else 1 for each in range(old.ndim)]), placed, old)
    return whole  # type: ignore[no-any-return]


def part_of(call: Call, name: str, x: Value, dim: int, extents: Sequence[int], index: int) -> Pair:
    """Says how one of the parts that `unbind`, `split` and `chunk` cut an axis into shares memory with the whole.

    Args:
        call: The call that reads the part.
        name: The op that made the parts.
        x: The whole.
        dim: The axis.
        extents: What of the axis each part holds.
        index: Which part is meant.
    """
    if name == "unbind":
        return _chosen(call, x, dim, index)
    low = sum(extents[:index])
    return _cut(call, x, dim, low, low + extents[index])


def _unknown(call: Call, x: Value, *rest: Any) -> Pair:
    shape = call.shape
    return lambda base: movement.spread(base, shape), lambda old, new: None


PARTS: Final = frozenset(("unbind", "split", "split_with_sizes", "chunk", "tensor_split"))
"""Ops whose results are views of parts; the axis is their last argument."""

VIEWS: Final[Mapping[str, Callable[..., Pair]]] = {
    **dict.fromkeys(("detach", "alias", "lift_fresh", "view_as"), _same),
    **dict.fromkeys(("view", "reshape", "flatten", "unflatten", "unsqueeze", "squeeze", "_unsafe_view"), _reshaped),
    "transpose": _permuted(lambda x, first, second: forms.swapped(x, first, second)),
    "permute": _permuted(lambda x, dims: tuple(dim % x.ndim for dim in dims)),
    "t": _permuted(lambda x: tuple(range(x.ndim))[::-1]),
    "slice": _cut,
    "select": _chosen,
    **dict.fromkeys(("expand", "expand_as", "broadcast_to"), _unknown),
}
