"""What alone would have a match taken that cost declines, or why nothing alone would: rivals and observations count too."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from topos_core.cost.machine import Machine
from topos_core.cost.roofline import kernel_seconds
from topos_core.kernels.kernel import Offer
from topos_core.plan.ballots import Ballot
from topos_core.plan.contest import contest
from topos_core.plan.contraction import find_cycle
from topos_core.plan.decision import Firm, Flip
from topos_core.plan.election import Candidate, touched
from topos_core.plan.flip import at_best, flip, predicted
from topos_core.plan.pricing import FEMTOSECONDS
from topos_core.plan.survey import Survey


@dataclass(slots=True)
class Flipping:
    """Answers for the matches of one request.

    Args:
        survey: What is known of the tape and its pool.
        machine: The profile that predictions are made with.
        picks: What was picked of every family.
        refused: Who may not be picked, because of whom.
    """

    survey: Survey
    machine: Machine
    picks: Mapping[int, frozenset[int]]
    refused: Mapping[int, int]
    _picked: list[tuple[int, int]] = field(init=False, default_factory=list)

    def of(self, ballot: Ballot, offer: Offer, paying: Mapping[int, Sequence[Candidate]]) -> Flip | Firm:
        """Answers for a match that does not pay; `paying` lists, by claim, those that may run and do."""
        candidate = ballot.candidate
        before = ballot.standing.seconds + ballot.standing.benefit
        dtype = self.survey.tape.ops[candidate.root].type.dtype
        now = kernel_seconds(offer.work, dtype, self.machine, offer.efficiency, offer.calls)
        alone = flip(offer, before, now)
        if alone is None:
            return Firm("slow", numbers=tuple([predicted(seconds) for seconds in (*at_best(offer, now), before)]))
        if ballot.blocking:
            row, path = next(iter(ballot.blocking.items()))
            return Firm("observed", value=path[0], row=row)
        rivals = [c for c in touched(paying, [candidate], lambda _: True) if c is not candidate]
        found = contest(candidate, rivals)
        winner = self.survey.pool.matches[found.winner].id if found.winner is not None else None
        if found.needed is None:
            return Firm("rival", rival=winner)
        saved = found.needed / FEMTOSECONDS
        told = flip(offer, before - saved, now) if saved else alone
        if told is None:
            return Firm("rival", (predicted(saved), predicted(before - min(at_best(offer, now)))), rival=winner)
        return self._cycled(candidate, rivals, found.picks) or told

    def _cycled(self, candidate: Candidate, rivals: Sequence[Candidate], won: frozenset[int]) -> Firm | None:
        """Says that picks which win instead of rivals would wait for each other, or that some do already."""
        survey = self.survey
        roots = [survey.pool.matches[number].root for number in won]
        spans = {span for root in roots if (span := survey.waiting_around(root)) is not None}
        replaced = {rival.number for rival in rivals}
        if not replaced.isdisjoint(self.refused):
            return Firm("cycle")
        if not spans:
            return None
        near = won | {n for low, high in spans for n in self._between(low, high) if n not in replaced}
        if any(low <= survey.pool.matches[number].root <= high for number in self.refused for low, high in spans):
            return Firm("cycle")
        loop = find_cycle(survey.tape, survey.users, survey.pool.matches, near)
        if loop == (candidate.number,):
            return Firm("itself")
        return Firm("cycle") if loop else None

    def _between(self, low: int, high: int) -> list[int]:
        """Lists the picks, of whatever family, whose roots lie between two values."""
        if not self._picked:
            matches = self.survey.pool.matches
            self._picked = sorted((matches[n].root, n) for picks in self.picks.values() for n in picks)
        picked = self._picked
        return [n for _, n in picked[bisect_left(picked, (low, -1)) : bisect_left(picked, (high + 1, -1))]]
