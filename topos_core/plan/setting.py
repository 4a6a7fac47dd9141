"""What a planner works out for a consumer, a fidelity, a machine, a cost mode and a dialect, whatever is observed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from topos_core.cost.machine import Machine
from topos_core.kernels.kernel import Consumer, Decline, Offer
from topos_core.matching.match import Match
from topos_core.matching.order import LAST
from topos_core.matching.tuples import new_tuple
from topos_core.plan.ballots import Ballot, Standing, standing_in
from topos_core.plan.decision import NOTHING, Number
from topos_core.plan.election import Candidate, Elector
from topos_core.plan.outcome import Outcome
from topos_core.plan.pricing import (
    Before,
    Figures,
    Price,
    offered_seconds,
    pressure,
    price_after,
    price_before,
    price_declined,
    stated,
    weight,
)
from topos_core.plan.reading import Reading, blocking, shared_readers
from topos_core.plan.repeated import Repeated
from topos_core.plan.request import Request
from topos_core.plan.survey import Survey
from topos_core.tape.tape import Tape


@dataclass(slots=True)
class Setting:
    """Standings and candidates, worked out when they are first asked for, and what was decided with them.

    Args:
        survey: What is known of the tape and its pool.
        repeated: Families whose standings and decisions are those of others.
        consumer: Who is asked.
        request: Whose observations and switches count for nothing here.
        profile: The machine.
        prices: What each op costs there as recorded.
        last: Patterns from outside the catalogue that are elected last.

    Attributes:
        elector: What was elected.
        picks: What was picked of families that no request touched.
        plain: What was decided of those.
        totals: A recorded run's figures, by what is alive.
    """

    survey: Survey
    repeated: Mapping[int, Repeated]
    consumer: Consumer
    request: Request
    profile: Machine
    prices: Sequence[Price]
    last: frozenset[str]
    elector: Elector = field(init=False, default_factory=Elector)
    picks: dict[int, frozenset[int]] = field(init=False, default_factory=dict)
    plain: dict[int, Outcome] = field(init=False, default_factory=dict)
    totals: dict[bytes, Mapping[str, Number]] = field(init=False, default_factory=dict)
    _standings: dict[int, Standing] = field(init=False, default_factory=dict)
    _before: dict[int, Before] = field(init=False, default_factory=dict)
    _ballots: dict[int, list[Ballot]] = field(init=False, default_factory=dict)

    def ballots(self, family: int, reads: Reading, request: Request) -> list[Ballot]:
        """Gives the ballots of a family's live matches."""
        known = self._ballots.get(family)
        if known is None:
            concerns, matches = self.consumer.concerns, self.survey.pool.matches
            known = self._ballots[family] = [
                new_tuple(Ballot, (self.candidate(number), self.standing(number), (), False, NOTHING))
                for number in self.survey.members[family]
                if concerns(matches[number].pattern)
            ]
        found = [own for plain in known if (own := self._ballot(plain, reads, request)) is not None]
        return standing_in(self.survey.pool.matches, found)

    def standing(self, number: int) -> Standing:
        """Gives how a match stands; what repeats another one and costs the same as recorded is offered the same."""
        found = self._standings.get(number)
        if found is None:
            survey = self.survey
            family = survey.family[number]
            known = self.repeated.get(family)
            if known is not None:
                place = survey.members[family].index(number)
                found = self.standing(survey.members[known.family][place])
            else:
                like = survey.pool.repeats[number] if survey.pool.repeats else number
                same = like < number and self.before(like) == self.before(number)
                found = self.standing(like) if same else self._standing(number)
            self._standings[number] = found
        return found

    def before(self, number: int) -> Before:
        """Gives what a match costs as recorded."""
        found = self._before.get(number)
        if found is None:
            survey = self.survey
            found = self._before[number] = price_before(
                survey.users, survey.reads.alive, self.prices, survey.pool.matches[number], survey.border(number)
            )  # fmt: skip
        return found

    def _standing(self, number: int) -> Standing:
        tape, match, request, profile = self.survey.tape, self.survey.pool.matches[number], self.request, self.profile
        before = self.before(number)
        offer = self.consumer.offer(tape, match, request)
        if isinstance(offer, Offer) and request.fidelity == "exact" and not offer.exact:
            envelope = offer.envelope
            errors = (
                {} if envelope is None else {"relative_error": envelope.relative, "absolute_error": envelope.absolute}
            )
            offer = Decline("TP205", "fidelity", f"{offer.kernel} is not bit-identical to the recorded ops", errors)
        if isinstance(offer, Decline):
            return Standing(offer, {**price_declined(before), **stated(offer)}, 0)
        seconds = offered_seconds(offer, tape.ops[match.root].type.dtype, profile)
        benefit = before.seconds - seconds
        gain = weight(benefit, len(self.survey.border(number).claims), by_ops=request.by_ops)
        numbers = Figures(partial(_side_by_side, tape, match, profile, offer, before, seconds))
        return new_tuple(Standing, (offer, numbers, gain, seconds, benefit))

    def candidate(self, number: int) -> Candidate:
        """Gives a match as one that may run."""
        match = self.survey.pool.matches[number]
        claims, gain = self.survey.border(number).claims, self.standing(number).weight
        is_last = match.pattern in LAST or match.pattern in self.last
        return new_tuple(Candidate, (number, claims, gain, match.root, self.survey.ranks[match.pattern], is_last))

    def _ballot(self, plain: Ballot, reads: Reading, request: Request) -> Ballot | None:
        """Adds what the request says to the ballot of a match; None where it is dead code: nothing would run."""
        candidate, standing = plain.candidate, plain.standing
        if not reads.alive[candidate.root]:
            return None
        # 206, 207, 209, 205 come with the offer: without a kernel nothing else is worth telling. Then 203 before 208:
        # a switched-off match that could not run anyway is told why. Cost (202) and rivals (204) come with the election.
        if isinstance(standing.offer, Decline):
            return plain
        match, border = self.survey.pool.matches[candidate.number], self.survey.border(candidate.number)
        if border.outside:
            readers = shared_readers(border, reads)
            if readers:
                return Ballot(candidate, standing, readers=readers)
        if match.pattern in request.off or (request.off_at and (match.pattern, match.root) in request.off_at):
            return Ballot(candidate, standing, off=True)
        blocks = blocking(self.survey.tape, match, border, reads)
        return Ballot(candidate, standing, blocking=blocks) if blocks else plain


def _side_by_side(
    tape: Tape, match: Match, profile: Machine, offer: Offer, before: Before, seconds: float
) -> dict[str, Number]:
    return {**price_after(offer, before, seconds), **pressure(tape, match, profile)}
