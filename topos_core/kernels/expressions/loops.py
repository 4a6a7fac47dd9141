"""Lays the axes of a space out as loops over rows, blocks and one dense inner axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from topos_core.kernels.vocabulary.program import Form

Strides = tuple[int, ...]
"""Per axis of the space, in bytes; 0 where an array repeats or has no such axis."""


class Axes(NamedTuple):
    """Some loops, outermost first: their extents and, per array, its strides."""

    extents: tuple[int, ...]
    strides: tuple[Strides, ...]

    @property
    def size(self) -> int:
        """Counts positions."""
        return math.prod(self.extents)


class Loops(NamedTuple):
    """The loops of one run.

    Args:
        rows: Axes that a reduction keeps; without a reduction all but the innermost.
        blocks: Axes that it takes away, beside the innermost one.
        inner: Extent of the innermost axis.
        along: Per array, whether it varies along the innermost axis.
    """

    form: Form
    rows: Axes
    blocks: Axes
    inner: int
    along: tuple[bool, ...]


def lay_out(extents: Sequence[int], reduced: Sequence[int], arrays: Sequence[Strides]) -> Loops:
    """Merges neighbouring axes that every array runs through in one go, and chooses the innermost one."""
    axes: list[tuple[int, list[int], bool]] = []
    for axis, extent in enumerate(extents):
        strides = [array[axis] for array in arrays]
        away = axis in reduced
        if axes and axes[-1][2] is away and all(a == b * extent for a, b in zip(axes[-1][1], strides, strict=True)):
            axes[-1] = (axes[-1][0] * extent, strides, away)
        else:
            axes.append((extent, strides, away))
    inner, last, away = axes.pop() if axes else (1, [0] * len(arrays), False)
    form: Form = "map" if not reduced else "rows" if away else "columns"
    return Loops(
        form,
        _axes([axis for axis in axes if not axis[2]], len(arrays)),
        _axes([axis for axis in axes if axis[2]], len(arrays)),
        inner,
        tuple(stride != 0 for stride in last),
    )


def _axes(axes: Sequence[tuple[int, list[int], bool]], count: int) -> Axes:
    extents = tuple(extent for extent, _, _ in axes)
    return Axes(extents, tuple(tuple(strides[k] for _, strides, _ in axes) for k in range(count)))
