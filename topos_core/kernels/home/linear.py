"""`linear`: a product in register tiles that adds the bias before it stores; a known weight is packed beforehand.

Declines: TP205 where bits must equal the recorded ones; TP206 for dtypes that are no floats.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from topos_core.kernels.convolution.engine import Epilogue
from topos_core.kernels.kernel import Decline, Offer, Terms
from topos_core.kernels.prepared import Prepared
from topos_core.kernels.products.offering import offer_linear
from topos_core.kernels.products.runner import make_runner
from topos_core.matching.match import Match
from topos_core.tape.tape import Tape


def offer(tape: Tape, match: Match, terms: Terms) -> Offer | Decline:
    """Offers the tile kernel for floats."""
    return offer_linear(tape, match, match.facts, terms)


def prepare(tape: Tape, match: Match, constants: Mapping[int, np.ndarray]) -> Prepared:
    """Packs what is known."""
    bound = {name: constants.get(match.bindings[name]) for name in ("w", "bias") if name in match.bindings}
    return make_runner(match.facts, tape.ops[match.root].type.dtype, bound["w"], bound.get("bias"), Epilogue())
