"""`mse_loss`: both values are read once; runs of squares are summed in registers, then in f64.

Declines: TP205 where bits must equal the recorded ones; TP206 for dtypes that are no floats.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from topos_core.kernels.cores.losses import squared_difference, squared_stage
from topos_core.kernels.cores.offering import offer_core
from topos_core.kernels.kernel import Decline, Offer, Stages, Terms
from topos_core.kernels.prepared import Prepared
from topos_core.matching.match import Match
from topos_core.tape.tape import Tape


def offer(tape: Tape, match: Match, terms: Terms) -> Offer | Decline:
    """Offers the one-pass kernel for floats."""
    size = match.facts.extents["n"]
    return offer_core(
        tape, match, terms, kernel="squares summed in registers", flops=3 * size, transcendentals=0, efficiency=0.7,
        stages=Stages(lambda: (squared_stage(match.facts, tape.ops[match.root].type.dtype),)),
    )  # fmt: skip


def prepare(tape: Tape, match: Match, constants: Mapping[int, np.ndarray]) -> Prepared:
    """Compiles the kernel."""
    return squared_difference(match.facts, tape.ops[match.root].type.dtype)
