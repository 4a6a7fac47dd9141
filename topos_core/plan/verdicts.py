"""Turns standings, readers and observations into decisions: who is taken, declined (and why), blocked (and by whom).

Longer than most files because a verdict, its reason and what it hides or contains must agree.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, NamedTuple

from topos_core.kernels.kernel import Decline, Offer
from topos_core.matching.match import Match
from topos_core.plan.decision import Decision, Number
from topos_core.plan.election import Candidate, Election, Elector, FindCycle, touched
from topos_core.plan.precedence import rank
from topos_core.plan.reading import Boundary, Reading
from topos_core.tape.tape import Tape


class Standing(NamedTuple):
    """What a consumer offers for a match and what that is worth; the same for every set of observations.

    Args:
        offer: The consumer's answer.
        numbers: Figures by name.
        weight: What taking it gains in an election.
        calls: Calls that the recorded ops make.
        seconds: What the offer is predicted to take.
        benefit: Seconds that it saves.
    """

    offer: Offer | Decline
    numbers: Mapping[str, Number]
    weight: int
    calls: int = 0
    seconds: float = 0.0
    benefit: float = 0.0


_NOTHING: Final[Mapping[int, tuple[int, ...]]] = MappingProxyType({})


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
    blocking: Mapping[int, tuple[int, ...]] = _NOTHING

    @property
    def legal(self) -> bool:
        """Tells whether guard, kernel, fidelity, readers and switches all let it stand."""
        return isinstance(self.standing.offer, Offer) and not self.readers and not self.off


@dataclass(slots=True)
class Families:
    """Matches that share claims, directly or through others, and what was decided of them under one setting.

    What a family is told depends on its own ballots and picks alone while nobody observes its inside; a family in which
    nothing changed keeps its decisions, the very objects.

    Args:
        of: The family of each match, by its number.
    """

    of: Sequence[int]
    decided: dict[int, tuple[Hashable, tuple[Decision, ...]]] = field(default_factory=dict)


def verdicts(
    tape: Tape,
    matches: Sequence[Match],
    borders: Sequence[Boundary],
    ballots: Sequence[Ballot],
    reads: Reading,
    elector: Elector,
    families: Families,
    index: Mapping[int, Sequence[Candidate]],
    cycle: FindCycle,
) -> tuple[Decision, ...]:
    """Decides every ballot. Matches inside a taken one are named there and get no decision of their own.

    `index` is `by_claim` of all candidates, whether they stand or not.
    """
    candidates = [b.candidate for b in ballots if b.legal and not b.blocking]
    election = elector.elect(candidates, cycle)
    council = _Council(
        tape, matches, borders, {b.candidate.number: b for b in ballots}, reads, elector, cycle, election, index
    )
    members: dict[int, list[Ballot]] = {}
    for ballot in ballots:
        members.setdefault(families.of[ballot.candidate.number], []).append(ballot)
    reported: list[Decision] = []
    for family, mine in members.items():
        state = _state(mine, election)
        known = families.decided.get(family)
        if state is not None and known is not None and known[0] == state:
            reported += known[1]
            continue
        drafts: dict[int, Decision] = {}
        for ballot in mine:
            number = ballot.candidate.number
            if number in election.picks:
                drafts[number] = council.taken(ballot)
            elif ballot.legal and ballot.blocking:
                # Set aside before the election, so that an observed region never outbids one that can run.
                drafts[number] = council.set_aside(ballot, candidates)
            else:
                drafts[number] = council.declined(ballot, election)
        last = frozenset(ballot.candidate.number for ballot in mine if ballot.candidate.last)
        told = tuple(_nested(matches, borders, drafts, last))
        if state is not None:
            families.decided[family] = state, told
        reported += told
    reported.sort(key=_told_order)
    return tuple(reported)


def _told_order(decision: Decision) -> tuple[int, int, str]:
    match = decision.match
    return match.root, len(match.computing), match.pattern


def _state(mine: Sequence[Ballot], election: Election) -> Hashable | None:
    """Gives all that a family's decisions depend on; None where an observation or a cycle makes them depend on more."""
    picks, refused = election.picks, election.refused
    state = []
    for ballot in mine:
        number = ballot.candidate.number
        if ballot.blocking or number in refused:
            return None
        state.append((number, number in picks, ballot.readers, ballot.off))
    return tuple(state)


@dataclass(slots=True)
class _Council:
    """What every decision of one request looks at."""

    tape: Tape
    matches: Sequence[Match]
    borders: Sequence[Boundary]
    ballots: Mapping[int, Ballot]
    reads: Reading
    elector: Elector
    cycle: FindCycle
    election: Election
    index: Mapping[int, Sequence[Candidate]]
    owner: Mapping[int, int] = field(init=False)
    hidden: dict[int, int] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.owner = self._owners(self.election.picks)
        for number in self.election.picks:
            self.hidden.update(dict.fromkeys(self.matches[number].interior, number))

    def taken(self, ballot: Ballot) -> Decision:
        offer = ballot.standing.offer
        assert isinstance(offer, Offer)
        return Decision(
            match=self.matches[ballot.candidate.number],
            verdict="taken",
            code=None,
            word=None,
            reason=_taken_reason(ballot.standing.calls),
            numbers=ballot.standing.numbers,
            kernel=offer.kernel,
            offer=offer,
        )

    def declined(self, ballot: Ballot, election: Election) -> Decision:
        match, standing = self.matches[ballot.candidate.number], ballot.standing
        if isinstance(standing.offer, Decline):
            no = standing.offer
            return Decision(match, "declined", no.code, no.word, no.reason, standing.numbers)
        if ballot.readers:
            return self._shared(ballot, ballot.readers)
        if ballot.off:
            reason = f"{match.pattern} is switched off here"
            return Decision(match, "declined", "TP208", "switched-off", reason, standing.numbers, offer=standing.offer)
        return self._lost(ballot, election)

    def set_aside(self, ballot: Ballot, candidates: Sequence[Candidate]) -> Decision:
        """Elects the component again as if the observations of this interior were not there."""
        number, rows = ballot.candidate.number, set(ballot.blocking)

        def stands(other: Candidate) -> bool:
            found = self.ballots.get(other.number)
            return found is not None and found.legal and set(found.blocking) <= rows

        component = touched(self.index, [ballot.candidate], stands)
        lifted = self.elector.elect(component, self.cycle)
        if number not in lifted.picks:
            return self._lost(ballot, lifted)
        match, offer = self.matches[number], ballot.standing.offer
        assert isinstance(offer, Offer)
        inside = {c.number for c in component}
        price = self._benefit(lifted.picks) - self._benefit(self.election.picks & inside)
        return Decision(
            match=match,
            verdict="blocked",
            code="TP101",
            word="observed",
            reason=f"{len(rows)} observation{'s' if len(rows) > 1 else ''} of what it never makes",
            numbers={**ballot.standing.numbers, "price": Number(price, "second", "modelled")},
            observations=tuple(ballot.blocking),
            paths=tuple(ballot.blocking.values()),
            nearest_free=self._nearest_free(match, next(iter(ballot.blocking.values()))[0], lifted),
            kernel=None,
            offer=offer,
        )

    def _lost(self, ballot: Ballot, election: Election) -> Decision:
        """Says why a legal match was not picked in an election."""
        match, offer = self.matches[ballot.candidate.number], ballot.standing.offer
        assert isinstance(offer, Offer)
        numbers = ballot.standing.numbers
        if ballot.candidate.weight <= 0:
            reason = "the kernel is not predicted to be faster than the recorded ops"
            return Decision(match, "declined", "TP202", "cost", reason, numbers, offer=offer)
        winner = election.refused.get(ballot.candidate.number)
        if winner == ballot.candidate.number:
            loop = [
                (v, u)
                for values in match.named.values()
                for v in values
                for u in self.reads.users[v]
                if u < match.root and u not in match.interior and u not in match.produced
            ]
            return self._shared(ballot, tuple(loop))
        if winner is None:
            mine = ballot.candidate.claims
            owner = self.owner if election is self.election else self._owners(election.picks)
            rivals: dict[int, int] = {}
            for claim in mine:
                rival = owner.get(claim)
                if rival is not None:
                    rivals[rival] = rivals.get(rival, 0) + 1
            winner = max(rivals, key=lambda i: (rivals[i], -self.matches[i].root, -i))
        other = self.matches[winner]
        return Decision(
            match, "declined", "TP204", "covered-by", f"{other.pattern} was chosen on ops that both claim", numbers,
            winner=other.id, offer=offer,
        )  # fmt: skip

    def _owners(self, picks: frozenset[int]) -> dict[int, int]:
        return {claim: number for number in picks for claim in self.borders[number].claims}

    def _shared(self, ballot: Ballot, links: tuple[tuple[int, int], ...]) -> Decision:
        match, offer = self.matches[ballot.candidate.number], ballot.standing.offer
        value, reader = links[0]
        return Decision(
            match, "declined", "TP203", "shared-interior",
            f"its inner value %{value} is also read by %{reader} ({self.tape.ops[reader].name})", ballot.standing.numbers,
            readers=tuple(dict.fromkeys(u for _, u in links)), paths=links,
            offer=offer if isinstance(offer, Offer) else None,
        )  # fmt: skip

    def _benefit(self, picks: frozenset[int]) -> float:
        return sum(self.ballots[i].standing.benefit for i in sorted(picks))

    def _nearest_free(self, match: Match, observed: int, lifted: Election) -> int | None:
        """Finds the value nearest to the observed one that no elected match hides: made from it, or what it is made of.

        Both directions are walked in step, downstream first, inside the region and to its border. Siblings (the other
        operand of a reader) tell nothing about the observed value, and what exists before the run (inputs, parameters,
        constants) nothing about the region: neither is an answer.
        """
        busy = {v for i in lifted.picks for v in self.matches[i].interior}
        inside = match.interior | match.produced
        seen = {observed}
        level: list[tuple[int, bool]] = [(observed, True), (observed, False)]
        while level:
            following: list[tuple[int, bool]] = []
            for value, down in level:
                free = value != observed and value not in busy and value not in self.hidden
                if free and self.tape.ops[value].operands and self.reads.alive[value]:
                    return value
                if value in inside:
                    # A reader outside only prolongs the observation: what is made from the value counts inside alone.
                    users = (u for u in self.reads.users[value] if u in inside)
                    for neighbour in users if down else self.tape.ops[value].operands:
                        if neighbour not in seen:
                            seen.add(neighbour)
                            following.append((neighbour, down))
            level = sorted(following, key=lambda step: not step[1])
        return None


def _taken_reason(calls: int) -> str:
    return f"one kernel instead of {calls} recorded op{'' if calls == 1 else 's'}"


def _nested(
    matches: Sequence[Match], borders: Sequence[Boundary], drafts: Mapping[int, Decision], last: frozenset[int]
) -> Sequence[Decision]:
    """Reports the larger before the smaller: hides what a taken or blocked match contains, and names parents.

    A match inside a taken one is listed in `contains`, unless both are of one pattern. One that a blocked match would
    have covered is listed there. A match inside a larger one of its own pattern that says the same thing says nothing new.
    Of two on the same ops the one that the catalogue lists first is told, even where the other was taken in its place.
    Those elected last speak for ops that nobody else has: they are told where they are taken, or where no other decision, and
    no larger one of their own kind, is about any of their ops.
    """
    if len(drafts) == 1:
        (draft,) = drafts.values()
        return (draft,)
    by_claim: dict[int, list[int]] = {}
    for number in drafts:
        for claim in borders[number].claims:
            by_claim.setdefault(claim, []).append(number)
    blocked_ids = {d.match.id: n for n, d in drafts.items() if d.verdict == "blocked"}
    contains: dict[int, list[str]] = {}
    around: dict[int, list[int]] = {}
    hidden: set[int] = set()
    for number, draft in drafts.items():
        mine = borders[number].claims
        larger = [n for n in by_claim[draft.match.root] if n != number and mine <= borders[n].claims]
        if len(larger) > 1:
            larger.sort(key=lambda n: (len(borders[n].claims), matches[n].root, n))
        around[number] = larger
        if draft.verdict == "taken":
            continue
        holders = (n for n in larger if drafts[n].verdict == "taken")
        holder = next(
            (n for n in holders if not _outranks(draft, matches[n], left=number not in last and n in last)), None
        )
        if holder is None and draft.winner in blocked_ids and blocked_ids[draft.winner] in larger:
            holder = blocked_ids[draft.winner]
        if holder is not None:
            hidden.add(number)
            if matches[holder].pattern != draft.match.pattern:
                contains.setdefault(holder, []).append(draft.match.id)
        elif number not in last and any(_says_the_same(drafts[n], draft) for n in larger):
            hidden.add(number)
    quiet = [n for n in drafts if n in last and n not in hidden and drafts[n].verdict != "taken"]
    for number in sorted(
        quiet, key=lambda n: -len(borders[n].claims)
    ):  # a larger one hides only where it is told itself
        mine = borders[number].claims
        beside = {n for claim in mine for n in by_claim[claim]} - {number}
        others = beside - last
        if drafts[number].match.named and all(
            drafts[n].verdict != "taken" and borders[n].claims < mine for n in others
        ):
            others = set()  # siblings say more than each of them does
        if others or any(n in last and n not in hidden and mine < borders[n].claims for n in beside):
            hidden.add(number)
    reported = []
    for number, draft in drafts.items():
        if number not in hidden:
            parents = (n for n in around[number] if n not in hidden and drafts[n].verdict == "blocked")
            parent = next((n for n in parents if _wraps(matches[n], draft.match)), None)
            reported.append(
                _placed(draft, contains.get(number, []), matches[parent].id if parent is not None else None)
            )
    return reported


def _outranks(draft: Decision, taken: Match, *, left: bool) -> bool:
    """Tells whether a match on the same ops as a taken one is more to tell: listed earlier, or blocked and reaching further.

    `left` says that the taken one is elected last and the other is not: it has a name for what the other only groups.
    """
    if draft.match.computing | draft.match.produced != taken.computing | taken.produced:
        return False
    return (
        left
        or rank(draft.match.pattern) < rank(taken.pattern)
        or (draft.verdict == "blocked" and _wraps(draft.match, taken))
    )


def _wraps(larger: Match, smaller: Match) -> bool:
    """Tells whether a match holds everything of another and more."""
    return smaller.interior | smaller.produced < larger.interior | larger.produced


def _says_the_same(larger: Decision, smaller: Decision) -> bool:
    return (
        larger.match.pattern == smaller.match.pattern
        and larger.match.computing != smaller.match.computing
        and larger.code == smaller.code
        and set(smaller.observations) <= set(larger.observations)
    )


def _placed(draft: Decision, contains: Sequence[str], parent: str | None) -> Decision:
    if not contains and parent is None:
        return draft
    return draft._replace(contains=tuple(contains), parent=parent)
