"""What a linear layer's kernel costs, and when there is none."""

from __future__ import annotations

from typing import Final

from topos_core.kernels.cores.offering import Cost, offer_core
from topos_core.kernels.kernel import Decline, Offer, Stages, Terms
from topos_core.kernels.products.runner import stage_of
from topos_core.matching.facts import CoreFacts
from topos_core.matching.match import Match
from topos_core.tape.tape import Tape

LANES: Final = {"f32": 16, "f64": 8, "f16": 16, "bf16": 16}
"""Lanes that the estimate counts with; fixed, so that a verdict never depends on the machine that asks."""


def offer_linear(
    tape: Tape, match: Match, facts: CoreFacts, terms: Terms, *, flops: int = 0, transcendentals: int = 0
) -> Offer | Decline:
    """Prices the tile kernel; `flops` and `transcendentals` are the epilogue's."""
    cost = layer_cost(facts, tape.ops[match.root].type.dtype, is_known(tape, match.bindings["w"]))
    return offer_core(
        tape, match, terms, kernel=f"register tiles over {facts.extents['r']} products", flops=cost.flops + flops,
        transcendentals=transcendentals, efficiency=cost.efficiency, stages=Stages(lambda: (stage_of(facts, tape.ops[match.root].type),)),
    )  # fmt: skip


def layer_cost(facts: CoreFacts, dtype: str, known: bool) -> Cost:
    """Counts a layer's products and sums; `known` says that its weight can be packed beforehand."""
    extents = facts.extents
    rows, steps, columns = extents["b"], extents["r"], extents["n"]
    cost = product_cost(rows, steps, columns, dtype, known)
    return cost._replace(flops=cost.flops + 2 * rows * columns)


def product_cost(rows: int, steps: int, columns: int, dtype: str, known: bool, batch: int = 1) -> Cost:
    """Counts a product, or a batch of them."""
    efficiency = _efficiency(rows, steps, columns, LANES.get(dtype, 16), known)
    return Cost(2 * batch * rows * steps * columns, efficiency)


def is_known(tape: Tape, weight: int) -> bool:
    """Tells whether a weight can be packed beforehand: it is a parameter, or a view of one."""
    while tape.ops[weight].name in ("reshape", "permute"):
        weight = tape.ops[weight].operands[0]
    return tape.ops[weight].name in ("parameter", "constant")


def _efficiency(rows: int, steps: int, columns: int, lanes: int, known: bool) -> float:
    """Estimates the share of the peak: lanes and rows that exist, and what a tile costs beside its products."""
    if not rows or not columns:
        return 1.0  # nothing to do
    registers = -(-columns // lanes)
    dense = columns / (registers * lanes)
    if rows == 1:
        return max(0.01, 0.3 * dense)  # one row has no reuse: it is bound by loads
    tall = 8 if rows > 4 else 4
    peak = 0.92 if known else 0.88
    return max(0.01, peak * dense * rows / (-(-rows // tall) * tall) * steps / (steps + 24))
