"""Looks at a scalar core's arrays as [outer, length, inner], where memory allows it."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from topos_core.kernels.layouts import arrange, restore
from topos_core.matching.facts import CoreFacts, Layout


class Extents(NamedTuple):
    """Extents of [outer, length, inner]: `length` positions are reduced, for every outer and inner one."""

    outer: int
    length: int
    inner: int


def memory_order(layout: Layout) -> tuple[tuple[str, int], ...] | None:
    """Lists (role, extent) as they follow each other in memory, neighbours of one role as one.

    None where the axes of a role do not stand in the order of their rank: positions then have no simple number.
    """
    merged: list[tuple[str, int]] = []
    ranks: dict[str, int] = {}
    for role, extent, rank in zip(layout.roles, layout.shape, layout.rank, strict=True):
        if extent == 1:
            continue
        if rank < ranks.get(role, rank):
            return None
        ranks[role] = rank
        if merged and merged[-1][0] == role:
            merged[-1] = (role, merged[-1][1] * extent)
        else:
            merged.append((role, extent))
    return tuple(merged)


def same_order(facts: CoreFacts) -> tuple[tuple[str, int], ...] | None:
    """Gives the order that x and the root share, or None where they differ."""
    x, result = facts.layouts["x"], facts.result
    order = memory_order(x)
    return order if order is not None and (x == result or order == memory_order(result)) else None


def dense_extents(facts: CoreFacts, reduced: Collection[str]) -> Extents | None:
    """Gives the extents where x and the root are the same dense [outer, length, inner], else None."""
    order = same_order(facts)
    if order is None or 0 in facts.extents.values():
        return None
    inside = [place for place, (role, _) in enumerate(order) if role in reduced]
    if not inside:
        return Extents(math.prod(extent for _, extent in order), 1, 1)
    first, last = inside[0], inside[-1]
    if len(inside) != last - first + 1:
        return None  # reduced axes lie apart
    sizes = [extent for _, extent in order]
    return Extents(math.prod(sizes[:first]), math.prod(sizes[first : last + 1]), math.prod(sizes[last + 1 :]))


def gathered(x: np.ndarray, facts: CoreFacts, labels: Sequence[str]) -> np.ndarray:
    """Gives x with one axis per label, in their order."""
    return arrange(x, facts.layouts["x"], labels)


def scattered(result: np.ndarray, facts: CoreFacts, labels: Sequence[str]) -> np.ndarray:
    """Looks at an array with one axis per label in the root's layout."""
    return restore(result.reshape([facts.extents[label] for label in labels]), facts.result, labels)


def vector_of(values: np.ndarray, facts: CoreFacts, name: str, labels: Sequence[str], dtype: np.dtype) -> np.ndarray:
    """Gives a binding along some labels as a dense vector in their order, repeated where it has extent 1."""
    shape = [facts.extents[label] for label in labels]
    axes = arrange(values, facts.layouts[name], labels)
    return np.ascontiguousarray(np.broadcast_to(axes, shape), dtype).reshape(-1)
