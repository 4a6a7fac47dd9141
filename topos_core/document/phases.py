"""The three forms of what runs together at a value: its recorded ops, the group that they make, the loop nest of the group.

A group is a taken region, or recorded ops that one loop nest could run; the nest is told only where there is one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from topos_core.document import facts, phrases
from topos_core.document.display import display
from topos_core.document.plan_document import attributes_text
from topos_core.kernels.expressions.nest import loop_nest
from topos_core.matching.expression import ExpressionFacts
from topos_core.matching.match import Match
from topos_core.plan.decision import Decision
from topos_core.plan.plan import PlanData
from topos_core.plan.schedule import SOURCES, Step
from topos_core.tape.op import Op


def phases(plan: PlanData, groups: Sequence[Sequence[int]], value: int) -> dict[str, Any]:
    """Gives `recorded`, `grouped` and `nest` around a value: lines of `{"value", "text"}`, or `missing` with the reason.

    Args:
        plan: The plan.
        groups: Recorded ops that one loop nest could run, as `Plan.groups` lists them.
        value: Any recorded op.
    """
    step = _step_of(plan, value)
    if step is None:
        why = phrases.source_runs_nowhere() if plan.tape.ops[value].name in SOURCES else phrases.nothing_runs_there()
        return {
            "values": [value],
            "region": None,
            "recorded": _lines(plan, [value]),
            **_missing("grouped", why),
            **_missing("nest", why),
        }
    if step.match is not None:
        match = step.match
        if isinstance(match.facts, ExpressionFacts):
            return _generated(plan, match, f"{display(match.pattern)}@{match.root}")
        values = sorted(match.interior | match.produced)
        bound = ", ".join(f"{display(name)}=%{bound}" for name, bound in match.bindings.items())
        title = facts.title(match.pattern, match.facts)
        head = f"{', '.join(f'%{made}' for made in step.produces)} = {match.pattern}({bound})"
        return {
            "values": values,
            "region": f"{display(match.pattern)}@{match.root}",
            "recorded": _lines(plan, values),
            "grouped": [{"value": match.root, "text": head}, {"value": match.root, "text": f"  // {title}"}],
            **_missing("nest", phrases.kernel_in_place_of_nest()),
        }
    lost = _loops_not_taken(plan, value)
    if lost is not None:
        return _generated(plan, lost.match, None, phrases.nest_not_run(lost.reason))
    values = next((list(group) for group in groups if value in group or step.value in group), [step.value])
    recorded = {"values": values, "region": None, "recorded": _lines(plan, values)}
    if len(values) == 1:
        return {**recorded, **_missing("grouped", phrases.alone()), **_missing("nest", phrases.no_nest())}
    inside = set(values)
    users = {user for one in plan.schedule.steps for user in one.reads if one.value not in inside}
    gives = [one for one in values if one in users or one in plan.schedule.kept] or values[-1:]
    return {**recorded, "grouped": _group(plan, values, gives, "group"), **_missing("nest", phrases.no_nest())}


def _generated(plan: PlanData, match: Match, region: str | None, note: str = "") -> dict[str, Any]:
    """Gives the three forms of an expression: its nest is what its kernel is generated from."""
    values = sorted(match.interior | match.produced)
    gives = sorted(match.produced)
    nest = [{"value": line.value, "text": line.text} for line in loop_nest(plan.tape, match)]
    return {
        "values": values,
        "region": region,
        "recorded": _lines(plan, values),
        "grouped": _group(plan, values, gives, match.pattern if region else "group"),
        "nest": [*([{"value": match.root, "text": f"// {note}"}] if note else []), *nest],
    }


def _loops_not_taken(plan: PlanData, value: int) -> Decision | None:
    """Finds the largest expression around an op that this plan runs op by op."""
    found = (
        decision
        for decision in plan.decisions
        if decision.verdict != "taken" and isinstance(decision.match.facts, ExpressionFacts)
        if value in decision.match.computing or value in decision.match.produced
    )
    return max(found, key=lambda decision: (len(decision.match.computing), -decision.match.root), default=None)


def _group(plan: PlanData, values: Sequence[int], gives: Sequence[int], name: str) -> list[dict[str, Any]]:
    """Writes a group: what it gives and reads, and its ops inside."""
    inside = set(values)
    reads = sorted({read for one in values for read in plan.tape.ops[one].operands} - inside)
    head = f"{', '.join(f'%{one}' for one in gives)} = {display(name)}({', '.join(f'%{one}' for one in reads)}) {{"
    lines = [{**line, "text": f"  {line['text']}"} for line in _lines(plan, values)]
    return [{"value": gives[0], "text": head}, *lines, {"value": gives[0], "text": "}"}]


def _step_of(plan: PlanData, value: int) -> Step | None:
    """Finds what runs a value: the step that makes it, or the taken match that has it inside."""
    for step in plan.schedule.steps:
        if value in step.produces or (step.match is not None and value in step.match.computing):
            return step
    return next((s for s in plan.schedule.steps if s.match is not None and value in s.match.interior), None)


def _lines(plan: PlanData, values: Sequence[int]) -> list[dict[str, Any]]:
    return [{"value": value, "text": f"%{value} = {_op(plan.tape.ops[value])}"} for value in values]


def _op(op: Op) -> str:
    """Writes an op for people: tables by their name alone."""
    attributes = attributes_text(op)
    operands = ", ".join(f"%{operand}" for operand in op.operands)
    return display(f"{op.name}({operands}){f' {attributes}' if attributes else ''} : {op.type}")


def _missing(name: str, why: str) -> dict[str, Any]:
    return {name: None, f"{name}_missing": why}
