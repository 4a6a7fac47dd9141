"""Views: how a node that shares its operand's memory follows it, and how the operand follows a changed view."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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

    def restore(old: Value, new: Value) -> Value | None:
        return None if step != 1 else _spliced(old, new, axis, low, high)

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


def _unknown(call: Call, x: Value, *rest: Any) -> Pair:
    shape = call.shape
    return lambda base: movement.spread(base, shape), lambda old, new: None


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
