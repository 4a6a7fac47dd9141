"""Decides one family: who is taken, declined (and why), blocked (and by whom)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from topos_core.cost.machine import Machine
from topos_core.kernels.kernel import Decline, Offer
from topos_core.matching.match import Match
from topos_core.matching.tuples import new_tuple
from topos_core.plan.ballots import Ballot
from topos_core.plan.contraction import find_cycle
from topos_core.plan.decision import Decision, Number, Outbid
from topos_core.plan.election import Candidate, Election, Elector, by_claim, touched
from topos_core.plan.flipping import Flipping
from topos_core.plan.nesting import Draft, nested
from topos_core.plan.outbid import outbid
from topos_core.plan.outcome import Outcome, Reported
from topos_core.plan.pricing import Price
from topos_core.plan.reading import Reading
from topos_core.plan.survey import Survey


@dataclass(slots=True)
class Council:
    """What every decision of one request looks at.

    Args:
        survey: What is known of the tape and its pool.
        elector: Elects again without the observations of a match.
        machine: The profile that predictions are made with.
        prices: What every op costs as recorded.
        reads: The request's readers.
        picks: What was picked of every family.
        refused: Who may not be picked, because of whom.
        by_ops: Whether what covers more ops is elected.
    """

    survey: Survey
    elector: Elector
    machine: Machine
    prices: Sequence[Price]
    reads: Reading
    picks: Mapping[int, frozenset[int]]
    refused: Mapping[int, int]
    by_ops: bool
    looked: set[int] = field(init=False, default_factory=set)
    _hidden: frozenset[int] | None = field(init=False, default=None)
    _standing: Sequence[Candidate] = field(init=False, default=())
    _claiming: Mapping[int, Sequence[Candidate]] | None = field(init=False, default=None)
    _flipping: Flipping = field(init=False)

    def __post_init__(self) -> None:
        self._flipping = Flipping(self.survey, self.machine, self.picks, self.refused)

    def decide(self, family: int, ballots: Sequence[Ballot]) -> Outcome:
        """Decides every ballot. Matches inside a taken one are named there and get no decision of their own."""
        picks = self.picks[family]
        of = {ballot.candidate.number: ballot for ballot in ballots}
        election = Election(picks, self.refused)
        claims = {number: ballot.candidate.claims for number, ballot in of.items()}
        owner = {claim: number for number in picks for claim in claims[number]}
        self.looked = set()
        self._standing, self._claiming = [b.candidate for b in ballots if b.legal and not b.blocking], None
        drafts: dict[int, Draft] = {}
        lifted: dict[int, tuple[Decision, int | None]] = {}
        index: Mapping[int, Sequence[Candidate]] = {}
        for number, ballot in of.items():
            if number in picks:
                drafts[number] = Draft("taken")
            elif ballot.legal and ballot.blocking:
                # Set aside before the election, so that an observed region never outbids one that can run.
                index = index or by_claim(b.candidate for b in ballots)
                lifted[number] = decision, winner = self._set_aside(ballot, of, index, picks)
                drafts[number] = Draft(decision.verdict, decision.code, decision.observations, winner)
            else:
                drafts[number] = new_tuple(Draft, ("declined", self._code(ballot), (), None))
        if "blocked" in [draft[0] for draft in drafts.values()]:  # who covers whom then decides what is told
            for number, draft in drafts.items():
                if draft.code == "TP204" and number not in lifted:
                    drafts[number] = draft._replace(winner=self._outbid(of[number], election, owner, of)[0])
        last = frozenset(number for number, ballot in of.items() if ballot.candidate.last)
        matches = self.survey.pool.matches
        reported = []
        for number, contains, parent in nested(matches, claims, drafts, last):
            if number in lifted:
                decision, winner = lifted[number]
            elif number in picks:
                decision, winner = self._taken(of[number]), None
            else:
                decision, winner = self._declined(of[number], election, owner, of)
            blocking = of[number].blocking
            if blocking and decision.verdict == "declined":
                decision = decision._replace(would_block=blocking)
            if contains or parent is not None:
                decision = decision._replace(
                    contains=tuple([matches[n].id for n in contains]),
                    parent=matches[parent].id if parent is not None else None,
                )
            reported.append(Reported(decision, number, winner, tuple(contains)))
        plain = not any(b.blocking or b.off or b.candidate.number in self.refused for b in ballots)
        return Outcome(tuple(reported), frozenset(self.looked), plain)

    def _taken(self, ballot: Ballot) -> Decision:
        offer = ballot.standing.offer
        assert isinstance(offer, Offer)
        return Decision(
            self._match(ballot), "taken", None, None, numbers=ballot.standing.numbers, kernel=offer.kernel, offer=offer
        )

    def _code(self, ballot: Ballot) -> str:
        """Gives the code that `_declined` tells."""
        if isinstance(ballot.standing.offer, Decline):
            return ballot.standing.offer.code
        if ballot.readers:
            return "TP203"
        if ballot.off:
            return "TP208"
        if ballot.candidate.weight <= 0:
            return "TP202"
        return "TP203" if self._waits_for_itself(ballot, self.refused) else "TP204"

    def _declined(
        self, ballot: Ballot, election: Election, owner: Mapping[int, int], of: Mapping[int, Ballot]
    ) -> tuple[Decision, int | None]:
        """Says why a match was not picked, and the number of the winner where there is one."""
        match, standing = self._match(ballot), ballot.standing
        if isinstance(standing.offer, Decline):
            no = standing.offer
            return Decision(match, "declined", no.code, no.word, standing.numbers, reason=no.reason), None
        if ballot.readers:
            return self._shared(ballot, ballot.readers), None
        if ballot.off:
            return Decision(match, "declined", "TP208", "switched-off", standing.numbers, offer=standing.offer), None
        return self._lost(ballot, election, owner, of)

    def _lost(
        self, ballot: Ballot, election: Election, owner: Mapping[int, int], of: Mapping[int, Ballot]
    ) -> tuple[Decision, int | None]:
        """Says why a legal match was not picked in an election."""
        match, offer, numbers = self._match(ballot), ballot.standing.offer, ballot.standing.numbers
        assert isinstance(offer, Offer)
        if ballot.candidate.weight <= 0:
            flip = self._flipping.of(ballot, offer, self._paying())
            return Decision(match, "declined", "TP202", "cost", numbers, offer=offer, flip=flip), None
        if self._waits_for_itself(ballot, election.refused):
            loop = [
                (v, u)
                for values in match.named.values()
                for v in values
                for u in self.reads.users[v]
                if u < match.root and u not in match.interior and u not in match.produced
            ]
            return self._shared(ballot, tuple(loop)), None
        winner, by = self._outbid(ballot, election, owner, of)
        other = self.survey.pool.matches[winner].id
        return Decision(match, "declined", "TP204", "covered-by", numbers, winner=other, offer=offer, outbid=by), winner

    def _paying(self) -> Mapping[int, Sequence[Candidate]]:
        """Lists, by claim, the candidates of the family that may run and pay."""
        if self._claiming is None:
            self._claiming = by_claim(c for c in self._standing if c.weight > 0)
        return self._claiming

    def _waits_for_itself(self, ballot: Ballot, refused: Mapping[int, int]) -> bool:
        return refused.get(ballot.candidate.number) == ballot.candidate.number

    def _outbid(
        self, ballot: Ballot, election: Election, owner: Mapping[int, int], of: Mapping[int, Ballot]
    ) -> tuple[int, Outbid]:
        """Gives the match because of which a legal one that pays was not picked, and what decided between them."""
        winner = election.refused.get(ballot.candidate.number)
        if winner is not None:
            return winner, Outbid("cycle", 1)
        chosen = {owner[claim] for claim in ballot.candidate.claims if claim in owner}
        return outbid(ballot, [of[number] for number in sorted(chosen)], by_ops=self.by_ops)

    def _set_aside(
        self,
        ballot: Ballot,
        of: Mapping[int, Ballot],
        index: Mapping[int, Sequence[Candidate]],
        picks: frozenset[int],
    ) -> tuple[Decision, int | None]:
        """Elects the component again as if the observations of this interior were not there."""
        number, rows = ballot.candidate.number, set(ballot.blocking)

        def stands(other: Candidate) -> bool:
            found = of[other.number]
            return found.legal and set(found.blocking) <= rows

        component = touched(index, [ballot.candidate], stands)
        lifted = self.elector.elect(component, self._cycle)
        if number not in lifted.picks:
            return self._lost(ballot, lifted, {claim: n for n in lifted.picks for claim in of[n].candidate.claims}, of)
        match, offer = self._match(ballot), ballot.standing.offer
        assert isinstance(offer, Offer)
        inside = {c.number for c in component}
        price = _benefit(of, lifted.picks) - _benefit(of, picks & inside)
        beside = self._beside((path[0] for path in ballot.blocking.values()), lifted)
        return Decision(
            match=match,
            verdict="blocked",
            code="TP101",
            word="observed",
            numbers={
                **ballot.standing.numbers,
                "price": Number(price, "second", "modelled"),
                "beside": Number(beside, "second", "modelled"),
            },
            observations=tuple(ballot.blocking),
            paths=tuple(ballot.blocking.values()),
            nearest_free=self._nearest_free(match, next(iter(ballot.blocking.values()))[0], lifted),
            offer=offer,
        ), None  # fmt: skip

    def _cycle(self, picks: frozenset[int]) -> Sequence[int]:
        if not any(self.survey.waits(number) for number in picks):
            return ()
        return find_cycle(self.survey.tape, self.survey.users, self.survey.pool.matches, picks)

    def _shared(self, ballot: Ballot, links: tuple[tuple[int, int], ...]) -> Decision:
        offer = ballot.standing.offer
        return Decision(
            self._match(ballot), "declined", "TP203", "shared-interior", ballot.standing.numbers,
            readers=tuple(dict.fromkeys(u for _, u in links)), paths=links,
            offer=offer if isinstance(offer, Offer) else None,
        )  # fmt: skip

    def _match(self, ballot: Ballot) -> Match:
        return self.survey.pool.matches[ballot.candidate.number]

    def _is_hidden(self, value: int) -> bool:
        """Tells whether a picked match, of whatever family, never makes a value."""
        if self._hidden is None:
            matches = self.survey.pool.matches
            self._hidden = frozenset().union(*(matches[n].interior for picks in self.picks.values() for n in picks))
        return value in self._hidden

    def _beside(self, observed: Iterable[int], lifted: Election) -> float:
        """Predicts the seconds of the recorded ops that make observed values again beside the matches that hide them."""
        matches, ops = self.survey.pool.matches, self.survey.tape.ops
        hidden = {v for n in lifted.picks for v in matches[n].interior} - {
            v for n in lifted.picks for v in matches[n].produced
        }
        seconds, seen, todo = 0.0, set[int](), list(observed)
        while todo:
            value = todo.pop()
            if value in seen:
                continue
            seen.add(value)
            self.looked.add(value)
            if value in hidden or self._is_hidden(value):
                seconds += self.prices[value].seconds
                todo += ops[value].operands
        return seconds

    def _nearest_free(self, match: Match, observed: int, lifted: Election) -> int | None:
        """Finds the value nearest to the observed one that no elected match hides: made from it, or what it is made of.

        Both directions are walked in step, downstream first, inside the region and to its border. Siblings (the other
        operand of a reader) tell nothing about the observed value, and what exists before the run (inputs, parameters,
        constants, and what is made of the latter two alone) nothing about the region: neither is an answer.
        """
        tape, matches = self.survey.tape, self.survey.pool.matches
        busy = {v for i in lifted.picks for v in matches[i].interior}
        inside = match.interior | match.produced
        seen = {observed}
        level: list[tuple[int, bool]] = [(observed, True), (observed, False)]
        while level:
            following: list[tuple[int, bool]] = []
            for value, down in level:
                self.looked.add(value)
                free = value != observed and value not in busy and not self._is_hidden(value)
                if free and self.survey.varies(value) and self.reads.alive[value]:
                    return value
                if value in inside:
                    # A reader outside only prolongs the observation: what is made from the value counts inside alone.
                    users = (u for u in self.reads.users[value] if u in inside)
                    for neighbour in users if down else tape.ops[value].operands:
                        if neighbour not in seen:
                            seen.add(neighbour)
                            following.append((neighbour, down))
            level = sorted(following, key=lambda step: not step[1])
        return None


def _benefit(of: Mapping[int, Ballot], picks: frozenset[int]) -> float:
    return sum(of[i].standing.benefit for i in sorted(picks))
