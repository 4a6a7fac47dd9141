"""Turns decisions and near misses into regions and findings in final words.

Longer than most files because a region's fields, its sentences and its finding must agree with each other, and one reader
of a plan should find them in one place.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from topos_core.digest import digest_of
from topos_core.document import facts, phrases
from topos_core.document.codes import CODES
from topos_core.document.display import display
from topos_core.document.finding import Finding, Related
from topos_core.document.fixes import Sources
from topos_core.document.places import Places, written
from topos_core.document.ranking import is_listed
from topos_core.document.told import About, Told
from topos_core.matching.closure import live_readers
from topos_core.matching.fingerprint import fingerprint, fold, near_miss_fingerprint
from topos_core.matching.match import Match, NearMiss
from topos_core.matching.order import LAST
from topos_core.plan.decision import Decision, Number
from topos_core.plan.plan import Decided, PlanData
from topos_core.tape.span import Span


@dataclass(slots=True)
class Composer:
    """Composes one plan. `others` are plans of the same tape, pool and observations for the other consumers."""

    plan: PlanData
    others: Sequence[Decided] = ()
    root: str | None = None
    places: Places = field(init=False)
    sources: Sources = field(init=False)
    regions: list[dict[str, Any]] = field(init=False, default_factory=list)
    findings: list[Finding] = field(init=False, default_factory=list)
    _ids: dict[str, str] = field(init=False, default_factory=dict)
    _by_id: dict[str, Decision] = field(init=False, default_factory=dict)
    _inside: dict[str, list[Decision]] = field(init=False, default_factory=dict)
    _used: Counter[str] = field(init=False, default_factory=Counter)
    _elsewhere: list[tuple[str, dict[str, Decision], dict[str, Decision]]] = field(init=False, default_factory=list)
    _keys: Counter[str] = field(init=False, default_factory=Counter)
    _occurrences: Counter[tuple[str, Span]] = field(init=False, default_factory=Counter)
    _known: dict[str, Told] = field(init=False)

    def __post_init__(self) -> None:
        self.places = Places(self.plan.tape, self.root)
        self.sources = Sources(self.places)
        request = self.plan.request
        setting = (request.consumer, request.fidelity, request.machine, request.cost, request.dialect)
        compared = tuple(other.request.consumer for other in self.others)
        self._known = self.plan.once(("told", self.root, setting, compared), dict[str, Told])
        for decision in self.plan.decisions:
            self._ids[decision.match.id] = self._unique(decision.match.pattern, decision.match.root)
            self._by_id[decision.match.id] = decision
            if decision.verdict == "taken" and decision.parent is not None:
                self._inside.setdefault(decision.parent, []).append(decision)
        for other in self.others:
            own = {d.match.id: d for d in other.decisions}
            self._by_id = {**own, **self._by_id}  # a winner of another consumer is no decision of this one
            inside = {name: d for d in other.decisions if d.verdict == "taken" for name in d.contains}
            self._elsewhere.append((other.request.consumer, own, inside))
        for decision in self.plan.decisions:
            self._decided(decision)
        for miss in self.plan.near_misses:
            self._nearly(miss)
        for note in self.plan.tape.notes:
            self._finding(note.code, None, display(note.message), (), self.places.value(note.value), ())
        self._kept()
        self.findings = _merged(self.findings)

    # -- regions

    def _decided(self, d: Decision) -> None:
        """Gives a decision its region and finding: those of an earlier plan where nothing they tell has changed."""
        about = self._about(d.match)
        number_ = self._numbered(d.match.pattern, about.fingerprint, about.scope, about.spans[0])
        context = self._context(d, number_)
        known = self._known.get(d.match.id)
        if known is None or known.decision is not d or not known.holds(context):
            known = Told(d, context, *self._composed(d, about, number_))
            self._known[d.match.id] = known
        self.regions.append(known.region)
        self.findings += known.findings

    def _about(self, match: Match) -> About:
        """Gives what is told of a match under every request."""

        def worked_out() -> About:
            tape = self.plan.tape
            print_ = fingerprint(tape, match)
            return About(
                title=facts.title(match.pattern, match.facts),
                spans=tuple(self._spans(match)),
                fingerprint=print_,
                fold=fold(tape, match, print_),
                scope=tuple(display(name) for name in tape.location_of(match.root).scope),
                nodes=sorted(match.interior | match.produced),
                computing=sorted(match.computing | match.produced),
                facts=facts.table(match.facts),
            )

        return self.plan.once(("about", self.root, match.id), worked_out)

    def _context(self, d: Decision, numbered: tuple[str, int]) -> tuple[list[Any], list[Any]]:
        """Lists what a region tells beside its decision: plain values, and the other consumers' decisions."""
        related = (*d.contains, d.parent, d.winner)
        plain: list[Any] = [self._ids[d.match.id], numbered, self._winner(d) is None, self._read_names(d.match)]
        plain += [self._id_of(other) if other is not None else None for other in related]
        others = [found.get(d.match.id) for _, own, inside in self._elsewhere for found in (own, inside)]
        plain += [other is not None and self._winner(other) is None for other in others]
        return plain, others

    def _composed(self, d: Decision, about: About, numbered: tuple[str, int]) -> tuple[dict[str, Any], list[Finding]]:
        match, count = d.match, len(self.findings)
        reason = self._reason(d)
        region: dict[str, Any] = {
            "id": self._ids[match.id],
            **_identity(numbered, about.scope, about.spans),
            "pattern": match.pattern,
            "verdict": d.verdict,
            "code": d.code,
            "word": d.word,
            "consumer": self.plan.request.consumer,
            "fidelity": self.plan.request.fidelity,
            "kernel": display(d.kernel) if d.kernel is not None else None,
            "root": match.root,
            "nodes": about.nodes,
            "computing": about.computing,
            "bindings": dict(match.bindings),
            "named": {name: list(values) for name, values in match.named.items()},
            "contains": [self._id_of(other) for other in d.contains],
            "parent": self._id_of(d.parent) if d.parent is not None else None,
            "winner": self._id_of(d.winner) if d.winner is not None else None,
            "fold": about.fold,
            "headline": phrases.headline(about.title, d.verdict),
            "reason": reason,
            "details": self._details(d),
            "action": self._action(d),
            "facts": about.facts,
            "cost": {name: number(figure) for name, figure in d.numbers.items()},
            "envelope": self._envelope(d),
            "observations": list(d.observations),
            "paths": [list(path) for path in d.paths] if d.verdict == "blocked" else [],
            "readers": list(d.readers),
            "nearest_free": d.nearest_free,
            "near_miss": None,
            "fingerprint": about.fingerprint,
            "others": self._others(match),
        }
        if d.verdict == "blocked":
            self._blocked(d, about.title, about.fingerprint, region)
        elif d.verdict == "declined":
            assert d.code is not None
            if is_listed(region):
                place, related = self._declined_places(d, about.title)
                headline = phrases.declined_finding(about.title, reason)
                self._finding(d.code, d, headline, region["details"], place, related, about.fingerprint)
        told = self.findings[count:]
        del self.findings[count:]
        return region, told

    def _nearly(self, miss: NearMiss) -> None:
        span, at = self.places.value(miss.root), self.places.value(miss.at)
        print_ = near_miss_fingerprint(self.plan.tape, miss)
        scope = [display(name) for name in self.plan.tape.location_of(miss.root).scope]
        region_id = self._unique(miss.pattern, miss.root)
        reason = phrases.near_miss(display(miss.sentence))
        details = [phrases.held(miss.steps_held, miss.steps, display(miss.expected), display(miss.found))]
        title = facts.name(miss.pattern)
        self.regions.append(
            {
                "id": region_id,
                **_identity(self._numbered(miss.pattern, print_, scope, span), scope, [span]),
                "pattern": miss.pattern,
                "verdict": "near_miss",
                "code": "TP201",
                "word": "near-miss",
                "consumer": self.plan.request.consumer,
                "fidelity": self.plan.request.fidelity,
                "kernel": None,
                "root": miss.root,
                "nodes": sorted({miss.at, miss.root}),
                "computing": [],
                "bindings": {},
                "named": {},
                "contains": [],
                "parent": None,
                "winner": None,
                "fold": digest_of(print_, str(self.plan.tape.ops[miss.root].type))[:16],
                "headline": phrases.headline(title, "near_miss"),
                "reason": reason,
                "details": details,
                "action": None,
                "facts": {name: f"{value:g}" for name, value in miss.numbers.items()},
                "cost": {},
                "envelope": None,
                "observations": [],
                "paths": [],
                "readers": [],
                "nearest_free": None,
                "near_miss": {
                    "at": miss.at,
                    "code": display(miss.code),
                    "expected": display(miss.expected),
                    "found": display(miss.found),
                    "steps_held": miss.steps_held,
                    "steps": miss.steps,
                    "span": at._asdict(),
                },
                "fingerprint": print_,
                "others": {},
            }
        )
        related = (Related(phrases.differs_here(), at),) if at != span else ()
        self.findings.append(
            Finding("TP201", CODES["TP201"].severity, "near_miss", miss.pattern, region_id, reason, tuple(details), span, related, print_)
        )  # fmt: skip

    def _numbered(self, pattern: str, print_: str, scope: Sequence[str], span: Span) -> tuple[str, int]:
        """Gives a region's key, and how many of its pattern stand at its place before it."""
        prefix = f"{pattern}/{print_}/{'.'.join(scope)}"
        place = (pattern, span)
        numbered = f"{prefix}/{self._keys[prefix]}", self._occurrences[place]
        self._keys[prefix] += 1
        self._occurrences[place] += 1
        return numbered

    def _unique(self, pattern: str, root: int) -> str:
        """Gives `pattern@root`, with a count behind where two would be equal."""
        name = f"{display(pattern)}@{root}"
        self._used[name] += 1
        count = self._used[name]
        return name if count == 1 else f"{name}#{count}"

    def _id_of(self, match_id: str) -> str:
        """Gives a region's id; a match without a region of its own is named `pattern@root` too."""
        known = self._ids.get(match_id)
        return known if known is not None else display(match_id.partition("(")[0].replace("%", ""))

    def _spans(self, match: Match) -> list[Span]:
        ops = self.plan.tape.ops
        inner = sorted((v for v in match.interior | match.produced if ops[v].name != "constant"), reverse=True)
        return list(dict.fromkeys(self.places.value(v) for v in (match.root, *inner)))

    def _envelope(self, d: Decision) -> dict[str, Any] | None:
        envelope = d.offer.envelope if d.offer is not None and d.verdict == "taken" else None
        if envelope is None:
            return None
        return {"relative": envelope.relative, "absolute": envelope.absolute, "probe": display(envelope.probe)}

    def _others(self, match: Match) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for consumer, own, inside in self._elsewhere:
            if match.id in own:
                d = own[match.id]
                found[consumer] = {"verdict": d.verdict, "code": d.code, "reason": self._reason(d, consumer)}
            elif match.id in inside:
                around = inside[match.id]
                title = facts.title(around.match.pattern, around.match.facts)
                reason = phrases.inside_other(title, self._reason(around, consumer))
                found[consumer] = {"verdict": around.verdict, "code": around.code, "reason": reason}
        return found

    # -- sentences

    def _reason(self, d: Decision, consumer: str | None = None) -> str:
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
                op, place = self._op(user), written(self.places.value(user))
                named = next((name for name, values in d.match.named.items() if value in values), None)
                if named is not None:
                    return phrases.waits_for_itself(display(named), op, place)
                return phrases.shared(self.places.called(value), op, place)
            case "TP204":
                winner = self._winner(d)
                if winner is None:
                    return phrases.declined(display(d.reason))
                title = facts.title(winner.match.pattern, winner.match.facts)
                return phrases.covered(title, written(self.places.value(winner.match.root)))
            case "TP208":
                return phrases.switched_off(facts.name(d.match.pattern))
        return phrases.declined(display(d.reason))

    def _read_names(self, match: Match) -> list[str]:
        """Names the named results that something outside of the match reads: nobody is told of the others."""
        if not match.named:
            return []
        plan = self.plan
        readers = plan.once("readers", lambda: live_readers(plan.tape))
        seen = {*plan.tape.results, *(each.value for each in plan.observations)}
        own = match.interior | match.produced
        return [
            display(name)
            for name, values in match.named.items()
            if any(value in seen or not own.issuperset(readers[value]) for value in values)
        ]

    def _details(self, d: Decision) -> list[str]:
        numbers, machine = d.numbers, self.plan.machine.name
        found: list[str] = []
        if d.verdict == "taken":
            if numbers["benefit"].value > 0:
                found.append(phrases.saves(numbers["benefit"], numbers["seconds_before"], machine))
            found.append(phrases.traffic(numbers["bytes_before"], numbers["bytes_after"]))
            if read := self._read_names(d.match):
                found.append(phrases.writes_back(read))
            if d.offer is not None and d.offer.envelope is not None:
                envelope = d.offer.envelope
                found.append(phrases.error_bound(envelope.relative, envelope.absolute, display(envelope.probe)))
            if d.offer is not None and d.offer.range is not None:
                found.append(phrases.stays_finite(d.offer.range))
        elif d.verdict == "blocked":
            found.append(phrases.would_cost(numbers["price"], machine))
            smaller = [facts.title(c.match.pattern, c.match.facts) for c in self._inside.get(d.match.id, ())]
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
        if d.contains:
            patterns = dict.fromkeys(name.partition("@")[0] for name in d.contains)
            inside = [facts.name(pattern) for pattern in patterns if pattern not in LAST]  # those only restate its ops
            found += [phrases.contains(inside)] if inside else []
        notes = [phrases.not_further(facts.name(miss.pattern), display(miss.sentence)) for miss in d.match.stopped]
        found += dict.fromkeys(notes)  # two candidates for one slot give one sentence
        return found

    def _action(self, d: Decision) -> str | None:
        match d.code:
            case "TP101":
                kind = self.plan.observations[d.observations[0]].kind
                if d.nearest_free is None or kind == "output":  # what is returned is chosen by who calls
                    return phrases.stop_reading(kind)
                place = written(self.places.value(d.nearest_free))
                value = self.places.called(d.nearest_free)
                return phrases.read_instead(kind, value, None if value.endswith(place) else place)
            case "TP202":
                return phrases.take_anyway()
            case "TP203":
                return phrases.use_border(self._op(d.readers[0]))
            case "TP205" if self.plan.request.fidelity == "exact":
                return phrases.allow_fast()
            case "TP209":
                return phrases.bind_extent()
        return None

    def _op(self, value: int) -> str:
        return f"`{display(self.plan.tape.ops[value].name)}`"

    def _first_reader(self, d: Decision) -> tuple[str, str]:
        observation = self.plan.observations[d.observations[0]]
        name = display(observation.name) if observation.name else None
        return self.places.called(d.paths[0][0]), phrases.reader(observation.kind, name)

    def _winner(self, d: Decision) -> Decision | None:
        return self._by_id.get(d.winner) if d.winner is not None else None

    # -- findings

    def _blocked(self, d: Decision, title: str, print_: str, region: Mapping[str, Any]) -> None:
        """One finding per reader, at the reader; where a larger blocked region has it, people are told of that alone."""
        around = self._by_id.get(d.parent) if d.parent is not None else None
        told = set(around.observations) if around is not None and around.verdict == "blocked" else set()
        for row, path in zip(d.observations, d.paths, strict=True):
            if row in told:
                continue
            observation = self.plan.observations[row]
            name = display(observation.name) if observation.name else None
            value = self.places.called(path[0])
            headline = phrases.blocked_finding(title, value, phrases.reader(observation.kind, name))
            related = [Related(phrases.made_here(), self.places.value(path[0]))]
            related.append(Related(phrases.region_here(title), self.places.value(d.match.root)))
            place = self.places.location(observation.location)
            readings = [self.plan.observations[other].location for other in d.observations if other != row]
            others = list(dict.fromkeys(self.places.location(reading) for reading in readings))
            related += [Related(phrases.read_too(), other) for other in others]
            together = [phrases.read_together([written(other) for other in others])] if others else []
            details = [*region["details"], *together, *([region["action"]] if region["action"] else [])]
            self._finding(
                "TP101", d, headline, details, place, related, print_,
                fixes=self.sources.fixes(observation, d.nearest_free),
            )  # fmt: skip

    def _declined_places(self, d: Decision, title: str) -> tuple[Span, list[Related]]:
        related = [Related(phrases.read_here(self._op(user)), self.places.value(user)) for user in d.readers]
        winner = self._winner(d) if d.winner is not None else None
        if winner is not None:
            name = facts.title(winner.match.pattern, winner.match.facts)
            related.append(Related(phrases.winner_here(name), self.places.value(winner.match.root)))
        return self.places.value(d.match.root), related

    def _kept(self) -> None:
        """Notes every observed named result of a taken region."""
        rows: dict[int, list[int]] = {}
        for row, observation in enumerate(self.plan.observations):
            if row not in self.plan.request.ignore and observation.kind != "output":
                rows.setdefault(observation.value, []).append(row)
        for d in self.plan.taken:
            title = facts.title(d.match.pattern, d.match.facts)
            for name, values in d.match.named.items():
                for row in sorted(row for value in values for row in rows.get(value, ())):
                    observation = self.plan.observations[row]
                    related = [Related(phrases.region_here(title), self.places.value(d.match.root))]
                    place = self.places.location(observation.location)
                    self._finding(
                        "TP102", d, phrases.kept(display(name), facts.name(d.match.pattern)), (), place, related
                    )

    def _finding(
        self,
        code: str,
        d: Decision | None,
        headline: str,
        details: Sequence[str],
        place: Span,
        related: Sequence[Related],
        print_: str | None = None,
        fixes: Sequence[Any] = (),
    ) -> None:
        pattern = d.match.pattern if d is not None else None
        self.findings.append(
            Finding(
                code=code,
                severity=CODES[code].severity,
                verdict=d.verdict if d is not None else None,
                pattern=pattern,
                region=self._ids[d.match.id] if d is not None else None,
                headline=headline,
                details=tuple(details),
                place=place,
                related=tuple(r for r in related if r.place != place),
                fingerprint=print_ if print_ is not None else digest_of(code, pattern, headline)[:16],
                fixes=tuple(fixes),
            )
        )


def _identity(numbered: tuple[str, int], scope: Sequence[str], spans: Sequence[Span]) -> dict[str, Any]:
    return {
        "key": numbered[0],
        "scope": list(scope),
        "occurrence": numbered[1],
        **spans[0]._asdict(),
        "spans": [span._asdict() for span in spans],
    }


def _merged(findings: Sequence[Finding]) -> list[Finding]:
    """Tells equal findings at one place once, with their number, and orders all by place; errors of one place by code."""
    groups: dict[tuple[Any, ...], list[Finding]] = {}
    for finding in findings:
        # Layers of a loop differ in the names of what they observe and in nothing else.
        same = (finding.place, finding.code, finding.pattern, finding.fingerprint, finding.related)
        groups.setdefault(same, []).append(finding)
    merged = []
    for group in groups.values():
        first = group[0]
        if len(group) > 1:
            fields = {name: getattr(first, name) for name in Finding.__slots__}
            first = Finding(**{**fields, "details": (*first.details, phrases.also(len(group) - 1))})
        merged.append(first)
    return sorted(merged, key=lambda f: (f.place, f.code))


def number(figure: Number) -> dict[str, Any]:
    """Gives a figure's fields; what JSON cannot hold becomes null."""
    value = figure.value
    return {"value": value if math.isfinite(value) else None, "unit": figure.unit, "basis": figure.basis}
