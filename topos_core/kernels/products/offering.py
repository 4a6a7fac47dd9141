"""What a linear layer's kernel costs, and when there is none."""

from __future__ import annotations

from typing import Final

from topos_core.kernels.cores.offering import offer_core
from topos_core.kernels.kernel import Decline, Offer, Terms
from topos_core.matching.facts import CoreFacts
from topos_core.matching.match import Match
from topos_core.tape.tape import Tape

LANES: Final = {"f32": 16, "f64": 8, "f16": 16, "bf16": 16}
"""Lanes that the estimate counts with; fixed, so that a verdict never depends on the machine that asks."""


def offer_linear(
    tape: Tape, match: Match, facts: CoreFacts, terms: Terms, *, flops: int = 0, transcendentals: int = 0
) -> Offer | Decline:
    """Prices the tile kernel; `flops` and `transcendentals` are the epilogue's."""
    root = tape.ops[match.root].type
    rows, steps, columns = (facts.extents[label] for label in ("b", "r", "n"))
    return offer_core(
        tape, match, terms, kernel=f"register tiles over {steps} products",
        flops=2 * rows * steps * columns + 2 * rows * columns + flops, transcendentals=transcendentals,
        efficiency=_efficiency(rows, steps, columns, LANES.get(root.dtype, 16), _is_known(tape, match)),
    )  # fmt: skip


def _is_known(tape: Tape, match: Match) -> bool:
    """Tells whether the weight can be packed beforehand: it is a parameter, or a view of one."""
    value = match.bindings["w"]
    while tape.ops[value].name in ("reshape", "permute"):
        value = tape.ops[value].operands[0]
    return tape.ops[value].name in ("parameter", "constant")


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
