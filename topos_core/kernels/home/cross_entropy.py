"""`cross_entropy`: one loss per row of logits while the row is in the cache, their sum or mean in f64.

Declines: TP205 where bits must equal the recorded ones; TP206 for dtypes that are no floats.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from topos_core.kernels.cores.losses import cross_entropy, entropy_stage
from topos_core.kernels.cores.offering import offer_core
from topos_core.kernels.kernel import Decline, Offer, Stages, Terms
from topos_core.kernels.prepared import Prepared
from topos_core.matching.match import Match
from topos_core.tape.tape import Tape


def offer(tape: Tape, match: Match, terms: Terms) -> Offer | Decline:
    """Offers the cached kernel for floats."""
    rows, columns = match.facts.extents["k"], match.facts.extents["n"]
    return offer_core(
        tape, match, terms, kernel="losses of rows in the cache", flops=6 * rows * columns,
        transcendentals=rows * (columns + 1), efficiency=0.5,
        stages=Stages(lambda: (entropy_stage(match.facts, tape.ops[match.bindings["logits"]].type.dtype),)),
    )  # fmt: skip


def prepare(tape: Tape, match: Match, constants: Mapping[int, np.ndarray]) -> Prepared:
    """Compiles the kernel for class numbers or probabilities."""
    return cross_entropy(match.facts, tape.ops[match.bindings["logits"]].type.dtype)
