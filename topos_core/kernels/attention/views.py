"""Looks at attention's arrays as rows: one table of places for the batch, one stride for the rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from topos_core.kernels.launch import address_of
from topos_core.kernels.layouts import role_axes
from topos_core.matching.facts import CoreFacts, Layout


class Rows(NamedTuple):
    """Where rows lie, in elements: `at` says for each batch where its first row starts, `row` how far apart they are.

    The elements of a row are neighbours.
    """

    at: np.ndarray
    row: int


def rows_of(array: np.ndarray, layout: Layout, facts: CoreFacts, labels: tuple[str, str]) -> Rows | None:
    """Gives the rows of an array's own memory, or None where its elements do not lie in rows.

    What the layout does not show, or shows with extent 1, is shared: those rows are the same ones.
    """
    view = _spread(array, layout, facts, labels).reshape(_shape(layout, facts, labels))
    if not view.size or address_of(view) != address_of(array) or not np.may_share_memory(view, array):
        return None
    dense = view.shape[-1] == 1 or view.strides[-1] == view.itemsize
    if not dense or any(stride % view.itemsize for stride in view.strides):
        return None
    at = np.zeros((), np.int64)
    for stride, extent in zip(view.strides[:-2], view.shape[:-2], strict=True):
        at = at[..., None] + np.arange(extent, dtype=np.int64) * (stride // view.itemsize)
    row = view.strides[-2] // view.itemsize if view.shape[-2] > 1 else 0
    return Rows(np.ascontiguousarray(at.reshape(-1)), row)


def copied_rows(array: np.ndarray, layout: Layout, facts: CoreFacts, labels: tuple[str, str]) -> np.ndarray:
    """Copies an array to dense [batch, rows, elements], shared rows repeated."""
    spread = np.ascontiguousarray(_spread(array, layout, facts, labels))
    return spread.reshape(facts.extents["b"], *(facts.extents[label] for label in labels))


def dense_rows(batch: int, rows: int, elements: int) -> Rows:
    """Gives the rows of dense [batch, rows, elements]."""
    return Rows(np.arange(batch, dtype=np.int64) * (rows * elements), elements)


def scatter(rows: np.ndarray, layout: Layout, facts: CoreFacts, labels: Sequence[str]) -> np.ndarray:
    """Looks at dense [batch, rows, elements] in a layout's shape; axes that no label plays have extent 1."""
    order = [axis for label in ("b", *labels) for axis in role_axes(layout, label)]
    order += [axis for axis in range(len(layout.shape)) if axis not in order]
    return rows.reshape([layout.shape[axis] for axis in order]).transpose(np.argsort(order))


def _shape(layout: Layout, facts: CoreFacts, labels: tuple[str, str]) -> tuple[int, ...]:
    return (*(extent for _, extent in _digits(layout, facts, "b")), *(facts.extents[label] for label in labels))


def _spread(array: np.ndarray, layout: Layout, facts: CoreFacts, labels: tuple[str, str]) -> np.ndarray:
    """Gives one axis per digit of the batch and of the labels, each at its full extent."""
    shaped = array.reshape(layout.shape)
    order: list[int] = []
    full: list[int] = []
    for label in ("b", *labels):
        for axis, extent in _digits(layout, facts, label):
            if axis is None:
                shaped = shaped[..., None]
                axis = shaped.ndim - 1
            order.append(axis)
            full.append(extent)
    rest = [axis for axis in range(shaped.ndim) if axis not in order]
    ordered = shaped.transpose(*order, *rest)
    return np.broadcast_to(ordered.reshape(ordered.shape[: len(order)]) if rest else ordered, full)


def _digits(layout: Layout, facts: CoreFacts, label: str) -> list[tuple[int | None, int]]:
    """Lists (axis, full extent) of a label's digits, most significant first; None where the layout has no such axis.

    Layouts name digits by rank where some of them share one; else each has the whole label in axes of its own.
    """
    own = role_axes(layout, label)
    full: dict[int, int] = {}
    for other in (facts.result, *facts.layouts.values()):
        for extent, role, rank in zip(other.shape, other.roles, other.rank, strict=True):
            if role == label:
                full[rank] = max(extent, full.get(rank, 1))
    if math.prod(full.values()) == facts.extents[label]:
        places = {layout.rank[axis]: axis for axis in own}
        return [(places.get(rank), extent) for rank, extent in sorted(full.items())]
    if not own:
        return [(None, facts.extents[label])]
    return [(axis, layout.shape[axis]) for axis in own]
