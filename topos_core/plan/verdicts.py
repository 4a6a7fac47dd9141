"""Decides a request: what it does not touch keeps its picks and decisions, what repeats gets those of what it repeats."""

from __future__ import annotations

from dataclasses import dataclass, field

from topos_core.plan.ballots import Ballot
from topos_core.plan.contraction import find_cycle
from topos_core.plan.council import Council
from topos_core.plan.election import yielding
from topos_core.plan.outcome import Outcome, Reported, moved
from topos_core.plan.reading import Reading
from topos_core.plan.request import Request
from topos_core.plan.setting import Setting
from topos_core.plan.survey import Survey


def verdicts(survey: Survey, setting: Setting, reads: Reading, request: Request) -> list[Reported]:
    """Decides every live match: by root, then the smaller before the larger."""
    return _Deciding(survey, setting, reads, request, survey.touched(request)).verdicts()


@dataclass(slots=True)
class _Deciding:
    survey: Survey
    setting: Setting
    reads: Reading
    request: Request
    touched: frozenset[int]
    refused: dict[int, int] = field(init=False, default_factory=dict)
    picks: dict[int, frozenset[int]] = field(init=False, default_factory=dict)
    ballots: dict[int, list[Ballot]] = field(init=False, default_factory=dict)

    def verdicts(self) -> list[Reported]:
        families = self.survey.members
        self.picks = {
            family: self._picks(family) if family in self.touched else self._plain_picks(family) for family in families
        }
        self._refuse()
        apart = self.touched | {self.survey.family[number] for number in self.refused}
        setting = self.setting
        council = Council(
            self.survey,
            setting.elector,
            setting.profile,
            setting.prices,
            self.reads,
            self.picks,
            self.refused,
            setting.request.by_ops,
        )
        disturbed = self._disturbed(apart)
        found: list[Reported] = []
        for family in families:
            if family in apart:
                outcome = council.decide(family, self._ballots(family))
            else:
                outcome = self._plain(family, council, keep=not apart)
                if not outcome.looked.isdisjoint(disturbed):
                    outcome = council.decide(family, self._ballots(family))
            found += outcome.reported
        found.sort(key=_told_order)
        return found

    def _ballots(self, family: int) -> list[Ballot]:
        return self.setting.ballots(family, self.reads, self.request)

    def _plain_ballots(self, family: int) -> list[Ballot]:
        """Gives the ballots of a family under the tape's own observations."""
        known = self.ballots.get(family)
        if known is None:
            known = self.ballots[family] = self.setting.ballots(family, self.survey.reads, self.setting.request)
        return known

    def _picks(self, family: int) -> frozenset[int]:
        standing = [b.candidate for b in self._ballots(family) if b.legal and not b.blocking]
        return self.setting.elector.picks(standing, self.refused)

    def _plain_picks(self, family: int) -> frozenset[int]:
        known = self.setting.picks.get(family)
        if known is None:
            like = self.setting.repeated.get(family)
            if like is not None:
                there = dict(zip(self.survey.members[like.family], self.survey.members[family], strict=True))
                known = frozenset([there[number] for number in self._plain_picks(like.family)])
            else:
                ballots = self._plain_ballots(family)
                known = self.setting.elector.picks([b.candidate for b in ballots if b.legal and not b.blocking])
            self.setting.picks[family] = known
        return known

    def _plain(self, family: int, council: Council, *, keep: bool) -> Outcome:
        """Gives what is decided of a family that a request leaves alone; `keep` says that it leaves all of them alone."""
        known = self.setting.plain.get(family)
        if known is None:
            like = self.setting.repeated.get(family)
            before = self.setting.plain.get(like.family) if like is not None else None
            if like is not None and before is not None and before.moves:
                survey = self.survey
                mine, its = survey.members[like.family], survey.members[family]
                known = moved(before, survey.pool.matches, mine, its, like.distance)
            else:
                known = council.decide(family, self._plain_ballots(family))
            if keep or not known.looked:
                self.setting.plain[family] = known
        return known

    def _refuse(self) -> None:
        """Refuses picks that would contract to a cycle, one after the other, and picks of their families again."""
        survey = self.survey
        while any(survey.waits(number) for picks in self.picks.values() for number in picks):
            everything = frozenset().union(*self.picks.values())
            loop = find_cycle(survey.tape, survey.users, survey.pool.matches, everything)
            if not loop:
                return
            loser = yielding(self.setting.candidate(number) for number in loop)
            self.refused[loser] = next((number for number in loop if number != loser), loser)
            family = survey.family[loser]
            self.picks[family] = self._picks(family)

    def _disturbed(self, apart: frozenset[int]) -> frozenset[int]:
        """Collects the values that may be hidden or alive otherwise than where no family is apart."""
        matches = self.survey.pool.matches
        inside = [matches[number].interior for family in apart for number in self.survey.members[family]]
        own = self.reads.alive is self.survey.reads.alive
        dead = () if own else _differing(self.reads.alive, self.survey.reads.alive)
        return frozenset().union(dead, *inside)


def _differing(one: bytearray, other: bytearray) -> list[int]:
    return [value for value, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]


def _told_order(one: Reported) -> tuple[int, int, str]:
    match = one.decision.match
    return match.root, len(match.computing), match.pattern
