"""Whether matches, each contracted to one step, still have an order to run in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from topos_core.matching.match import Match
from topos_core.tape.tape import Tape


def find_cycle(
    tape: Tape, users: Sequence[Sequence[int]], matches: Sequence[Match], picks: Iterable[int]
) -> tuple[int, ...]:
    """Gives the pool numbers of picks that wait for each other, or nothing.

    Ordered by its root, a match stands after everything it reads, so only a named result that is read before the root
    can close a cycle; where there is none, nothing is walked.
    """
    chosen = sorted(picks)
    suspects = [i for i in chosen if read_before_root(users, matches[i])]
    if not suspects:
        return ()
    owner = {value: i for i in chosen for value in matches[i].produced}
    spans = [(min(matches[i].produced), matches[i].root, i) for i in chosen if matches[i].named]
    for suspect in suspects:
        first = min(matches[suspect].produced)
        # What is made before the first result cannot wait for it, unless another match has results on both sides.
        alone = not any(low < first < high for low, high, i in spans if i != suspect)
        loop = _loop(tape, owner, matches, suspect, first if alone else 0)
        if loop:
            return loop
    return ()


def read_before_root(users: Sequence[Sequence[int]], match: Match) -> bool:
    """Tells whether somebody outside a match reads a named result before the root."""
    if not match.named:
        return False
    inside = match.interior | match.produced
    return any(
        user < match.root and user not in inside for values in match.named.values() for v in values for user in users[v]
    )


def _loop(tape: Tape, owner: dict[int, int], matches: Sequence[Match], start: int, first: int) -> tuple[int, ...]:
    """Walks what `start` waits for, depth first, down to value `first`; gives the matches on the way back to it."""
    produced = matches[start].produced
    came: dict[int, int] = {}
    stack = [(value, -1) for value in matches[start].bindings.values()]
    while stack:
        value, parent = stack.pop()
        if value in produced:
            loop = {start}
            while parent >= 0:
                if parent in owner:
                    loop.add(owner[parent])
                parent = came[parent]
            return tuple(sorted(loop))
        if value in came or value < first:
            continue
        came[value] = parent
        at = owner.get(value)
        reads = tape.ops[value].operands if at is None else matches[at].bindings.values()
        stack.extend((operand, value) for operand in reads)
    return ()
