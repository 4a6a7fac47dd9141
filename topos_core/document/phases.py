"""The three forms of what runs together: the recorded ops, the group that they make, the loop nest of the group, and what differs.

A group is a taken region, or recorded ops that one loop nest could run; the nest is told only where there is one.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from topos_core.document import facts, phrases
from topos_core.document.display import display
from topos_core.document.places import Places
from topos_core.document.plan_document import attributes_text
from topos_core.document.wording import Wording
from topos_core.kernels.expressions.nest import loop_nest
from topos_core.matching.expression import ExpressionFacts
from topos_core.matching.match import Match
from topos_core.plan.decision import Decision
from topos_core.plan.plan import PlanData
from topos_core.plan.schedule import SOURCES, Step
from topos_core.tape.op import Op

Line = dict[str, Any]

_POSSIBLE: Final = "possible_group"
"""The name of what one loop nest could run and the plan runs op by op: no region, and nothing that was taken."""


def phases(
    plan: PlanData, groups: Sequence[Sequence[int]], values: Iterable[int] | None = None, *, root: str | None = None
) -> list[dict[str, Any]]:
    """Gives `recorded`, `grouped` and `nest` of every group around some values, each group once.

    Each form is lines of `{"value", "text"}`, or null with the reason in `grouped_missing`, `nest_missing`. `grouped_changes`
    and `nest_changes` are the lines of a form and, with the sign `-`, those that only the form before it has; `+` is new.

    Args:
        plan: The plan.
        groups: Recorded ops that one loop nest could run, as `Plan.groups` lists them.
        values: Any recorded ops, in the order wanted, of which those that run nowhere are told where no other is asked for;
            all that runs, in the order of the run, where it is None.
        root: The folder to which places are told relative.
    """
    told = _Told(plan, groups, root)
    asked = [step.value for step in plan.schedule.steps] if values is None else [*values]
    found: dict[tuple[int, ...], dict[str, Any]] = {}
    covered: set[int] = set()
    for value in [each for each in asked if told.runs(each)] or asked:
        if value in covered:
            continue
        group = told.around(value)
        found.setdefault(tuple(group["values"]), group)
        if group["region"] is None:  # a region's inner views may run by themselves for others
            covered.update(group["values"])
    return [_with_changes(group) for group in found.values()]


def changes(before: Sequence[Line], now: Sequence[Line]) -> list[Line]:
    """Gives the lines of a form with a `sign`, and those that only the form before has; indentation is no difference."""
    old, new = ([line["text"].strip() for line in lines] for lines in (before, now))
    out: list[Line] = []
    for _, first, last, begin, end in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        same = old[first:last] == new[begin:end]
        out += [] if same else [{**line, "sign": "-"} for line in before[first:last]]
        out += [{**line, "sign": "" if same else "+"} for line in now[begin:end]]
    return out


def _with_changes(group: dict[str, Any]) -> dict[str, Any]:
    for name, before in (("grouped", "recorded"), ("nest", "grouped")):
        if group[name] is not None:
            group[f"{name}_changes"] = changes(group[before] or group["recorded"], group[name])
    return group


@dataclass(slots=True)
class _Told:
    """A plan's steps, groups and loops, found by the values in them."""

    plan: PlanData
    groups: Sequence[Sequence[int]]
    words: Wording
    _step: dict[int, Step]
    _group: dict[int, Sequence[int]]
    _loops: dict[int, Decision]
    _reads: dict[int, set[int]]

    def __init__(self, plan: PlanData, groups: Sequence[Sequence[int]], root: str | None) -> None:
        self.plan, self.groups = plan, groups
        self.words = Wording(plan, Places(plan.tape, root), {one.match.id: one for one in plan.decisions}, {})
        steps = plan.schedule.steps
        inside = ((value, step) for step in steps if step.match is not None for value in step.match.interior)
        self._step = dict(reversed([*inside]))
        for step in steps:  # whoever computes a value runs it, whoever else has it inside
            computing = step.match.computing if step.match is not None else ()
            self._step.update(dict.fromkeys((*step.produces, *computing), step))
        self._group = {value: group for group in reversed(groups) for value in group}
        self._loops = _loops_not_taken(plan)
        self._reads = {}
        for step in steps:
            for read in step.reads:
                self._reads.setdefault(read, set()).add(step.value)

    def runs(self, value: int) -> bool:
        """Says whether a value is made in a run: it is no source, and something reads it."""
        return value in self._step

    def around(self, value: int) -> dict[str, Any]:
        """Gives the three forms of what runs at a value."""
        plan, step = self.plan, self._step.get(value)
        if step is None:
            why = (
                phrases.source_runs_nowhere() if plan.tape.ops[value].name in SOURCES else phrases.nothing_runs_there()
            )
            return {**_recorded(plan, [value]), **_missing("grouped", why), **_missing("nest", why)}
        if step.match is not None:
            match = step.match
            region = f"{display(match.pattern)}@{match.root}"
            if isinstance(match.facts, ExpressionFacts):
                return _generated(plan, match, region)
            bound = ", ".join(f"{display(name)}=%{bound}" for name, bound in match.bindings.items())
            title = facts.title(match.pattern, match.facts)
            head = f"{', '.join(f'%{made}' for made in step.produces)} = {match.pattern}({bound})"
            return {
                **_recorded(plan, sorted(match.interior | match.produced), region),
                "grouped": [{"value": match.root, "text": head}, {"value": match.root, "text": f"  // {title}"}],
                **_missing("nest", _in_place_of_nest(plan)),
            }
        lost = self._loops.get(value)
        if lost is not None:
            return _generated(plan, lost.match, None, phrases.nest_not_run(self.words.reason(lost)))
        values = list(self._group.get(value) or self._group.get(step.value) or [step.value])
        recorded = _recorded(plan, values)
        if len(values) == 1:
            return {**recorded, **_missing("grouped", phrases.alone()), **_missing("nest", phrases.no_nest())}
        inside = set(values)
        gives = [one for one in values if self._reads.get(one, set()) - inside or one in plan.schedule.kept] or values[
            -1:
        ]
        return {**recorded, "grouped": _group(plan, values, gives, _POSSIBLE), **_missing("nest", phrases.no_nest())}


def _in_place_of_nest(plan: PlanData) -> str:
    home = plan.request.consumer == "home"
    return phrases.kernel_in_place_of_nest() if home else phrases.raised_in_place_of_nest()


def _generated(plan: PlanData, match: Match, region: str | None, note: str = "") -> dict[str, Any]:
    """Gives the three forms of an expression: its nest is what its kernel is generated from."""
    values = sorted(match.interior | match.produced)
    gives = sorted(match.produced)
    nest = [{"value": line.value, "text": line.text} for line in loop_nest(plan.tape, match)]
    return {
        **_recorded(plan, values, region),
        "grouped": _group(plan, values, gives, match.pattern if region else _POSSIBLE),
        "nest": [*([{"value": match.root, "text": f"// {note}"}] if note else []), *nest],
    }


def _loops_not_taken(plan: PlanData) -> dict[int, Decision]:
    """Finds for every op that this plan runs op by op the largest expression around it."""
    found: dict[int, Decision] = {}
    largest = sorted(
        (one for one in plan.decisions if one.verdict != "taken" and isinstance(one.match.facts, ExpressionFacts)),
        key=lambda one: (-len(one.match.computing), one.match.root),
    )
    for decision in largest:
        for value in decision.match.computing | decision.match.produced:
            found.setdefault(value, decision)
    return found


def _group(plan: PlanData, values: Sequence[int], gives: Sequence[int], name: str) -> list[dict[str, Any]]:
    """Writes a group: what it gives and reads, and its ops inside."""
    inside = set(values)
    reads = sorted({read for one in values for read in plan.tape.ops[one].operands} - inside)
    head = f"{', '.join(f'%{one}' for one in gives)} = {display(name)}({', '.join(f'%{one}' for one in reads)}) {{"
    lines = [{**line, "text": f"  {line['text']}"} for line in _lines(plan, values)]
    return [{"value": gives[0], "text": head}, *lines, {"value": gives[0], "text": "}"}]


def _recorded(plan: PlanData, values: list[int], region: str | None = None) -> dict[str, Any]:
    return {"values": values, "region": region, "recorded": _lines(plan, values)}


def _lines(plan: PlanData, values: Sequence[int]) -> list[dict[str, Any]]:
    return [{"value": value, "text": f"%{value} = {_op(plan.tape.ops[value])}"} for value in values]


def _op(op: Op) -> str:
    """Writes an op for people: tables by their name alone."""
    attributes = attributes_text(op)
    operands = ", ".join(f"%{operand}" for operand in op.operands)
    return display(f"{op.name}({operands}){f' {attributes}' if attributes else ''} : {op.type}")


def _missing(name: str, why: str) -> dict[str, Any]:
    return {name: None, f"{name}_missing": why}
