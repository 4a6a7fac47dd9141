"""Runs group and instance norms: statistics per group, vectors per group and channel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from topos_core.kernels.cores.rows import Runner, extent_of, laid, reading
from topos_core.kernels.cores.shape import Extents, same_order
from topos_core.kernels.library import kernel
from topos_core.kernels.scratch import computed
from topos_core.matching.facts import CoreFacts
from topos_core.tape.type import numpy_dtype


def needs_copy(facts: CoreFacts, labels: Sequence[str]) -> bool:
    """Tells whether x or the root does not have its labels in this order in memory."""
    order = same_order(facts)
    return order is None or [role for role, _ in order] != [label for label in labels if facts.extents[label] != 1]


def make_runner(
    facts: CoreFacts,
    dtype: str,
    kept: tuple[str, ...],
    reduced: tuple[str, ...],
    vectors: Sequence[str],
    known: Mapping[str, np.ndarray],
) -> Runner:
    """Compiles the kernel; the last label of `vectors` that is reduced is the channel of a group, `known` what is known."""
    running, labels = computed(dtype), (*kept, *reduced)
    copied = needs_copy(facts, labels)
    channels = extent_of(facts, [label for label in vectors if label in reduced])
    count = extent_of(facts, reduced)
    along = {name: tuple(vectors) for name in ("scale", "shift")}
    return Runner(
        facts=facts,
        dtype=numpy_dtype(running),
        kept=kept,
        reduced=reduced,
        extents=Extents(extent_of(facts, kept), count, 1),
        copied=copied,
        read=reading(facts, dtype, labels, copied),
        kernel=kernel("norm_groups", running),
        vectors=along,
        words={
            "items": extent_of(facts, kept), "channels": channels, "positions": count // max(channels, 1),
            "groups": extent_of(facts, [label for label in vectors if label in kept]),
        },
        epsilon=np.array([facts.constants.get("epsilon", 0.0)]),
        known=laid(facts, along, known, numpy_dtype(running)),
    )  # fmt: skip
