"""A shorter tape for a search: of every run, enough periods that one of them stands for those that are left out.

Of a run, periods stay before and behind the one that is searched for the others: whatever a pattern looks at from inside it,
downwards or at readers, is in the run too, so it finds there what it would find in any left-out period. A run whose left-out
part is read from elsewhere, or whose periods differ in anything that a search could see, stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from topos_core.matching.closure import computes
from topos_core.matching.form import FOLDS
from topos_core.matching.func import DEPTH
from topos_core.matching.repeats import FURTHER, OWN, SAME, Rows, Run, rows, rules, runs
from topos_core.tape.op import Op
from topos_core.tape.tape import Tape

LEVELS: Final = DEPTH + 2
"""Computing ops between the searched period and either end of its run, at least, along every path.

What may be looked at is as deep only along sums of sums, the path of a residual: an anchor is looked for within `DEPTH`, and
a try opens one sum below another. Every other path through a block holds more than that.
"""

WORTH: Final = 128
"""Ops left out at least; below that a search is cheaper than the bookkeeping."""


@dataclass(frozen=True, slots=True)
class Gap:
    """What of one run a shorter tape leaves out.

    Args:
        searched: The first value of the period that stands for the left-out ones, which follow it.
        period: Its length.
        times: How many periods are left out.
        near: Values from here on are the run's own; what is older is the same value for every period, or its own source.
        back: How far back an op of the run reads the run.
        edge: Older values that the run reads as a period further on: nothing that is found may reach them.
        step: A period's own sources by those of the period before.
        own: For each left-out period its sources by those of the periods that stay.
    """

    searched: int
    period: int
    times: int
    near: int
    back: int
    edge: frozenset[int]
    step: dict[int, int]
    own: tuple[dict[int, int], ...]

    @property
    def begins(self) -> int:
        """Gives the first value that is left out."""
        return self.searched + self.period

    @property
    def ends(self) -> int:
        """Gives the first value behind what is left out."""
        return self.searched + self.period * (self.times + 1)


@dataclass(frozen=True, slots=True)
class Shortened:
    """A shorter tape.

    Args:
        tape: What is left; names are marks that `name_mark` makes, since what stays speaks for what does not.
        gaps: What was left out, in tape order, by values of the whole tape.
        home: The whole tape's value by the shorter one's.
    """

    tape: Tape
    gaps: tuple[Gap, ...]
    home: tuple[int, ...]


def shortened(tape: Tape) -> Shortened | None:
    """Leaves out what repeats; None where nothing that is worth it does."""
    of = rows(tape)
    found = [gap for run in runs(of) if (gap := _gap(tape, of, run)) is not None]
    return _without(tape, sorted(found, key=lambda gap: gap.searched)) if found else None


def _gap(tape: Tape, of: Rows, run: Run) -> Gap | None:
    start, period, end = run
    if (end - start) - 3 * period < WORTH:
        return None
    rule = rules(of, run)
    margin = _margin(tape, of, run, rule)
    if margin is None:
        return None
    near, searched = start, start + max(margin, 2 * period)  # keys of one period are compared with another's in the run
    times = (
        end - margin - searched
    ) // period - 1  # as far from the end: a near miss looks down, and is one for an anchor
    if times * period < WORTH:
        return None
    if not _is_closed(of, run, searched + period, searched + period * (times + 1)):
        return None
    begin = of.first[start]
    zone = slice(0, of.first[searched + period] - begin)
    operands = of.operands[begin : of.first[searched + period]]
    same, own = operands[rule[zone] == SAME], operands[rule[zone] == OWN]
    if (same >= near).any() or (own >= near).any():
        return None
    step = _own(of, run, start, searched, rule, 1)
    maps = _own(of, run, start, searched + period, rule, times)
    if step is None or maps is None or _folds_on(tape, of, searched, period):
        return None
    behind = of.operands[of.first[searched + period * (times + 1)] : of.first[end]]
    if np.intersect1d(own, behind).size:
        return None  # a source of two periods
    further = operands[rule[zone] == FURTHER]
    counts = np.diff(of.first[start : searched + period + 1])
    readers = np.repeat(np.arange(start, searched + period), counts)[rule[zone] == FURTHER]
    back = int((readers - further).max(initial=0))
    edge = frozenset(further[further < near].tolist())
    if edge & (set(same.tolist()) | set(own.tolist())):
        return None
    return Gap(searched, period, times, near, back, edge, step[0], maps)


def _margin(tape: Tape, of: Rows, run: Run, rule: np.ndarray) -> int | None:
    """Gives how many values of the run, a whole number of periods, lie before a period so that `LEVELS` do."""
    start, period, end = run
    begin = int(of.first[start])
    levels: list[int] = []
    for value in range(start, end):
        op = tape.ops[value]
        at = int(of.first[value]) - begin
        level = LEVELS
        for k, operand in enumerate(op.operands):
            if rule[at + k] == FURTHER:
                level = min(level, levels[operand - start] if operand >= start else 0)
        levels.append(min(LEVELS, level + (level < LEVELS and computes(tape, value))))
        if len(levels) % period == 0 and min(levels[-period:]) >= LEVELS:
            return max(len(levels) - period, period)
    return None


def _is_closed(of: Rows, run: Run, begins: int, ends: int) -> bool:
    """Says whether nothing behind the run reads what is left out."""
    later = of.operands[of.first[run.end] :]
    return not ((later >= begins) & (later < ends)).any()


def _own(of: Rows, run: Run, near: int, until: int, rule: np.ndarray, times: int) -> tuple[dict[int, int], ...] | None:
    """Maps the sources of the periods that stay to those of each left-out one; None where their order is not kept.

    Functions are sorted by when they were made: operands must stand in one order for all periods.
    """
    begin = int(of.first[run.start])
    first, last = int(of.first[near]), int(of.first[until])
    each = int(of.first[run.start + run.period]) - begin
    zone = rule[first - begin : last - begin]
    places = np.flatnonzero(zone == OWN)
    if not len(places):
        return ({},) * times
    own = of.operands[first + places]
    region = of.operands[begin : of.first[run.end]]
    inside = np.bincount(region[rule == OWN], minlength=len(of.signs))
    if (inside[own] != of.reads[own]).any():
        return None  # somebody else reads one, and may make it another multiple
    fixed = np.unique(of.operands[first + np.flatnonzero(zone == SAME)])
    maps: list[dict[int, int]] = []
    for time in range(1, times + 1):
        other = of.operands[first + places + time * each]
        pairs = np.unique(np.stack((own, other)), axis=1)
        both = np.concatenate((pairs, np.stack((fixed, fixed))), axis=1)
        both = both[:, np.argsort(both[0], kind="stable")]
        if (np.diff(both[0]) <= 0).any() or (np.diff(both[1]) <= 0).any():
            return None
        maps.append(dict(zip(pairs[0].tolist(), pairs[1].tolist(), strict=True)))
    return tuple(maps)


def _folds_on(tape: Tape, of: Rows, searched: int, period: int) -> bool:
    """Says whether a sum, maximum or minimum of the searched period goes on through the whole next one."""
    until = searched + 2 * period
    sole: dict[int, int] = {}
    for value in range(searched, until):
        if value in of.alive:
            sole |= {operand: value for operand in tape.ops[value].operands if of.reads[operand] == 1}
    for value in range(searched, searched + period):
        name, top = tape.ops[value].name, value
        if name in FOLDS:
            while top in sole and tape.ops[sole[top]].name == name:
                top = sole[top]
            if top >= searched + period and top not in sole and of.reads[top] == 1:
                return True
    return False


def name_mark(value: int) -> str:
    """Stands for the name of a value in what is told about a shorter tape."""
    return f"\x01{value}\x02"


def _without(tape: Tape, gaps: Sequence[Gap]) -> Shortened:
    home: list[int] = []
    at = 0
    for gap in gaps:
        home += range(at, gap.begins)
        at = gap.ends
    home += range(at, len(tape.ops))
    new = [-1] * len(tape.ops)
    for place, value in enumerate(home):
        new[value] = place
    for gap in gaps:  # what follows read what was left out: it reads what is as far before the gap instead
        distance = gap.period * gap.times
        for value in range(max(gap.begins, gap.near + distance), gap.ends):
            new[value] = new[value - distance]
    ops: list[Op] = []
    for value in home:
        op = tape.ops[value]
        ops.append(op._replace(operands=tuple([new[operand] for operand in op.operands])))
    kept = set(home)
    short = replace(
        tape,
        ops=tuple(ops),
        inputs=tuple(new[value] for value in tape.inputs if value in kept),
        parameters=tuple(new[value] for value in tape.parameters if value in kept),
        results=tuple(new[value] for value in tape.results if value in kept),
        names={new[value]: name_mark(new[value]) for value in tape.names if value in kept},
        observations=tuple(o._replace(value=new[o.value]) for o in tape.observations if o.value in kept),
        defaults={},
        ranges={},
        notes=(),
    )
    return Shortened(short, tuple(gaps), tuple(home))
