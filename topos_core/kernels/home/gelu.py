"""`gelu`: one pass, with erf, tanh or exp in vector registers.

Declines: TP205 where bits must equal the recorded ones; TP206 for dtypes that are no floats.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from topos_core.kernels.cores.maps import make_runner, stage_of
from topos_core.kernels.cores.offering import offer_core
from topos_core.kernels.cores.shape import same_order
from topos_core.kernels.kernel import Decline, Offer, Stages, Terms
from topos_core.kernels.prepared import Prepared
from topos_core.matching.match import Match
from topos_core.tape.tape import Tape

FUNCTIONS: Final = {
    "none": "gelu_erf", "tanh": "gelu_tanh", "sigmoid": "gelu_sigmoid", "sigmoid of exp": "gelu_sigmoid_of_exp",
}  # fmt: skip


def offer(tape: Tape, match: Match, terms: Terms) -> Offer | Decline:
    """Offers the one-pass kernel for floats."""
    size = tape.ops[match.root].type.size
    # erf is a polynomial and an exp
    transcendentals = {"none": 3, "tanh": 2, "sigmoid": 1, "sigmoid of exp": 1}[
        match.facts.options["approximate"]
    ] * size
    return offer_core(
        tape, match, terms, kernel="one pass in vector registers", flops=8 * size, transcendentals=transcendentals,
        efficiency=0.7, copied=same_order(match.facts) is None,
        stages=Stages(lambda: (stage_of(match.facts, tape.ops[match.root].type),)),
    )  # fmt: skip


def prepare(tape: Tape, match: Match, constants: Mapping[int, np.ndarray]) -> Prepared:
    """Compiles the form that the program has."""
    dtype = tape.ops[match.root].type.dtype
    return make_runner(match.facts, dtype, FUNCTIONS[match.facts.options["approximate"]])
