"""Runs: stretches of a tape that say the same thing again and again, found without searching anything.

A run of a period p is a stretch in which op v + p does what op v does: equal name, attributes, type and liveness, as many
readers, the same kinds of results and observations, and operands that are told by the same rule all along the run: p further
on, the same value, or a source of its own for each repetition. Layers of a decoder are such a run, whoever recorded them. All
of it is arithmetic on arrays; the costs per op are those of one dictionary look-up.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from topos_core.tape.leading import live
from topos_core.tape.signs import signs
from topos_core.tape.tape import Tape

GRAM: Final = 16
"""Ops that must agree before two places count as alike at all."""

GAPS: Final = 12
"""Periods tried, the commonest first: a network has few kinds of layers."""

SOURCES: Final = frozenset(("input", "parameter"))

FURTHER, SAME, OWN = 1, 2, 3
"""Rules of operands: the period further on, the same value, a source of its own."""


class Run(NamedTuple):
    """`[start, end)` repeats itself every `period` values."""

    start: int
    period: int
    end: int


class Rows(NamedTuple):
    """A tape in arrays.

    Args:
        signs: Per op a number, equal for ops that differ in their operands alone.
        first: Per op where its operands begin in `operands`, and their number at the end.
        operands: All operands, op by op.
        sources: Per op whether it is an input or a parameter.
        reads: Per value how often live ops read it.
        alive: Values that a result or an observation needs.
    """

    signs: np.ndarray
    first: np.ndarray
    operands: np.ndarray
    sources: np.ndarray
    reads: np.ndarray
    alive: frozenset[int]


def rows(tape: Tape) -> Rows:
    """Reads a tape into arrays. Linear."""
    known: dict[Any, int] = {}
    alive = tape.once(live)
    read = [0] * len(tape.ops)
    operands: list[int] = []
    first = [0]
    for value, (_, own, _, _, _) in enumerate(tape.ops):
        operands += own
        first.append(len(operands))
        if value in alive:
            for operand in own:
                read[operand] += 1
    watched: dict[int, tuple[str, ...]] = {}
    for value, kind in (
        *((value, "result") for value in tape.results),
        *((o.value, o.kind) for o in tape.observations),
    ):
        watched[value] = (*watched.get(value, ()), kind)
    names, kinds = tape.names, []
    told = tape.once(signs)
    for value, op in enumerate(tape.ops):
        key: Any = (told[value], value in alive, read[value])
        if not op[1]:
            key = (*key, watched.get(value), (value in names, value in tape.defaults, tape.ranges.get(value)))
        elif value in watched or value in names:
            key = (*key, watched.get(value), value in names)
        kinds.append(known.setdefault(key, value))
    sources = [op.name in SOURCES for op in tape.ops]
    return Rows(
        np.array(kinds, np.int64),
        np.array(first, np.int64),
        np.array(operands, np.int64),
        np.array(sources),
        np.array(read, np.int64),
        alive,
    )


def runs(of: Rows) -> list[Run]:
    """Finds runs that do not overlap, the longest first."""
    count = len(of.signs)
    found: list[Run] = []
    for period in _periods(of.signs):
        alike = _alike(of, period)
        edges = np.flatnonzero(np.diff(np.concatenate(([0], alike.view(np.int8), [0]))))
        found += [
            Run(int(start), period, int(stop) + period)
            for start, stop in zip(edges[::2], edges[1::2], strict=True)
            if stop - start >= 2 * period
        ]
    taken = np.zeros(count, bool)
    chosen: list[Run] = []
    for run in sorted(found, key=lambda run: (-(run.end - run.start - 2 * run.period), run.period, run.start)):
        if not taken[run.start : run.end].any():
            taken[run.start : run.end] = True
            chosen.append(run)
    return chosen


def rules(of: Rows, run: Run) -> np.ndarray:
    """Gives the rule of every operand of the run's ops; that of the last period is that of the one before."""
    first, last = of.first[run.start], of.first[run.end]
    each = of.first[run.start + run.period] - first
    found = _rules(of, of.operands[first : last - each], of.operands[first + each : last], run.period)
    return np.concatenate((found, found[len(found) - each :]))


def _rules(of: Rows, before: np.ndarray, after: np.ndarray, period: int) -> np.ndarray:
    own = of.sources[before] & of.sources[after] & (of.signs[before] == of.signs[after]) & (before != after)
    return np.where(after == before + period, FURTHER, np.where(after == before, SAME, np.where(own, OWN, 0)))


def _alike(of: Rows, period: int) -> np.ndarray:
    """Says of every op but the last ones whether the op a period later does the same."""
    equal: np.ndarray = of.signs[:-period] == of.signs[period:]
    if not equal.any():
        return equal
    at = np.flatnonzero(equal)
    arity = of.first[at + 1] - of.first[at]
    owner = np.repeat(at, arity)
    place = np.arange(len(owner)) - np.repeat(np.cumsum(arity) - arity, arity)
    before = of.operands[of.first[owner] + place]
    after = of.operands[of.first[owner + period] + place]
    rule = _rules(of, before, after, period)
    equal[owner[rule == 0]] = False
    # One operand follows one rule all along a run: what is the same value for a while and further on later is no repeat.
    mine, next_ = of.first[owner] + place, of.first[owner + period] + place
    at_next = np.minimum(np.searchsorted(mine, next_), max(len(mine) - 1, 0))
    follows = mine[at_next] == next_ if len(mine) else np.zeros(0, bool)
    equal[owner[follows & (rule[at_next] != rule)]] = False
    return equal


def _periods(signs: np.ndarray) -> list[int]:
    """Lists the distances at which stretches of equal ops follow each other, the commonest first."""
    count = len(signs) - GRAM + 1
    if count < 2:
        return []
    random = np.random.default_rng(1).integers(1, 1 << 62, GRAM, np.int64) | 1
    with np.errstate(over="ignore"):
        grams = sum((signs[k : k + count] + 1) * random[k] * (signs[k : k + count] * 2 + 1) for k in range(GRAM))
    order = np.argsort(grams, kind="stable")
    same = grams[order[1:]] == grams[order[:-1]]
    gaps, often = np.unique((order[1:] - order[:-1])[same], return_counts=True)
    return [int(gaps[k]) for k in np.argsort(-often, kind="stable")[:GAPS]]
