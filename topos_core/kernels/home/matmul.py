"""`matmul`: a batch of products in register tiles; operands whose axes stand in another order are copied first.

Declines: TP205 where bits must equal the recorded ones; TP206 for dtypes that are no floats.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from topos_core.kernels.cores.offering import offer_core
from topos_core.kernels.kernel import Decline, Offer, Stages, Terms
from topos_core.kernels.prepared import Prepared
from topos_core.kernels.products.batched import LABELS, make_batched, moved, stage_of
from topos_core.kernels.products.offering import product_cost
from topos_core.matching.match import Match
from topos_core.tape.tape import Tape


def offer(tape: Tape, match: Match, terms: Terms) -> Offer | Decline:
    """Offers the tile kernel for floats."""
    batches, rows, steps, columns = (match.facts.extents[label] for label in ("t", "b", "r", "n"))
    layouts = {**match.facts.layouts, "result": match.facts.result}
    copied = any(moved(layout.shape, layout.roles, LABELS[name]) for name, layout in layouts.items())
    cost = product_cost(rows, steps, columns, tape.ops[match.root].type.dtype, known=False, batch=batches)
    return offer_core(
        tape, match, terms, kernel=f"{batches} products in register tiles", flops=cost.flops, transcendentals=0,
        efficiency=cost.efficiency, copied=copied,
        stages=Stages(lambda: (stage_of(match.facts, tape.ops[match.root].type),)),
    )  # fmt: skip


def prepare(tape: Tape, match: Match, constants: Mapping[int, np.ndarray]) -> Prepared:
    """Compiles the tiles."""
    return make_batched(match.facts, tape.ops[match.root].type.dtype)
