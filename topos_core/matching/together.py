"""What a search puts together of one period, and whether it goes on so from period to period.

Groups of elementwise ops are cut at a number of ops that counts from the end of the tape; siblings and products side by side
at a number that counts from its beginning. Where such a count runs on through a whole run, what belongs together in one
period depends on how many periods stand beside it, and the periods that a shorter tape keeps say nothing of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from topos_core.matching.chains import groupings
from topos_core.matching.context import Context
from topos_core.matching.match import Match
from topos_core.matching.siblings import sets


class Part(NamedTuple):
    """Computing values that belong together, and to what: a grouping by its number, siblings, or the pattern of a match."""

    of: int | str
    values: frozenset[int]


def parts(context: Context, matches: Sequence[Match]) -> list[Part]:
    """Lists what belongs together on a tape, once it has been searched."""
    return list(_parts(context, matches))


def _parts(context: Context, matches: Sequence[Match]) -> Iterator[Part]:
    for match in matches:
        yield Part(match.pattern, match.computing | match.produced)
    for number, grouping in enumerate(context.once(groupings)):
        for group in grouping.groups.values():
            yield Part(number, frozenset(group.members))
    for chosen in context.once(sets):
        yield Part("siblings", frozenset(value for group in chosen for value in group.members))


def goes_on(found: Sequence[Part], zone: range, period: int, later: Callable[[int], int]) -> bool:
    """Says whether all that reaches into a zone reaches, one period on, into the next one, and nothing else does."""
    next_ = range(zone.start + period, zone.stop + period)
    moved = {Part(of, frozenset(map(later, values))) for of, values in _reaching(found, zone)}
    return moved == set(_reaching(found, next_))


def _reaching(found: Sequence[Part], zone: range) -> Iterator[Part]:
    return (part for part in found if any(value in zone for value in part.values))
