"""The consumer `stablehlo`: which matches become a named op of the dialect.

Taken means that a named op replaces recorded computation; what is only lowered op by op is no offer. `conv_bn_activation`
has no op of its own: its convolution and its batch norm are matches too, and those are raised.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import numpy as np

from topos_core.cost.work import Work
from topos_core.kernels.kernel import Decline, Offer, Terms
from topos_core.kernels.stablehlo.fidelity import measured
from topos_core.matching.facts import ConvolutionFacts, EpilogueFacts, NormFacts, WindowReduceFacts
from topos_core.matching.match import Match
from topos_core.matching.order import LAST
from topos_core.tape.tape import Tape
from topos_core.tape.type import FLOATS, numpy_dtype

Offering = Callable[[Tape, Match], Offer | Decline]


@dataclass(frozen=True, slots=True)
class StableHlo:
    """Asks the pattern's row, then the target's measured fidelity."""

    name: str = "stablehlo"

    def concerns(self, pattern: str, /) -> bool:
        """Leaves out what is elected last: a compiler groups such ops itself, and lowering them is no offer."""
        return pattern in ROWS or pattern not in LAST

    def offer(self, tape: Tape, match: Match, terms: Terms, /) -> Offer | Decline:
        """Says whether the match becomes a named op.

        Declines: TP206 (no op), TP207 (an operand that the op cannot take), TP205 (the target's expansion loses too much).
        """
        row = ROWS.get(match.pattern)
        if row is None:
            return Decline("TP206", "no-kernel", f"StableHLO has no op for {match.pattern}")
        answer = row(tape, match)
        if isinstance(answer, Decline) or terms.dialect == "portable":
            return answer
        found = measured(terms.dialect, match.pattern)
        if found is None or found.keeps_fidelity:
            return answer
        reason = (
            f"{terms.dialect} expands {answer.kernel} to {found.expansion}: at {found.probe} its error is"
            f" {found.raised_error:.2g}, the recorded ops have {found.recorded_error:.2g} ({found.version})"
        )
        errors = {"raised_error": found.raised_error, "recorded_error": found.recorded_error}
        return Decline("TP205", "fidelity", reason, errors)


def _convolution(tape: Tape, match: Match) -> Offer | Decline:
    facts: ConvolutionFacts = match.facts
    root = tape.ops[match.root].type
    if root.dtype == "bool":
        return _guard(f"stablehlo.convolution has no multiply-add for {root.dtype}")
    taps = facts.in_channels * math.prod(window.size for window in facts.windows)
    return _offered(tape, match, "stablehlo.convolution", 2 * root.size * taps)


def _window_reduce(tape: Tape, match: Match) -> Offer | Decline:
    facts: WindowReduceFacts = match.facts
    root = tape.ops[match.root].type
    if facts.is_average and root.dtype not in FLOATS:
        return _guard(f"an average of {root.dtype} has no fraction; only floats are scaled")
    size = math.prod(window.size for window in facts.windows)
    # an order-free reduction of the same elements has the same bits
    return _offered(tape, match, "stablehlo.reduce_window", root.size * size, exact=facts.reducer != "sum")


def _batch_norm(name: str, flops_per_element: int) -> Offering:
    def offering(tape: Tape, match: Match) -> Offer | Decline:
        facts: NormFacts = match.facts
        x = tape.ops[match.bindings["x"]].type
        kinds = {tape.ops[value].type.dtype for value in match.bindings.values()}
        if len(kinds) > 1 or x.dtype not in FLOATS:
            return _guard(f"{name} needs one float dtype, the operands have {' and '.join(sorted(kinds))}")
        own = numpy_dtype(x.dtype).type
        if own(np.float32(facts.epsilon)) != own(facts.epsilon):
            return _guard(f"{name} holds epsilon as f32, and {facts.epsilon!r} is no f32 number")
        return _offered(tape, match, name, flops_per_element * x.size)

    return offering


def _conv_bn_activation(tape: Tape, match: Match) -> Offer | Decline:
    facts = match.facts
    assert isinstance(facts, EpilogueFacts)
    if facts.among:
        alone = "no value holds its convolution alone: add bias and residual after the last slice"
        return Decline("TP206", "no-kernel", f"StableHLO has no op for the whole chain, and {alone}")
    raised = (
        "convolution is raised itself" if facts.norm is None else "convolution and batch norm are raised themselves"
    )
    return Decline("TP206", "no-kernel", f"StableHLO has no op for the whole chain; its {raised}")


ROWS: Final[Mapping[str, Offering]] = MappingProxyType(
    {
        "convolution": _convolution,
        "window_reduce": _window_reduce,
        "batch_norm_training": _batch_norm("stablehlo.batch_norm_training", 7),
        "batch_norm_inference": _batch_norm("stablehlo.batch_norm_inference", 4),
        "conv_bn_activation": _conv_bn_activation,
    }
)


def _guard(reason: str) -> Decline:
    return Decline("TP207", "guard", reason)


def _offered(tape: Tape, match: Match, kernel: str, flops: int, *, exact: bool = False) -> Offer:
    """Counts every binding and every produced value once."""
    read = sum(tape.ops[value].type.bytes for value in set(match.bindings.values()))
    written = sum(tape.ops[value].type.bytes for value in match.produced)
    return Offer(kernel, Work(flops=flops, bytes_read=read, bytes_written=written), exact)
