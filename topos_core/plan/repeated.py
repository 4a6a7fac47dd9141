"""Families that repeat another one: identical blocks are priced, offered, elected and decided once, and what is found is moved.

That two matches are one, moved, is the search's word (`Pool.repeats`). Whatever else a decision depends on is compared here,
value by value: kinds of ops, readers, and what these lead to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from topos_core.plan.survey import Survey


class Repeated(NamedTuple):
    """An earlier family that one repeats, `distance` values further on; members stand in one order in both."""

    family: int
    distance: int


def repeated(survey: Survey) -> Mapping[int, Repeated]:
    """Maps families to those that they repeat; what repeats nothing is not there. Linear."""
    found: dict[int, Repeated] = {}
    if not survey.pool.repeats:
        return found
    matches, like = survey.pool.matches, survey.pool.repeats
    known: dict[Any, tuple[int, Sequence[int]]] = {}
    for family, numbers in survey.members.items():
        start = matches[numbers[0]].root
        key = tuple([(like[number], matches[number].root - start) for number in numbers])
        inside = _inside(survey, numbers)
        if key in known:
            earlier, its_inside = known[key]
            distance = start - matches[earlier].root
            if _alike(survey, its_inside, inside, distance):
                found[family] = Repeated(earlier, distance)
                continue
        known[key] = family, inside
    return found


def _inside(survey: Survey, numbers: Sequence[int]) -> Sequence[int]:
    """Lists what lies inside some matches, ascending."""
    inside: set[int] = set()
    for number in numbers:
        match = survey.pool.matches[number]
        inside |= match.interior
        inside |= match.computing
        for values in match.named.values():
            inside.update(values)
    return sorted(inside)


def _alike(survey: Survey, inside: Sequence[int], later: Sequence[int], distance: int) -> bool:
    """Compares all values inside two families; in their order, those play the same parts."""
    kinds, users, ops = survey.kinds.of, survey.users, survey.tape.ops
    alive, leads_out, observed = survey.reads.alive, survey.reads.leads_out, survey.reads.observed
    if len(inside) != len(later):
        return False
    for a, b in zip(inside, later, strict=True):
        if a == b:
            continue  # both look at it
        if kinds[a] != kinds[b] or alive[a] != alive[b]:
            return False
        if not ops[a].operands and ops[a].name != "iota":
            continue  # what exists before the run costs nothing
        mine, its = users[a], users[b]
        if b - a != distance or (a in observed) != (b in observed) or len(mine) != len(its):
            return False
        for u, v in zip(mine, its, strict=True):
            if v - u != distance or alive[u] != alive[v] or leads_out[u] != leads_out[v]:
                return False
    return True
