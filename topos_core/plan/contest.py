"""What a candidate that does not pay would have to gain to be picked among those that do. Knows claims and weights only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from topos_core.plan.election import Candidate, Elector


class Contest(NamedTuple):
    """How a candidate would fare.

    Args:
        needed: It is picked where its weight is greater than this, not where it is less; None: at no weight.
        winner: The number of the greatest pick in its way; None where it takes nobody's place.
        picks: Who is picked where it just wins, itself included; nobody where it never does.
    """

    needed: int | None
    winner: int | None
    picks: frozenset[int]


def contest(candidate: Candidate, rivals: Sequence[Candidate]) -> Contest:
    """Works out the least weight with which a candidate wins against rivals that pay, and proves it by electing with it.

    Two guesses cover the two ways of electing: where the best subset is searched for, the candidate has to make up for
    what its place costs; where the greatest weight goes first, it has to outweigh the greatest pick in its way.
    """
    if not rivals:
        return Contest(0, None, frozenset([candidate.number]))
    without = Elector().picks(rivals)
    way = [rival for rival in rivals if rival.number in without and not rival.claims.isdisjoint(candidate.claims)]
    winner = max(way, key=lambda rival: (rival.weight, -rival.root), default=None)
    number = winner.number if winner is not None else None
    for guess in sorted({0, _lost(candidate, rivals), max((rival.weight for rival in way), default=0)}):
        won = _with(candidate, guess + 1, rivals)
        if candidate.number in won and (guess == 0 or candidate.number not in _with(candidate, guess - 1, rivals)):
            return Contest(guess, number, won)
    return Contest(None, number, frozenset())


def _lost(candidate: Candidate, rivals: Sequence[Candidate]) -> int:
    """Gives what the rest is worth less where it may not have the candidate's claims."""
    bidding = [rival for rival in rivals if rival.last == candidate.last]
    if candidate.last:
        first = Elector().picks([rival for rival in rivals if not rival.last])
        gone = frozenset().union(*(rival.claims for rival in rivals if rival.number in first))
        bidding = [rival for rival in bidding if rival.claims.isdisjoint(gone)]
    return _worth(bidding) - _worth([rival for rival in bidding if rival.claims.isdisjoint(candidate.claims)])


def _worth(candidates: Sequence[Candidate]) -> int:
    picks = Elector().picks(candidates)
    return sum(candidate.weight for candidate in candidates if candidate.number in picks)


def _with(candidate: Candidate, weight: int, rivals: Sequence[Candidate]) -> frozenset[int]:
    return Elector().picks([*rivals, candidate._replace(weight=weight)])
