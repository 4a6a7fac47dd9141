"""Arrays by role: what a pattern's own formula needs to run on the arrays that a match binds."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from topos_core.matching.facts import Layout


def arranged(array: np.ndarray, layout: Layout, roles: Sequence[str]) -> np.ndarray:
    """Gives one axis per role, in this order; an absent role has one position."""
    groups = [axes_of(layout, role) for role in roles]
    shaped = array.reshape(layout.shape).transpose([axis for axes in groups for axis in axes])
    return shaped.reshape([math.prod(layout.shape[axis] for axis in axes) for axes in groups])


def restored(array: np.ndarray, layout: Layout, roles: Sequence[str]) -> np.ndarray:
    """Undoes `arranged`: gives `layout.shape` from one axis per role; the recorded shape is a reshape away."""
    order = [axis for role in roles for axis in axes_of(layout, role)]
    return array.reshape([layout.shape[axis] for axis in order]).transpose(
        [order.index(axis) for axis in range(len(order))]
    )


def axes_of(layout: Layout, role: str) -> list[int]:
    """Lists the axes that play a role, most significant first."""
    axes = [axis for axis, own in enumerate(layout.roles) if own == role]
    return sorted(axes, key=lambda axis: layout.rank[axis])
