"""What both batch norm raises share: one feature axis, vectors, and the way back to the root's layout."""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

from topos_core.emission.builder import Builder, Ssa
from topos_core.emission.syntax import literal, tensor
from topos_core.matching.facts import Layout
from topos_core.tape.type import TensorType


class Form(NamedTuple):
    """A value as a norm reads it: `axes` holds each axis's (role, rank, extent); exactly one has the role `c`."""

    value: Ssa
    axes: tuple[tuple[str, int, int], ...]

    @property
    def feature(self) -> int:
        """The feature axis."""
        return next(k for k, (role, _, _) in enumerate(self.axes) if role == "c")


def featured(builder: Builder, x: Ssa, layout: Layout) -> Form:
    """Reshapes x so that its channels are one axis; transposes where they stand apart or out of order."""
    axes = _form_axes(layout)
    if axes is not None:
        return Form(builder.reshape(x, tuple(extent for _, _, extent in axes), "image"), axes)
    order = _canonical(layout)
    digits = builder.transpose(builder.reshape(x, layout.shape, "image_digits"), order, "image_order")
    reduced = tuple(("n", layout.rank[k], layout.shape[k]) for k in order if layout.roles[k] == "n")
    axes = (*reduced, ("c", 0, _channels(layout)))
    return Form(builder.reshape(digits, tuple(extent for _, _, extent in axes), "image"), axes)


def stays(form: Form, layout: Layout, shape: tuple[int, ...]) -> bool:
    """Tells whether the norm's result is the root's value as it is."""
    return form.value.shape == shape and _same_order(form, layout)


def unfeatured(builder: Builder, form: Form, layout: Layout, shape: tuple[int, ...]) -> Ssa:
    """Brings a norm's result to the root's layout and shape."""
    if _same_order(form, layout):
        return builder.reshape(form.value, shape)
    reduced = sorted((k for k, (role, _, _) in enumerate(form.axes) if role == "n"), key=lambda k: form.axes[k][1])
    flat = builder.transpose(form.value, [*reduced, form.feature], "features_last")
    order = _canonical(layout)
    digits = builder.reshape(flat, tuple(layout.shape[k] for k in order), "digits")
    back = [order.index(k) for k in range(len(order))]
    return builder.reshape(builder.transpose(digits, back, "" if layout.shape == shape else "order"), shape)


def vector(builder: Builder, given: Ssa | None, default: float, channels: int, dtype: str, word: str) -> Ssa:
    """Gives one element a channel: the binding reshaped, a scalar repeated, or the default."""
    kind = TensorType(dtype, (channels,))
    if given is None:
        return builder.constant(default, kind, word)
    if given.type.size == 1 and channels != 1:
        return builder.broadcast(builder.reshape(given, (), f"{word}_scalar"), (channels,), (), word)
    return builder.reshape(given, (channels,), word)


def attributes(epsilon: float, feature: int) -> str:
    """Gives the attributes of every batch norm op; the epsilon's type is f32 whatever the element type is."""
    return f"{{epsilon = {literal(epsilon, 'f32')} : f32, feature_index = {feature} : i64}}"


def types(kinds: list[TensorType]) -> str:
    """Joins types."""
    return ", ".join(map(tensor, kinds))


def _channels(layout: Layout) -> int:
    return math.prod(extent for extent, role in zip(layout.shape, layout.roles, strict=True) if role == "c")


def _form_axes(layout: Layout) -> tuple[tuple[str, int, int], ...] | None:
    """Joins neighbouring channel axes; None where they stand apart or out of order."""
    axes: list[tuple[str, int, int]] = []
    channels = [k for k, role in enumerate(layout.roles) if role == "c" and layout.shape[k] != 1]
    channels = channels or [k for k, role in enumerate(layout.roles) if role == "c"][:1]
    if any(b != a + 1 or layout.rank[b] < layout.rank[a] for a, b in itertools.pairwise(channels)):
        return None
    for k, (role, rank, extent) in enumerate(zip(layout.roles, layout.rank, layout.shape, strict=True)):
        if role == "n":
            axes.append(("n", rank, extent))
        elif channels and k == channels[0]:
            axes.append(("c", 0, _channels(layout)))
    if not channels:
        axes.append(("c", 0, 1))
    return tuple(axes)


def _same_order(form: Form, layout: Layout) -> bool:
    """Tells whether the root has the form's axes in the form's order; axes of extent 1 do not count."""
    axes = _form_axes(layout)
    return axes is not None and _significant(axes) == _significant(form.axes)


def _significant(axes: tuple[tuple[str, int, int], ...]) -> list[tuple[str, int, int]]:
    ranks = sorted(rank for role, rank, extent in axes if role == "n" and extent != 1)
    return [(role, ranks.index(rank) if role == "n" else 0, extent) for role, rank, extent in axes if extent != 1]


def _canonical(layout: Layout) -> list[int]:
    """Sorts axes: reduced ones first, then channels, each by significance."""
    return sorted(range(len(layout.shape)), key=lambda k: (layout.roles[k] == "c", layout.rank[k]))
