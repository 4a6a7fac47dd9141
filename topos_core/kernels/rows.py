"""Looks at arrays as rows: one table of places for the batch, one stride for each label that is walked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
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


class Places(NamedTuple):
    """Where elements lie: `at` says for each batch where it starts, `steps` how far apart each label's positions are."""

    at: np.ndarray
    steps: tuple[int, ...]


def rows_of(array: np.ndarray, layout: Layout, facts: CoreFacts, labels: tuple[str, str]) -> Rows | None:
    """Gives the rows of an array's own memory, or None where its elements do not lie in rows."""
    found = places_of(array, layout, facts, labels)
    if found is None or (found.steps[-1] != 1 and facts.extents[labels[-1]] != 1):
        return None
    return Rows(found.at, found.steps[0])


def places_of(
    array: np.ndarray, layout: Layout, facts: CoreFacts, labels: Sequence[str], batch: str = "b"
) -> Places | None:
    """Gives the places of an array's own memory, or None where a label's positions lie at no constant distance.

    What the layout does not show, or shows with extent 1, is shared: those places are the same ones.
    """
    spread, outer = _spread(array, layout, facts, labels, batch)
    view = spread.reshape((*spread.shape[:outer], *(facts.extents[label] for label in labels)))
    if not view.size or address_of(view) != address_of(array) or not np.may_share_memory(view, array):
        return None
    if any(stride % view.itemsize for stride in view.strides):
        return None
    steps = [stride // view.itemsize for stride in view.strides]
    inner = zip(steps[outer:], view.shape[outer:], strict=True)
    return Places(_table(view.shape[:outer], steps[:outer]), tuple(step if extent > 1 else 0 for step, extent in inner))


def copied_rows(
    array: np.ndarray, layout: Layout, facts: CoreFacts, labels: Sequence[str], batch: str = "b"
) -> np.ndarray:
    """Copies an array to dense [batch, label, label], shared rows repeated."""
    spread = np.ascontiguousarray(_spread(array, layout, facts, labels, batch)[0])
    return spread.reshape([facts.extents[label] for label in (batch, *labels)])


def dense_rows(batch: int, rows: int, elements: int) -> Rows:
    """Gives the rows of dense [batch, rows, elements]."""
    return Rows(np.arange(batch, dtype=np.int64) * (rows * elements), elements)


def runs_of(array: np.ndarray, count: int) -> np.ndarray | None:
    """Tells where every run of so many neighbours starts, in the order of the elements; None where they are none."""
    pieces = refined(array.shape, (array.size // count, count))
    if pieces is None:
        return None
    outer = len(pieces[0])
    view = array.reshape([extent for own in pieces for extent in own])
    view = view.reshape((*view.shape[:outer], count))
    if address_of(view) != address_of(array) or (count > 1 and view.strides[-1] != view.itemsize):
        return None
    return _table(view.shape[:outer], [stride // view.itemsize for stride in view.strides[:outer]])


def scatter(rows: np.ndarray, layout: Layout, facts: CoreFacts, labels: Sequence[str], batch: str = "b") -> np.ndarray:
    """Looks at dense [batch, label, label] in a layout's shape; axes that no label plays have extent 1."""
    order = [axis for label in (batch, *labels) for axis in role_axes(layout, label)]
    order += [axis for axis in range(len(layout.shape)) if axis not in order]
    return rows.reshape([layout.shape[axis] for axis in order]).transpose(np.argsort(order))


def refined(shape: Sequence[int], other: Sequence[int]) -> list[list[int]] | None:
    """Splits every axis of `other` so that the pieces split the axes of `shape` too; None where they do not fit."""
    if 0 in shape or math.prod(shape) != math.prod(other):
        return None
    cuts = {1}
    for extents in (shape, other):
        inner = 1
        for extent in reversed(extents):
            inner *= extent
            cuts.add(inner)
    ordered = sorted(cuts)
    if any(high % low for low, high in pairwise(ordered)):
        return None
    pieces: list[list[int]] = []
    inner = 1
    for extent in reversed(other):
        inside = [cut for cut in ordered if inner <= cut <= inner * extent]
        pieces.append([high // low for low, high in pairwise(inside)][::-1] or [1])
        inner *= extent
    return pieces[::-1]


def _table(extents: Sequence[int], steps: Sequence[int]) -> np.ndarray:
    at = np.zeros((), np.int64)
    for extent, step in zip(extents, steps, strict=True):
        at = at[..., None] + np.arange(extent, dtype=np.int64) * step
    return np.ascontiguousarray(at.reshape(-1))


def _spread(
    array: np.ndarray, layout: Layout, facts: CoreFacts, labels: Sequence[str], batch: str
) -> tuple[np.ndarray, int]:
    """Gives the axes of the batch, then those of each label, each at its full extent; and how many are the batch's.

    A layout may count several axes of the array as one; they stay apart here, so that no stride is lost.
    """
    pieces = refined(array.shape, layout.shape) or [[extent] for extent in layout.shape]
    first = [0]
    for own in pieces:
        first.append(first[-1] + len(own))
    shaped = array.reshape([extent for own in pieces for extent in own])
    order: list[int] = []
    full: list[int] = []
    outer = 0
    for label in (batch, *labels):
        for axis, extent in _digits(layout, facts, label):
            if axis is None:
                shaped = shaped[..., None]
                order.append(shaped.ndim - 1)
                full.append(extent)
            elif layout.shape[axis] == extent:
                order += range(first[axis], first[axis + 1])
                full += pieces[axis]
            else:
                order.append(first[axis])
                full.append(extent)
        outer = len(order) if label == batch else outer
    rest = [axis for axis in range(shaped.ndim) if axis not in order]
    ordered = shaped.transpose(*order, *rest)
    return np.broadcast_to(ordered.reshape(ordered.shape[: len(order)]) if rest else ordered, full), outer


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
