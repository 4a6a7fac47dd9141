"""Which kernel a convolution gets: Winograd's tiles where they pay and the kernel is known before a run, else direct tiles."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from topos_core.kernels.convolution.geometry import problem
from topos_core.kernels.convolution.winograd import Form, form_of
from topos_core.matching.facts import ConvolutionFacts
from topos_core.matching.match import Match
from topos_core.tape.tape import Tape

WINOGRAD: Final = "winograd"
"""What a request's `off` calls these kernels."""


def by_tiles(tape: Tape, match: Match, facts: ConvolutionFacts, off: Collection[str]) -> Form | None:
    """Gives Winograd's tiles that run a match; None where the direct kernel does."""
    if WINOGRAD in off or tape.ops[match.root].type.dtype != "f32" or len(facts.windows) > 3:
        return None
    return form_of(problem(facts)) if known_beforehand(tape, match.bindings["kernel"]) else None


def known_beforehand(tape: Tape, value: int) -> bool:
    """Tells whether a value is a parameter or a constant, or movement of one."""
    op = tape.ops[value]
    while op.name in ("permute", "reshape"):
        op = tape.ops[op.operands[0]]
    return op.name in ("parameter", "constant")
