"""`depthwise_pointwise`: the depthwise convolution makes the pointwise one's right operand in the cache.

Both epilogues run in registers; the depthwise result is never written. See `kernels/convolution/separable.py`.

Declines: TP205 where bits must equal the recorded ones; TP206 for dtypes that are no floats.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from topos_core.kernels.convolution.offering import offer_separable
from topos_core.kernels.convolution.separable_runner import make_runner
from topos_core.kernels.kernel import Decline, Offer, Terms
from topos_core.kernels.prepared import Prepared
from topos_core.matching.match import Match
from topos_core.tape.tape import Tape


def offer(tape: Tape, match: Match, terms: Terms) -> Offer | Decline:
    """Offers the pair of kernels as one."""
    return offer_separable(tape, match, match.facts, terms)


def prepare(tape: Tape, match: Match, constants: Mapping[int, np.ndarray]) -> Prepared:
    """Packs both kernels and folds their vectors where they are known."""
    return make_runner(match.facts, tape.ops[match.root].type.dtype, match.bindings, constants)
