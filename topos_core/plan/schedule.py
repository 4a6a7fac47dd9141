"""In which order a plan runs: one step per taken match or recorded op that somebody still needs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
    owner = {value: match for match in taken for value in match.produced}
    needed = _needed(tape, owner, kept)
    # A match stands at its root, not at its first named result: values then live as short as they can.
    units = sorted({owner[v].root if v in owner else v for v in needed if tape.ops[v].name not in SOURCES})
    roots = {match.root: match for match in taken}
    order: list[int] = []
    done: set[int] = set()
    for unit in units:
        _emit(tape, owner, roots, unit, done, order)
    return Schedule(
        _with_frees(tape, roots, order, kept),
        tuple(sorted(v for v in needed if tape.ops[v].name in SOURCES)),
        kept,
    )


def _needed(tape: Tape, owner: dict[int, Match], kept: Sequence[int]) -> set[int]:
    needed: set[int] = set()
    todo = list(kept)
    while todo:
        value = todo.pop()
        if value in needed:
            continue
        needed.add(value)
        match = owner.get(value)
        todo.extend(tape.ops[value].operands if match is None else match.bindings.values())
    return needed


def _reads(tape: Tape, match: Match | None, unit: int) -> tuple[int, ...]:
    operands = tape.ops[unit].operands if match is None else match.bindings.values()
    return tuple(sorted(set(operands)))


def _emit(
    tape: Tape, owner: dict[int, Match], roots: dict[int, Match], unit: int, done: set[int], order: list[int]
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
        reads = _reads(tape, roots.get(current), current)
        waiting = [
            u
            for u in (owner[v].root if v in owner else v for v in reads if tape.ops[v].name not in SOURCES)
            if u not in done
        ]
        if not waiting:
            done.add(current)
            order.append(current)
            stack.pop()
        elif current in entered:
            raise InternalError(f"taken matches contract to a cycle at value {current}")
        else:
            entered.add(current)
            stack.extend(reversed(waiting))


def _with_frees(tape: Tape, roots: dict[int, Match], order: Sequence[int], kept: Sequence[int]) -> tuple[Step, ...]:
    last: dict[int, int] = {}
    parts: list[tuple[int, Match | None, tuple[int, ...], tuple[int, ...]]] = []
    for position, unit in enumerate(order):
        match = roots.get(unit)
        reads = _reads(tape, match, unit)
        produces = (unit,) if match is None else tuple(sorted(match.produced))
        for value in (*produces, *reads):
            last[value] = position
        parts.append((unit, match, reads, produces))
    frees: list[list[int]] = [[] for _ in order]
    held = set(kept)
    for value, position in last.items():
        if value not in held and tape.ops[value].name not in SOURCES:
            frees[position].append(value)
    return tuple(Step(*part, tuple(sorted(free))) for part, free in zip(parts, frees, strict=True))
