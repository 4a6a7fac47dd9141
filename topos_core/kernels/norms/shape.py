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
    image = _extents(facts.image)
    return image if facts.image == facts.result or image == _extents(facts.result) else None


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
    outer = channels = inner = 1
    ranks: dict[str, int] = {}
    last = ""
    for role, extent, rank in zip(layout.roles, layout.shape, layout.rank, strict=True):
        if extent == 1:
            continue
        if rank < ranks.get(role, rank):
            return None
        if role == "c":
            if last != "c" and "c" in ranks:
                return None  # channels in two places
            channels *= extent
        elif "c" in ranks:
            inner *= extent
        else:
            outer *= extent
        ranks[role], last = rank, role
    if "c" not in ranks:  # one channel: everything is one run
        return Extents(1, 1, outer)
    return Extents(outer, channels, inner)
