"""`batch_norm_inference`: (x - mean) * factor + shift in one pass, the factor folded where its parts are parameters.

Declines: TP205 where bits must equal the recorded ones; TP206 for dtypes that are no floats.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from topos_core.kernels.kernel import Decline, Offer, Terms
from topos_core.kernels.norms.offering import offer_norm
from topos_core.kernels.norms.runner import make_runner
from topos_core.kernels.prepared import Prepared, all_known
from topos_core.matching.match import Match
from topos_core.tape.tape import Tape

VECTORS = ("mean", "variance", "scale", "shift")


def offer(tape: Tape, match: Match, terms: Terms) -> Offer | Decline:
    """Offers the one-pass kernel for floats."""
    return offer_norm(tape, match, terms, training=False)


def prepare(tape: Tape, match: Match, constants: Mapping[int, np.ndarray]) -> Prepared:
    """Folds scale and variance into one factor where both are known."""
    return make_runner(match.facts, tape.ops[match.root].type.dtype, False, all_known(match, constants, VECTORS))
