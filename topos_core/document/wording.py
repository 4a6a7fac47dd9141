"""The sentences of one plan's decisions: why, in detail, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, assert_never

from topos_core.document import advice, facts, flips, phrases
from topos_core.document.display import display
from topos_core.document.places import Places, written
from topos_core.document.region import number
from topos_core.matching.closure import live_readers
from topos_core.matching.match import Match
from topos_core.matching.order import LAST
from topos_core.plan.decision import Decision, Firm, Number
from topos_core.plan.plan import PlanData


@dataclass(slots=True)
class Wording:
    """Words decisions of one plan.

    Args:
        plan: Whose request and observations they are about.
        places: Says where values stand.
        by_id: The decisions of all consumers, by match.
        inside: What is taken inside a blocked match, by the latter.
    """

    plan: PlanData
    places: Places
    by_id: Mapping[str, Decision]
    inside: Mapping[str, Sequence[Decision]]
    _seen: frozenset[int] = field(init=False)

    def __post_init__(self) -> None:
        self._seen = frozenset((*self.plan.tape.results, *(each.value for each in self.plan.observations)))

    def reason(self, d: Decision, consumer: str | None = None) -> str:
        """Says why a decision is what it is; of another consumer's, its name is given."""
        numbers, machine = d.numbers, self.plan.machine.name
        match d.code:
            case None:
                kernel = display(d.kernel or "")
                return phrases.taken(
                    consumer or self.plan.request.consumer, kernel, round(numbers["calls_before"].value)
                )
            case "TP101":
                seen, reader = self._first_reader(d)
                return phrases.blocked(seen, reader, len(d.observations) - 1)
            case "TP202":
                return phrases.cost(numbers["seconds_before"], numbers["seconds_after"], machine)
            case "TP203":
                value, user = d.paths[0]
                op, place = self.op(user), written(self.places.value(user))
                named = next((name for name, values in d.match.named.items() if value in values), None)
                if named is not None:
                    return phrases.waits_for_itself(display(named), op, place)
                return phrases.shared(self.places.called(value), op, place)
            case "TP204":
                return self._outbid(d)
            case "TP208":
                return phrases.switched_off(facts.name(d.match.pattern))
        return phrases.declined(display(d.reason))

    def _outbid(self, d: Decision) -> str:
        """Says what is chosen in a region's place, and what decided."""
        assert d.outbid is not None
        winner = self.winner(d)
        if winner is None:  # it is told inside something larger
            who = facts.name((d.winner or "").partition("@")[0])
        else:
            title = facts.title(winner.match.pattern, winner.match.facts)
            who = phrases.standing_at(title, written(self.places.value(winner.match.root)))
        return phrases.outbid(who, d.outbid, self.plan.machine.name)

    def read_names(self, match: Match) -> list[str]:
        """Names the named results that something outside of the match reads: nobody is told of the others."""
        if not match.named:
            return []
        plan = self.plan
        readers = plan.once("readers", lambda: live_readers(plan.tape))
        own = match.interior | match.produced
        return [
            display(name)
            for name, values in match.named.items()
            if any(value in self._seen or not own.issuperset(readers[value]) for value in values)
        ]

    def details(self, d: Decision) -> list[str]:
        """Lists what else there is to say."""
        numbers, machine = d.numbers, self.plan.machine.name
        found: list[str] = []
        if d.verdict == "taken":
            if numbers["benefit"].value > 0:
                found.append(phrases.saves(numbers["benefit"], numbers["seconds_before"], machine))
            more_read, more_written = (
                Number(numbers[f"{side}_after"].value - numbers[f"{side}_before"].value, "byte", "counted")
                for side in ("bytes_read", "bytes_written")
            )
            found.append(phrases.traffic(numbers["bytes_before"], numbers["bytes_after"], more_read, more_written))
            if read := self.read_names(d.match):
                found.append(phrases.writes_back(read))
            if d.offer is not None and d.offer.envelope is not None:
                envelope = d.offer.envelope
                found.append(phrases.error_bound(envelope.relative, envelope.absolute, display(envelope.probe)))
            if d.offer is not None and d.offer.range is not None:
                found.append(phrases.stays_finite(d.offer.range))
        elif d.verdict == "blocked":
            found.append(phrases.would_cost(numbers["price"], machine))
            smaller = [facts.title(c.match.pattern, c.match.facts) for c in self.inside.get(d.match.id, ())]
            found.append(
                phrases.taken_inside(smaller) if smaller else phrases.one_by_one(round(numbers["calls_before"].value))
            )
            for row, path in zip(d.observations, d.paths, strict=True):
                if len(path) > 1:
                    steps = [name for name, _ in groupby(self.places.called(v) for v in path)]
                    found.append(phrases.over_path(steps))
                if self.plan.observations[row].assumed:
                    found.append(phrases.assumed())
        elif "seconds_before" in numbers and "seconds_after" in numbers and d.code in ("TP204", "TP208", "TP203"):
            found.append(phrases.would_save(numbers["benefit"], numbers["seconds_before"], machine))
        if not (isinstance(d.flip, Firm) and d.flip.why == "observed"):  # that says it
            watched = d.would_block.items()
            told = [phrases.would_block(self.places.called(path[0]), self.reader(row)) for row, path in watched]
            found += dict.fromkeys(told)
        if d.contains:
            patterns = dict.fromkeys(name.partition("@")[0] for name in d.contains)
            inside = [facts.name(pattern) for pattern in patterns if pattern not in LAST]  # those only restate its ops
            found += [phrases.contains(inside)] if inside else []
        notes = [phrases.not_further(facts.name(miss.pattern), display(miss.sentence)) for miss in d.match.stopped]
        found += dict.fromkeys(notes)  # two candidates for one slot give one sentence
        return found

    def flips_if(self, d: Decision) -> dict[str, Any] | None:
        """Gives the nearest condition under which a region that cost declines would be taken, or why no one term is one."""
        if d.flip is None:
            return None
        if isinstance(d.flip, Firm):
            return {"text": self._firm(d.flip), "of": None, "now": None, "at": None}
        of, now, at = d.flip
        text = flips.by(of, now, at, self.plan.machine.name)
        return {"text": text, "of": of, "now": number(now), "at": number(at)}

    def _firm(self, firm: Firm) -> str:
        machine = self.plan.machine.name
        match firm.why:
            case "slow":
                at_roofline, at_once, before = firm.numbers
                return flips.never(at_roofline, at_once, before, machine)
            case "observed":
                return flips.not_observed(self.places.called(firm.value), self.reader(firm.row))
            case "itself":
                return flips.not_itself()
            case "cycle":
                return flips.not_cycle()
            case "rival":
                winner = self.by_id[firm.rival or ""].match
                title, place = facts.title(winner.pattern, winner.facts), written(self.places.value(winner.root))
                if not firm.numbers:
                    return flips.not_covered(title, place)
                needed, most = firm.numbers
                return flips.not_outbid(title, place, needed, most, machine)
        assert_never(firm.why)

    def action(self, d: Decision) -> str | None:
        """Says what to do about it, if anything."""
        match d.code:
            case "TP101":
                row = d.observations[0]
                kind = self.plan.observations[row].kind
                if d.nearest_free is None or kind == "output":  # what is returned is chosen by who calls
                    return advice.stop_reading(kind, asked=self.asked(row))
                place = written(self.places.value(d.nearest_free))
                value = self.places.called(d.nearest_free)
                return advice.read_instead(kind, value, None if value.endswith(place) else place)
            case "TP202":
                return advice.take_anyway()
            case "TP203":
                return advice.use_border(self.op(d.readers[0]))
            case "TP205" if self.plan.request.fidelity == "exact":
                return advice.allow_fast()
            case "TP209":
                return advice.bind_extent()
        return None

    def op(self, value: int) -> str:
        """Names the op of a value."""
        return self.places.op(value)

    def asked(self, row: int) -> bool:
        """Tells whether a request alone observes there: no line of the program does."""
        return row >= len(self.plan.tape.observations)

    def reader(self, row: int) -> str:
        """Names who reads the value of an observation."""
        observation = self.plan.observations[row]
        name = display(observation.name) if observation.name else None
        return phrases.reader(observation.kind, name, asked=self.asked(row))

    def _first_reader(self, d: Decision) -> tuple[str, str]:
        return self.places.called(d.paths[0][0]), self.reader(d.observations[0])

    def winner(self, d: Decision) -> Decision | None:
        """Gives the decision of what covers a match."""
        return self.by_id.get(d.winner) if d.winner is not None else None
