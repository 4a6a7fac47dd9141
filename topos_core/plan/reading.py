"""Who reads what: which values lead to a returned output, which only to observations, and over which path."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from topos_core.matching.match import Match
from topos_core.matching.tuples import new_tuple
from topos_core.plan.request import Request
from topos_core.tape.leading import leading, leads_on, leads_out
from topos_core.tape.tape import Observation, Tape


@dataclass(frozen=True, slots=True)
class Reading:
    """The readers of one request.

    Args:
        observations: Every row of the tape, then the request's own; a row's index is its id.
        rows: Ids of the rows that count, by observed value.
        observed: Those values.
        beside: Values that are observed and block nothing: they are recomputed where a match hides them.
        leads_out: Per value, whether it leads to a returned output.
        alive: Per value, whether it leads to a returned output or an observation.
        users: Readers of every value.
    """

    observations: tuple[Observation, ...]
    rows: Mapping[int, tuple[int, ...]]
    observed: frozenset[int]
    beside: frozenset[int]
    leads_out: bytearray
    alive: bytearray
    users: Sequence[Sequence[int]]


def reading(tape: Tape, users: Sequence[Sequence[int]]) -> Reading:
    """Collects the tape's own readers. Linear."""
    rows = _rows(tape, tape.observations, frozenset())
    out, alive = tape.once(leads_out), tape.once(leads_on)
    return Reading(tape.observations, rows, frozenset(rows), frozenset(), out, alive, users)


def asked(tape: Tape, own: Reading, request: Request) -> Reading:
    """Collects the readers of a request: the tape's own without the ignored ones, and the request's."""
    if not request.observe and not request.ignore and not request.beside:
        return own
    added = [
        Observation(value, "observe", tape.names.get(value), tape.ops[value].location) for value in request.observe
    ]
    observations = (*tape.observations, *added)
    rows = _rows(tape, observations, request.ignore | request.beside)
    beside = frozenset(observations[row].value for row in request.beside)
    alive = own.alive
    if not all(own.leads_out[value] for value in _changed(tape, request)):
        alive = leading(tape, (*rows, *beside, *tape.results))
    return Reading(observations, rows, frozenset(rows), beside, own.leads_out, alive, own.users)


def _rows(tape: Tape, observations: Sequence[Observation], ignore: Collection[int]) -> dict[int, tuple[int, ...]]:
    rows: dict[int, tuple[int, ...]] = {}
    for row, observation in enumerate(observations):
        if row not in ignore:
            rows[observation.value] = (*rows.get(observation.value, ()), row)
    return rows


def _changed(tape: Tape, request: Request) -> set[int]:
    return {*request.observe, *(tape.observations[row].value for row in (*request.ignore, *request.beside))}


class Disturbed(NamedTuple):
    """What a request's own readers change.

    Args:
        insides: Values that are observed otherwise, or read by somebody whose end is: matches that hold one are touched.
        roots: Values that may live or die; matches that root there are touched.
    """

    insides: frozenset[int]
    roots: frozenset[int]


def disturbed(tape: Tape, own: Reading, request: Request) -> Disturbed:
    """Finds what a request's readers change: no further than to where something leads to a returned output anyway."""
    changed = _changed(tape, request)
    todo = [value for value in changed if not own.leads_out[value]]
    roots = set(todo)
    insides = set(changed)
    while todo:
        for operand in tape.ops[todo.pop()].operands:
            insides.add(operand)
            if operand not in roots and not own.leads_out[operand]:
                roots.add(operand)
                todo.append(operand)
    return Disturbed(frozenset(insides), frozenset(roots))


class Boundary(NamedTuple):
    """Where a match's inside meets the rest of the tape; depends on no request. A NamedTuple because one is made per match.

    Args:
        claims: Computing ops that no other taken match may claim: the computing part and the named results' producers.
        owned: Inner values that exist only with the match: computing ones and movement of those.
        outside: (owned value, reader outside) links, ascending.
        inside: The interior and what is produced.
    """

    claims: frozenset[int]
    owned: frozenset[int]
    outside: tuple[tuple[int, int], ...]
    inside: frozenset[int]


def claims_of(match: Match) -> frozenset[int]:
    """Gives the ops that no other taken match may claim."""
    return match.computing | match.produced if match.named or match.root not in match.computing else match.computing


def boundary(tape: Tape, users: Sequence[Sequence[int]], match: Match) -> Boundary:
    """Finds what a match owns. Movement of a binding and constants are nobody's; movement of an inner result is owned."""
    ops, interior, claims = tape.ops, match.interior, claims_of(match)
    inside = interior | claims
    owned = interior & match.computing
    if len(owned) < len(interior):
        mine = set(owned)
        for value in sorted(interior - owned):
            for operand in ops[value].operands:
                if operand in mine:
                    mine.add(value)
                    break
        if len(mine) > len(owned):
            owned = frozenset(mine)
    read = []
    for value in owned:
        for user in users[value]:
            if user not in inside:
                read.append(value)
                break
    outside = tuple([(v, u) for v in sorted(read) for u in users[v] if u not in inside]) if read else ()
    return new_tuple(Boundary, (claims, owned, outside, inside))


def observable(tape: Tape, match: Match) -> Iterable[int]:
    """Lists the inner values whose observation blocks: all but constants and what is a binding to its writer.

    One expression may record a binding and its rearrangement (`x @ w` of rank 3 is a product and a reshape): to whoever
    wrote it both are one value, an input of the match, and observing an input blocks nothing.
    """
    bound = set(match.bindings.values())
    for value in sorted(match.interior):
        name, operands, _, _, location = tape.ops[value]
        if name in ("reshape", "permute") and operands[0] in bound and location == tape.ops[operands[0]].location:
            bound.add(value)
        elif name != "constant" and value not in bound:
            yield value


def shared_readers(boundary: Boundary, reads: Reading) -> tuple[tuple[int, int], ...]:
    """Lists (inner value, reader) links that lead to a returned output; dead readers and observers' tails are none."""
    return tuple((v, u) for v, u in boundary.outside if reads.leads_out[u])


def blocking(tape: Tape, match: Match, boundary: Boundary, reads: Reading) -> dict[int, tuple[int, ...]]:
    """Maps every observation of an unnamed inner value to its path, from the inner value to the observed one.

    A reader that leads only to observations is part of them: `print(x.mean())` observes x.
    """
    found: dict[int, tuple[int, ...]] = {}
    if not reads.observed.isdisjoint(match.interior):
        for value in observable(tape, match):
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
