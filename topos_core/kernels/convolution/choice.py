"""Which kernel a convolution gets: Winograd's tiles where they pay and the kernel is known before a run, else direct tiles."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from topos_core.kernels.convolution.geometry import problem
from topos_core.kernels.convolution.winograd import Form, form_of
from topos_core.kernels.scratch import InColumns
from topos_core.matching.facts import ConvolutionFacts, EpilogueFacts
from topos_core.matching.match import Match
from topos_core.tape.tape import Tape

WINOGRAD: Final = "winograd"
"""What a request's `off` calls these kernels."""


def by_tiles(tape: Tape, match: Match, off: Collection[str]) -> Form | None:
    """Gives Winograd's tiles that run a match of a convolution; None where the direct kernel does."""
    facts, root = _convolution(match), tape.ops[match.root].type
    if WINOGRAD in off or root.dtype != "f32" or len(facts.windows) > 3:
        return None
    if not known_beforehand(tape, match.bindings["kernel"]):
        return None
    form = form_of(problem(facts))
    return form if form is not None and columns_of(match).strides(root) is not None else None


def columns_of(match: Match) -> InColumns:
    """Tells how tiles write the root of a match of a convolution."""
    roles = problem(_convolution(match)).roles
    return InColumns(match.facts.result, tuple(role for role in roles if role))


def _convolution(match: Match) -> ConvolutionFacts:
    facts: ConvolutionFacts | EpilogueFacts = match.facts
    return facts.convolution if isinstance(facts, EpilogueFacts) else facts


def known_beforehand(tape: Tape, value: int) -> bool:
    """Tells whether a value is a parameter or a constant, or movement of one."""
    op = tape.ops[value]
    while op.name in ("permute", "reshape"):
        op = tape.ops[op.operands[0]]
    return op.name in ("parameter", "constant")
