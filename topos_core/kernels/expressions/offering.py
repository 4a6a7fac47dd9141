"""What an expression's kernel costs, and when there is none."""

from __future__ import annotations

from typing import Final

from topos_core.cost.work import Work
from topos_core.kernels.envelopes import envelope, unmeasured
from topos_core.kernels.expressions.programs import exponent, jumps, missing, rounded, standing_on
from topos_core.kernels.expressions.runner import stage_of
from topos_core.kernels.kernel import Decline, Offer, Stages, Terms
from topos_core.matching.expression import REDUCTIONS, ExpressionFacts, Step
from topos_core.matching.match import Match
from topos_core.tape.tape import Tape

WEIGHTS: Final = {
    "exp": 1.0, "tanh": 2.0, "erf": 3.0, "div": 0.6, "sqrt": 0.6, "rsqrt": 1.2, "remainder": 40.0, "expm1": 20.0,
    "log": 16.0, "log1p": 24.0, "sin": 24.0, "cos": 24.0, "pow": 40.0,
}  # fmt: skip
"""What an op costs, in exponentials; the C library's functions cost as much as they do one by one. Others cost two flops."""
CALLS: Final = 1.5
"""What starting a kernel costs, in calls of a plain one."""
EFFICIENCY: Final = 0.7
EFFICIENCY_ACROSS: Final = 0.15
"""Where the innermost axis is kept and others are reduced: rows lie far apart in memory. Half of that for two passes."""
ROW_SECONDS: Final = 15e-9
"""What a row of the loops costs beside its elements."""


def offer_expression(tape: Tape, match: Match, terms: Terms, kernel: str) -> Offer | Decline:
    """Prices the generated loops: every binding is read once and every result written once."""
    facts: ExpressionFacts = match.facts
    gap = missing(facts)
    if gap is not None:
        return Decline("TP206", "no-kernel", f"no kernel computes {gap}")
    inexact = list(rounded(facts))
    if inexact:
        first = facts.steps[inexact[0]]
        if terms.fidelity == "exact":
            return Decline(
                "TP205",
                "fidelity",
                f"{first.op} in a kernel rounds in other places than the recorded one; ask for fidelity fast",
            )
        jump = _jump(facts, inexact)
        if jump is not None:
            return Decline(
                "TP205",
                "fidelity",
                f"a {jump.op} stands on {first.op}, whose last bit differs from the recorded one and would decide",
            )
        measured = envelope(match.pattern, tape.ops[match.root].type.dtype)
        if measured is None:
            return unmeasured(match.pattern, tape.ops[match.root].type.dtype)
    else:
        measured = None
    return Offer(
        kernel=kernel, work=_work(tape, match), exact=not inexact, envelope=measured, efficiency=_efficiency(facts),
        calls=CALLS + _rows(facts) * ROW_SECONDS / 4e-6, in_place=_in_place(tape, match),
        stages=Stages(lambda: (stage_of(tape, match),)),
    )  # fmt: skip


def _in_place(tape: Tape, match: Match) -> tuple[str, ...]:
    """Lists the bindings that have the one result's type and axes: the loops load an element before they store it.

    A value that is read along other axes too (`x + x.swapaxes(0, 1)`) is not among them.
    """
    facts: ExpressionFacts = match.facts
    if facts.reduced or len(facts.results) != 1:
        return ()
    root, axes = tape.ops[match.root].type, tuple(str(axis) for axis in range(len(facts.extents)))
    elsewhere = {value for name, value in match.bindings.items() if facts.layouts[name].roles != axes}
    return tuple(
        name for name, value in match.bindings.items()
        if tape.ops[value].type == root and value not in elsewhere
    )  # fmt: skip


def _efficiency(facts: ExpressionFacts) -> float:
    """Estimates the share of the roofline; see `benchmarks/home_against_recorded.py`."""
    if not facts.reduced or len(facts.extents) - 1 in facts.reduced:
        return EFFICIENCY
    finishes = any(not facts.steps[int(name[1:])].kept for name in facts.results.values())
    return EFFICIENCY_ACROSS / 2 if finishes else EFFICIENCY_ACROSS


def _jump(facts: ExpressionFacts, inexact: list[int]) -> Step | None:
    """Gives an op whose result jumps and that stands on what is rounded otherwise than recorded."""
    unsure = standing_on(facts, inexact)
    return next((s for s in facts.steps if jumps(facts, s) and not unsure.isdisjoint(s.operands)), None)


def _work(tape: Tape, match: Match) -> Work:
    facts: ExpressionFacts = match.facts
    flops = transcendentals = 0
    whole = facts.size()
    kept = facts.size(kept=True) if facts.reduced else whole
    for step in facts.steps:
        size = kept if step.kept and step.op not in REDUCTIONS else whole
        flops += 2 * size
        if step.op in WEIGHTS and not (step.op == "pow" and exponent(facts, step) is not None):
            transcendentals += round(WEIGHTS[step.op] * size)
    kinds = [tape.ops[value].type for value in match.bindings.values()]
    moved = sum(
        8 * kind.bytes
        for kind, layout in zip(kinds, facts.layouts.values(), strict=True)
        if _is_moved(facts, layout.roles)
    )
    read = sum(kind.bytes for kind in kinds)
    return Work(flops, transcendentals, read + moved, sum(tape.ops[value].type.bytes for value in match.produced))


def _is_moved(facts: ExpressionFacts, roles: tuple[str, ...]) -> bool:
    """Tells whether a binding is copied first: it has the innermost axis, but not as its own last one."""
    last = str(len(facts.extents) - 1)
    return last in roles and roles[-1] != last


def _rows(facts: ExpressionFacts) -> int:
    """Counts rows of the loops, where no axes can be merged."""
    inner = facts.extents[-1] if facts.extents else 1
    whole = all(len(layout.roles) in (0, len(facts.extents)) for layout in facts.layouts.values())
    if whole and not facts.reduced:
        return 1
    return facts.size() // max(inner, 1)
