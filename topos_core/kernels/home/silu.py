"""`silu`: one pass, with exp in vector registers.

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

FUNCTIONS: Final = {"logistic": "silu", "of exp": "silu_of_exp"}


def offer(tape: Tape, match: Match, terms: Terms) -> Offer | Decline:
    """Offers the one-pass kernel for floats."""
    size = tape.ops[match.root].type.size
    return offer_core(
        tape, match, terms, kernel="one pass in vector registers", flops=4 * size, transcendentals=2 * size,
        efficiency=0.7, copied=same_order(match.facts) is None,
        stages=Stages(lambda: (stage_of(match.facts, tape.ops[match.root].type),)),
    )  # fmt: skip


def prepare(tape: Tape, match: Match, constants: Mapping[int, np.ndarray]) -> Prepared:
    """Compiles the kernel."""
    return make_runner(match.facts, tape.ops[match.root].type.dtype, FUNCTIONS[match.facts.options["sigmoid"]])
