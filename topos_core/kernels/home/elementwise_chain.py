"""`elementwise_chain`: one loop whose inner values stay in registers, generated for the chain's ops and dtypes.

Declines: TP205 where bits must equal the recorded ones and some op rounds otherwise, or where something that jumps stands
on such an op; TP206 for ops and dtypes without a kernel.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from topos_core.kernels.expressions.offering import offer_expression
from topos_core.kernels.expressions.runner import make_runner
from topos_core.kernels.kernel import Decline, Offer, Terms
from topos_core.kernels.prepared import Prepared
from topos_core.matching.match import Match
from topos_core.tape.tape import Tape


def offer(tape: Tape, match: Match, terms: Terms) -> Offer | Decline:
    """Offers the loop."""
    return offer_expression(
        tape, match, terms, f"one loop over {len(match.facts.steps)} ops, inner values in registers"
    )


def prepare(tape: Tape, match: Match, constants: Mapping[int, np.ndarray]) -> Prepared:
    """Compiles the chain."""
    return make_runner(tape, match)
