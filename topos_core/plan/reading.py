"""Who reads what: which values lead to a returned output, which only to observations, and over which path."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from topos_core.matching.match import Match
from topos_core.plan.request import Request
from topos_core.tape.tape import Observation, Tape


@dataclass(frozen=True, slots=True)
class Reading:
    """The readers of one request.

    Args:
        observations: Every row of the tape, then the request's own; a row's index is its id.
        rows: Ids of the rows that count, by observed value.
        leads_out: Per value, whether it leads to a returned output.
        alive: Per value, whether it leads to a returned output or an observation.
        users: Readers of every value.
    """

    observations: tuple[Observation, ...]
    rows: Mapping[int, tuple[int, ...]]
    leads_out: Sequence[bool]
    alive: Sequence[bool]
    users: Sequence[Sequence[int]]


def reading(tape: Tape, users: Sequence[Sequence[int]], request: Request) -> Reading:
    """Collects the readers that count: the tape's without the ignored ones, and the request's own. Linear."""
    asked = tuple(
        Observation(value, "observe", tape.names.get(value), tape.ops[value].location) for value in request.observe
    )
    observations = (*tape.observations, *asked)
    rows: dict[int, tuple[int, ...]] = {}
    for row, observation in enumerate(observations):
        if row not in request.ignore:
            rows[observation.value] = (*rows.get(observation.value, ()), row)
    leads_out = [False] * len(tape.ops)
    alive = [False] * len(tape.ops)
    for value in tape.results:
        leads_out[value] = True
    for value in (*rows, *tape.results):
        alive[value] = True
    for value in range(len(tape.ops) - 1, -1, -1):
        if alive[value]:
            out = leads_out[value]
            for operand in tape.ops[value].operands:
                alive[operand] = True
                if out:
                    leads_out[operand] = True
    return Reading(observations, rows, leads_out, alive, users)


class Boundary(NamedTuple):
    """Where a match's inside meets the rest of the tape; depends on no request. A NamedTuple because one is made per match.

    Args:
        claims: Computing ops that no other taken match may claim: the computing part and the named results' producers.
        owned: Inner values that exist only with the match: computing ones and movement of those.
        observable: Inner values whose observation blocks: all but constants and what is a binding to its writer.
        outside: (owned value, reader outside) links, ascending.
        inside: The interior and what is produced, descending.
    """

    claims: frozenset[int]
    owned: frozenset[int]
    observable: tuple[int, ...]
    outside: tuple[tuple[int, int], ...]
    inside: tuple[int, ...]


def boundary(tape: Tape, users: Sequence[Sequence[int]], match: Match) -> Boundary:
    """Finds what a match owns. Movement of a binding and constants are nobody's; movement of an inner result is owned.

    One expression may record a binding and its rearrangement (`x @ w` of rank 3 is a product and a reshape): to whoever
    wrote it both are one value, an input of the match, and observing an input blocks nothing.
    """
    ops, computing, produced = tape.ops, match.computing, match.produced
    inside = match.interior | produced
    owned: list[int] = []
    has: set[int] = set()
    bound = set(match.bindings.values())
    observable = []
    for value in sorted(match.interior):
        name, operands, _, _, location = ops[value]
        if value in computing or not has.isdisjoint(operands):
            has.add(value)
            owned.append(value)
        if name in ("reshape", "permute") and operands[0] in bound and location == ops[operands[0]].location:
            bound.add(value)
        elif name != "constant" and value not in bound:
            observable.append(value)
    outside = tuple([(v, u) for v in owned for u in users[v] if u not in inside])
    claims = computing | produced
    return Boundary(claims, frozenset(has), tuple(observable), outside, tuple(sorted(inside, reverse=True)))


def shared_readers(boundary: Boundary, reads: Reading) -> tuple[tuple[int, int], ...]:
    """Lists (inner value, reader) links that lead to a returned output; dead readers and observers' tails are none."""
    return tuple((v, u) for v, u in boundary.outside if reads.leads_out[u])


def blocking(boundary: Boundary, reads: Reading) -> dict[int, tuple[int, ...]]:
    """Maps every observation of an unnamed inner value to its path, from the inner value to the observed one.

    A reader that leads only to observations is part of them: `print(x.mean())` observes x.
    """
    found: dict[int, tuple[int, ...]] = {}
    for value in boundary.observable:
        for row in reads.rows.get(value, ()):
            found[row] = (value,)
    for value, reader in boundary.outside:
        if reads.alive[reader] and not reads.leads_out[reader]:
            for row, path in _tail(reads, reader):
                if row not in found or len(found[row]) > len(path) + 1:
                    found[row] = (value, *path)
    return dict(sorted(found.items()))


def _tail(reads: Reading, start: int) -> Iterable[tuple[int, tuple[int, ...]]]:
    """Walks what `start` leads to, nearest first, and gives each observation with the values on its way."""
    came: dict[int, int] = {start: -1}
    queue = deque((start,))
    while queue:
        value = queue.popleft()
        if value in reads.rows:
            path = [value]
            while came[path[-1]] >= 0:
                path.append(came[path[-1]])
            for row in reads.rows[value]:
                yield row, tuple(reversed(path))
        for user in reads.users[value]:
            if user not in came and reads.alive[user]:
                came[user] = value
                queue.append(user)
