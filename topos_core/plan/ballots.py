"""How a match stands for election: what its consumer offers and what that is worth, and what a request puts in its way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from topos_core.kernels.kernel import Decline, Offer
from topos_core.matching.match import Match
from topos_core.plan.decision import NOTHING, Number
from topos_core.plan.election import Candidate


class Standing(NamedTuple):
    """What a consumer offers for a match and what that is worth; the same for every set of observations.

    Args:
        offer: The consumer's answer.
        numbers: Figures by name.
        weight: What taking it gains in an election.
        seconds: What the offer is predicted to take.
        benefit: Seconds that it saves.
    """

    offer: Offer | Decline
    numbers: Mapping[str, Number]
    weight: int
    seconds: float = 0.0
    benefit: float = 0.0


class Ballot(NamedTuple):
    """One live match of a request, with whatever keeps it from being elected.

    Args:
        candidate: How it stands for election.
        standing: The consumer's answer.
        readers: (inner value, reader) links that make its interior shared.
        off: Whether the request switched it off.
        blocking: Observations of unnamed inner values, with the path of each.
    """

    candidate: Candidate
    standing: Standing
    readers: tuple[tuple[int, int], ...] = ()
    off: bool = False
    blocking: Mapping[int, tuple[int, ...]] = NOTHING

    @property
    def legal(self) -> bool:
        """Tells whether guard, kernel, fidelity, readers and switches all let it stand."""
        return isinstance(self.standing.offer, Offer) and not self.readers and not self.off


def standing_in(matches: Sequence[Match], ballots: Sequence[Ballot]) -> list[Ballot]:
    """Leaves one ballot of a match and of the one that stands in for it, right behind it: only where somebody reads what
    the one hides and the other does not, that of the latter.
    """
    kept: list[Ballot] = []
    for ballot in ballots:
        if not matches[ballot.candidate.number].nearer:
            kept.append(ballot)
        elif kept and (kept[-1].readers or kept[-1].blocking) and ballot.legal and not ballot.blocking:
            kept[-1] = ballot
    return kept
