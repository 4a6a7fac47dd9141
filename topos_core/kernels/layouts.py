"""Looks at arrays through a match's layouts: one axis per role, as views wherever strides allow it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from topos_core.cost.memory import contiguous_strides
from topos_core.matching.facts import Layout
from topos_core.matching.view import View, read


class Axis(NamedTuple):
    """An axis of a view: its extent and the elements between neighbours."""

    extent: int
    stride: int


def role_axes(layout: Layout, role: str) -> tuple[int, ...]:
    """Lists the axes of a role, most significant first."""
    axes = [axis for axis, name in enumerate(layout.roles) if name == role]
    return tuple(sorted(axes, key=lambda axis: layout.rank[axis]))


def arrange(array: np.ndarray, layout: Layout, roles: Sequence[str]) -> np.ndarray:
    """Gives one axis per role, in the order asked for; copies only where strides cannot say it."""
    grouped = [role_axes(layout, role) for role in roles]
    shaped = array.reshape(layout.shape).transpose([axis for axes in grouped for axis in axes])
    return shaped.reshape([math.prod(layout.shape[axis] for axis in axes) for axes in grouped])


def contiguous_axes(layout: Layout, roles: Sequence[str]) -> tuple[Axis, ...] | None:
    """Gives the axis of each role in a C-contiguous array, or None where a role's axes are no single progression."""
    strides = contiguous_strides(layout.shape)
    result = []
    for role in roles:
        extent, stride = 1, 1
        for axis in reversed([axis for axis in role_axes(layout, role) if layout.shape[axis] != 1]):
            if extent == 1:
                extent, stride = layout.shape[axis], strides[axis]
            elif strides[axis] == stride * extent:
                extent *= layout.shape[axis]
            else:
                return None
        result.append(Axis(extent, stride))
    return tuple(result)


def restore(result: np.ndarray, layout: Layout, roles: Sequence[str]) -> np.ndarray:
    """Undoes `arrange`: gives an array of `layout.shape` from one with an axis per role."""
    grouped = [role_axes(layout, role) for role in roles]
    order = [axis for axes in grouped for axis in axes]
    spread = result.reshape([layout.shape[axis] for axis in order])
    inverse = [0] * len(order)
    for position, axis in enumerate(order):
        inverse[axis] = position
    return spread.transpose(inverse)


def viewed(view: View, base: np.ndarray) -> np.ndarray:
    """Looks at dense memory through a view, up to a reshape; copies where strides cannot say it."""
    if view.bounds or any(divisor != 1 for divisor in view.divisors) or not base.size:
        return read(view, base.reshape(view.base_shape))
    steps = contiguous_strides(view.base_shape)
    digits = view.digits
    start = sum(offset * step for offset, step in zip(view.offsets, steps, strict=True))
    strides = [sum(c * step for c, step in zip(digit.coefficients, steps, strict=True)) for digit in digits]
    size = base.itemsize
    return np.ndarray(
        [digit.extent for digit in digits], base.dtype, base, start * size, [stride * size for stride in strides]
    )
