"""Looks at a batch norm's arrays as [outer, channels, inner]."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from topos_core.kernels.layouts import arrange, restore
from topos_core.kernels.scratch import Read, Stage, computed, moved_result
from topos_core.matching.facts import Layout, NormFacts
from topos_core.tape.type import TensorType, numpy_dtype

NARROW: Final = 16
"""Rows of fewer inner elements are too short for a pass per channel; channels then lie beside each other in a row."""
CACHED_BYTES: Final = 256 << 10  # of a block of rows between its two passes


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


def stage_of(facts: NormFacts, root: TensorType, training: bool) -> Stage:
    """Tells what a run copies and makes elsewhere, sums of blocks of rows included."""
    extents, running = dense_extents(facts), computed(root.dtype)
    read = Read(running) if extents is not None else Read(running, facts.image, ("c", "n"))
    elsewhere = moved_result(root, extents is not None, None if extents is not None else facts.result, ("c", "n"))
    sums = 0
    if training and extents is not None and extents.inner < NARROW and root.size:
        width, size = extents.channels * extents.inner, numpy_dtype(running).itemsize
        items = -(-extents.outer // block_rows(extents.outer, width * size))
        sums = 3 * width * (8 * items + size)
    return Stage((("x", read),), elsewhere.bytes + sums, elsewhere.bringing)


def block_rows(rows: int, row_bytes: int) -> int:
    """Counts the rows of a block: they stay in a core's cache between two passes, and sums of them stay short."""
    return max(1, min(rows, 64, CACHED_BYTES // max(row_bytes, 1)))


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
