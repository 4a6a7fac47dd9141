"""`rotary_embedding`: pairs turned in one pass, in any layout, tables shared where they are broadcast.

Declines: TP205 where bits must equal the recorded ones; TP206 for dtypes that are no floats.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from topos_core.kernels.cores.offering import offer_core
from topos_core.kernels.cores.turns import make_runner, stage_of
from topos_core.kernels.kernel import Decline, Offer, Stages, Terms
from topos_core.kernels.prepared import Prepared
from topos_core.matching.match import Match
from topos_core.tape.tape import Tape


def offer(tape: Tape, match: Match, terms: Terms) -> Offer | Decline:
    """Offers the one-pass kernel for floats."""
    size = tape.ops[match.root].type.size
    ends = {layout.roles[-2:] for layout in (match.facts.layouts["x"], match.facts.result)}
    forwards = match.facts.options.get("direction") != "backwards"
    beside = ends <= {("p", "h")} or (forwards and ends <= {("h", "p")})  # others are turned pair by pair
    return offer_core(
        tape, match, terms, kernel="one pass over pairs", flops=3 * size, transcendentals=0,
        efficiency=0.5 if beside else 0.1, stages=Stages(lambda: (stage_of(match.facts, tape.ops[match.root].type),)),
    )  # fmt: skip


def prepare(tape: Tape, match: Match, constants: Mapping[int, np.ndarray]) -> Prepared:
    """Compiles the kernel."""
    return make_runner(match.facts, tape.ops[match.root].type.dtype)
