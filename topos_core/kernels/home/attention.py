"""`attention`: scores of a block of query rows in tiles, their softmax in the cache, values in tiles.

Nothing quadratic is written to memory. Under a constant triangle of -inf, keys behind a block's last query are left out,
unless a key or a value is not finite: then what is hidden still makes NaN, as recorded.

Declines: TP205 where bits must equal the recorded ones; TP206 for dtypes that are no floats.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from topos_core.kernels.attention.offering import attention_cost, attention_stage
from topos_core.kernels.attention.runner import make_runner
from topos_core.kernels.cores.offering import offer_core
from topos_core.kernels.kernel import Decline, Offer, Stages, Terms
from topos_core.kernels.prepared import Prepared
from topos_core.matching.match import Match
from topos_core.tape.tape import Tape


def offer(tape: Tape, match: Match, terms: Terms) -> Offer | Decline:
    """Offers the kernel that keeps scores in the cache."""
    cost, transcendentals = attention_cost(match.facts)
    return offer_core(
        tape, match, terms, kernel="blocks of query rows, scores in the cache", flops=cost.flops,
        transcendentals=transcendentals, efficiency=cost.efficiency,
        stages=Stages(lambda: (attention_stage(match.facts, tape.ops[match.root].type),)),
    )  # fmt: skip


def prepare(tape: Tape, match: Match, constants: Mapping[int, np.ndarray]) -> Prepared:
    """Compiles the kernels and looks at masks whose values are known."""
    masks = [constants.get(match.bindings[name]) if name in match.bindings else None for name in ("mask", "keep")]
    return make_runner(match.facts, tape.ops[match.root].type.dtype, *masks)
