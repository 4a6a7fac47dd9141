"""What was decided of one family of matches, and the same of a family that repeats it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from topos_core.matching.match import Match
from topos_core.plan.decision import NOTHING, Decision, Firm


class Reported(NamedTuple):
    """A decision with the numbers of the matches that it names.

    Args:
        decision: What people are told.
        number: Of its match.
        winner: Of the match that covers it.
        contains: Of those inside it.
    """

    decision: Decision
    number: int
    winner: int | None
    contains: tuple[int, ...]


class Outcome(NamedTuple):
    """What was decided of one family.

    Args:
        reported: In the order of their matches.
        looked: Values of which it was asked whether a match of any family hides them, or whether they live.
        moves: Whether nothing in it names an observation, so that it can be told of a family that repeats this one.
    """

    reported: tuple[Reported, ...]
    looked: frozenset[int]
    moves: bool


def moved(
    outcome: Outcome, matches: Sequence[Match], mine: Sequence[int], its: Sequence[int], distance: int
) -> Outcome:
    """Tells an outcome of another family, `distance` values further on; members stand in one order in both."""
    there = dict(zip(mine, its, strict=True))
    found = []
    for decision, number, winner, contains in outcome.reported:
        other, inside = there[number], tuple([there[n] for n in contains])
        over = there[winner] if winner is not None else None
        paths = tuple([tuple([value + distance for value in path]) for path in decision.paths])
        flip = decision.flip
        if isinstance(flip, Firm) and flip.rival is not None:
            flip = flip._replace(rival=next(matches[there[n]].id for n in mine if matches[n].id == flip.rival))
        told = Decision(
            matches[other], decision.verdict, decision.code, decision.word, decision.numbers,
            tuple([value + distance for value in decision.readers]), (), paths, NOTHING,
            matches[over].id if over is not None else None, None, tuple([matches[n].id for n in inside]), None,
            decision.kernel, decision.offer, flip, decision.outbid, decision.reason,
        )  # fmt: skip
        found.append(Reported(told, other, over, inside))
    return Outcome(tuple(found), outcome.looked, outcome.moves)
