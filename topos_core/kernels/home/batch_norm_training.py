"""`batch_norm_training`: statistics and result while a channel is in the cache; mean and variance are written back.

Two passes around a rounded centre whose error is corrected, summed in f64 across rows: closer to f64 than the recorded
two-pass formula, and at any mean (a one-pass variance is wrong by 0.25 at mean 1e3 and NaN at 1e5).

Declines: TP205 where bits must equal the recorded ones; TP206 for dtypes that are no floats.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from topos_core.kernels.kernel import Decline, Offer, Terms
from topos_core.kernels.norms.offering import offer_norm
from topos_core.kernels.norms.runner import make_runner
from topos_core.kernels.prepared import Prepared
from topos_core.matching.match import Match
from topos_core.tape.tape import Tape


def offer(tape: Tape, match: Match, terms: Terms) -> Offer | Decline:
    """Offers the two-pass kernel for floats."""
    return offer_norm(tape, match, terms, training=True)


def prepare(tape: Tape, match: Match, constants: Mapping[int, np.ndarray]) -> Prepared:
    """Chooses the layout; there is nothing to fold."""
    return make_runner(match.facts, tape.ops[match.root].type.dtype, True, None)
