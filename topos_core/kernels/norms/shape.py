"""Looks at a batch norm's arrays as [outer, channels, inner]."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from topos_core.kernels.layouts import arrange, restore
from topos_core.matching.facts import Layout, NormFacts


class Extents(NamedTuple):
    """Extents of [outer, channels, inner]; outer and inner are normalised over."""

    outer: int
    channels: int
    inner: int


def dense_extents(facts: NormFacts) -> Extents | None:
    """Gives the extents where image and result are the same dense [outer, channels, inner], else None."""
    image, result = _extents(facts.image), _extents(facts.result)
    return image if image == result else None


def gathered_extents(facts: NormFacts) -> Extents:
    """Gives the extents of a copy with all channels first."""
    return Extents(1, facts.channels, facts.count)


def gather(x: np.ndarray, facts: NormFacts) -> np.ndarray:
    """Copies x to [channels, elements]."""
    return arrange(x, facts.image, ("c", "n"))


def scatter(result: np.ndarray, facts: NormFacts) -> np.ndarray:
    """Looks at [channels, elements] in the root's layout."""
    return restore(result.reshape(facts.channels, facts.count), facts.result, ("c", "n"))


def _extents(layout: Layout) -> Extents | None:
    axes = [axis for axis, extent in enumerate(layout.shape) if extent != 1]
    for role in ("c", "n"):
        ranks = [layout.rank[axis] for axis in axes if layout.roles[axis] == role]
        if ranks != sorted(ranks):
            return None
    word = "".join(layout.roles[axis] for axis in axes)
    if word.strip("n").strip("c"):
        return None  # channels in two places
    product = {"outer": 1, "c": 1, "inner": 1}
    for axis in axes:
        role = layout.roles[axis]
        place = role if role == "c" else ("inner" if "c" in word[: axes.index(axis)] else "outer")
        product[place] *= layout.shape[axis]
    if "c" not in word:  # one channel: everything is one run
        return Extents(1, 1, product["outer"])
    return Extents(product["outer"], product["c"], product["inner"])
