"""What an attention's kernel costs."""

from __future__ import annotations

import math
from typing import Final

from topos_core.cost.memory import contiguous_strides
from topos_core.kernels.cores.offering import Cost
from topos_core.kernels.scratch import Moved, ReadRows, Stage, computed, moved_result
from topos_core.matching.facts import CoreFacts
from topos_core.tape.type import TensorType, numpy_dtype

FEW_QUERIES: Final = 64
"""Below so many query rows, values are read where they are: laying them out takes longer than it saves (512 keys on an Intel Xeon:
a tenth more at 1 to 16 query rows, a tenth less at 512)."""
LABELS: Final = {
    "q": ("i", "d"), "k": ("j", "d"), "v": ("j", "e"), "mask": ("i", "j"), "keep": ("i", "j"), "bias": ("i", "j"),
    "drop": ("i", "j"),
}  # fmt: skip
"""The labels of a row, by binding."""


def attention_stage(facts: CoreFacts, root: TensorType, bound: bool = True) -> Stage:
    """Tells what a run copies and makes elsewhere: keys lie in panels, values of many queries beside them, other operands in rows.

    Args:
        facts: The attention's.
        root: Its result, and the recorded dtype.
        bound: Whether the match binds its operands; else they are dense memory of a block.
    """
    extents, running = facts.extents, computed(root.dtype)
    names = [name for name in LABELS if name in facts.layouts and (bound or name not in "qkv")]
    reads = tuple(
        (name, ReadRows(
            running, facts.layouts[name], LABELS[name],
            extents["b"] * extents[LABELS[name][0]] * extents[LABELS[name][1]], beside=True,
        ))
        for name in names
    )  # fmt: skip
    written = ReadRows(running, facts.result, ("i", "e"), root.size, beside=True)
    kind = root if root.dtype == running else root._replace(dtype=running)
    elsewhere = Moved(0, 0)
    if bound and (root.dtype != running or written.copied(kind, contiguous_strides(root.shape), ()).kept):
        elsewhere = moved_result(root, False)
    laid = "kv" if extents["i"] >= FEW_QUERIES else "k"
    panels = sum(math.prod(facts.layouts[name].shape) for name in laid) * numpy_dtype(running).itemsize
    return Stage(reads, panels + elsewhere.bytes, elsewhere.bringing)


def attention_cost(facts: CoreFacts) -> tuple[Cost, int]:
    """Counts both products and the softmax between them, and its transcendentals."""
    extents = facts.extents
    scores = extents["b"] * extents["i"] * extents["j"]
    width = extents["d"] + extents["e"]
    return Cost(2 * scores * width + 6 * scores, max(0.05, 0.75 * width / (width + 32))), 2 * scores
