"""`linear_bias_activation`: the linear layer's tiles, with the activation before they are stored.

Declines: TP205 where bits must equal the recorded ones; TP206 for dtypes that are no floats.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from topos_core.kernels.convolution.activations import epilogue
from topos_core.kernels.kernel import Decline, Offer, Terms
from topos_core.kernels.prepared import Prepared
from topos_core.kernels.products.offering import offer_linear
from topos_core.kernels.products.runner import make_runner
from topos_core.matching.formula import WITHOUT_FUNCTIONS
from topos_core.matching.match import Match
from topos_core.tape.tape import Tape


def offer(tape: Tape, match: Match, terms: Terms) -> Offer | Decline:
    """Offers the tile kernel with its epilogue for floats."""
    size = tape.ops[match.root].type.size
    hard = match.facts.options["activation"] not in WITHOUT_FUNCTIONS
    return offer_linear(
        tape, match, match.facts, terms, flops=4 * size if hard else 2 * size, transcendentals=2 * size if hard else 0
    )


def prepare(tape: Tape, match: Match, constants: Mapping[int, np.ndarray]) -> Prepared:
    """Packs what is known and compiles the activation."""
    dtype = tape.ops[match.root].type.dtype
    bound = {name: constants.get(match.bindings[name]) for name in ("w", "bias") if name in match.bindings}
    after = epilogue(match.facts.options["activation"])
    return make_runner(match.facts, dtype, bound["w"], bound.get("bias"), after)
