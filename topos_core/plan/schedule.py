"""In which order a plan runs: one step per taken match or recorded op that somebody still needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from topos_core.errors import InternalError
from topos_core.matching.match import Match
from topos_core.tape.tape import Tape

SOURCES: Final = frozenset(("input", "parameter", "constant"))  # values that exist before a run


class Step(NamedTuple):
    """One thing to run.

    Args:
        value: The recorded op, or the root of the match.
        match: What runs in place of the recorded ops; None for a recorded op.
        reads: Values that the step reads, each once, ascending.
        produces: Values that exist afterwards: the op's own, or the match's root and every producer of its named results.
        frees: Values that no later step reads and nobody keeps; dropped after the step.
    """

    value: int
    match: Match | None
    reads: tuple[int, ...]
    produces: tuple[int, ...]
    frees: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Schedule:
    """The steps of a run.

    Args:
        steps: In execution order; deterministic, as near to tape order as named results allow.
        sources: Inputs, parameters and constants that some step or the caller reads, ascending.
        kept: Values that must exist at the end: results and observed values, ascending.
    """

    steps: tuple[Step, ...]
    sources: tuple[int, ...]
    kept: tuple[int, ...]


def schedule(tape: Tape, taken: Sequence[Match], wanted: Iterable[int]) -> Schedule:
    """Orders what `wanted` needs; movement inside a match is scheduled only while an unclaimed reader remains.

    Raises:
        InternalError: the taken matches contract to a cycle; the election refuses those.
    """
    kept = tuple(sorted(set(wanted)))
    owner = {value: match.root for match in taken for value in match.produced}
    roots = {match.root: match for match in taken}
    needed = _needed(tape, owner, roots, kept)
    runs = _units(tape, owner, needed)
    reads = {unit: _reads(tape, roots.get(unit), unit) for unit in runs}
    order: list[int] = []
    done: set[int] = set()
    for unit in runs:
        _emit(tape, owner, reads, unit, done, order)
    sources = tuple(value for value in needed if tape.ops[value].name in SOURCES)
    return Schedule(_with_frees(tape, roots, reads, order, kept), sources, kept)


def units(tape: Tape, taken: Sequence[Match], wanted: Iterable[int]) -> list[int]:
    """Lists what `schedule` puts in order, ascending: recorded ops, and the roots of taken matches."""
    owner = {value: match.root for match in taken for value in match.produced}
    return _units(tape, owner, _needed(tape, owner, {match.root: match for match in taken}, tuple(set(wanted))))


def _units(tape: Tape, owner: Mapping[int, int], needed: Sequence[int]) -> list[int]:
    # A match stands at its root, not at its first named result: values then live as short as they can.
    made = [value for value in needed if tape.ops[value].name not in SOURCES]
    return sorted({owner.get(value, value) for value in made}) if owner else made


def _needed(tape: Tape, owner: Mapping[int, int], roots: Mapping[int, Match], kept: Sequence[int]) -> list[int]:
    """Lists what must exist at some time, ascending."""
    needed = bytearray(len(tape.ops))
    todo = list(kept)
    while todo:
        value = todo.pop()
        if needed[value]:
            continue
        needed[value] = 1
        root = owner.get(value)
        todo += tape.ops[value].operands if root is None else roots[root].bindings.values()
    return [value for value, flag in enumerate(needed) if flag]


def _reads(tape: Tape, match: Match | None, unit: int) -> tuple[int, ...]:
    operands = tape.ops[unit].operands if match is None else tuple(match.bindings.values())
    if len(operands) < 2:
        return operands
    return tuple(sorted(set(operands)))


def _emit(
    tape: Tape,
    owner: Mapping[int, int],
    reads: Mapping[int, tuple[int, ...]],
    unit: int,
    done: set[int],
    order: list[int],
) -> None:
    """Appends a unit after everything it reads; without recursion, since chains are as long as the tape."""
    if unit in done:
        return
    entered: set[int] = set()
    stack = [unit]
    while stack:
        current = stack[-1]
        if current in done:
            stack.pop()
            continue
        waiting = [u for v in reads[current] if (u := owner.get(v, v)) not in done and tape.ops[v].name not in SOURCES]
        if not waiting:
            done.add(current)
            order.append(current)
            stack.pop()
        elif current in entered:
            raise InternalError(f"taken matches contract to a cycle at value {current}")
        else:
            entered.add(current)
            stack.extend(reversed(waiting))


def _with_frees(
    tape: Tape,
    roots: Mapping[int, Match],
    reads: Mapping[int, tuple[int, ...]],
    order: Sequence[int],
    kept: Sequence[int],
) -> tuple[Step, ...]:
    last: dict[int, int] = {}
    parts: list[tuple[int, Match | None, tuple[int, ...], tuple[int, ...]]] = []
    for position, unit in enumerate(order):
        match = roots.get(unit)
        produces = (unit,) if match is None or not match.named else tuple(sorted(match.produced))
        for value in produces:
            last[value] = position
        for value in reads[unit]:
            last[value] = position
        parts.append((unit, match, reads[unit], produces))
    frees: list[list[int] | None] = [None] * len(order)
    held = set(kept)
    for value, position in last.items():
        if value not in held and tape.ops[value].name not in SOURCES:
            row = frees[position]
            if row is None:
                frees[position] = [value]
            else:
                row.append(value)
    return tuple(
        Step(*part, () if free is None else tuple(sorted(free))) for part, free in zip(parts, frees, strict=True)
    )
