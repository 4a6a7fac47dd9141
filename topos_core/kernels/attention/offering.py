"""What an attention's kernel costs."""

from __future__ import annotations

from topos_core.kernels.cores.offering import Cost
from topos_core.matching.facts import CoreFacts


def attention_cost(facts: CoreFacts) -> tuple[Cost, int]:
    """Counts both products and the softmax between them, and its transcendentals."""
    extents = facts.extents
    scores = extents["b"] * extents["i"] * extents["j"]
    width = extents["d"] + extents["e"]
    return Cost(2 * scores * width + 6 * scores, max(0.05, 0.75 * width / (width + 32))), 2 * scores
