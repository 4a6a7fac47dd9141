"""Turns decisions and near misses into regions and findings in final words (`wording`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from topos_core.digest import digest_of
from topos_core.document import facts, phrases
from topos_core.document.codes import CODES
from topos_core.document.display import display
from topos_core.document.finding import Finding, Related, merged
from topos_core.document.fixes import Sources
from topos_core.document.numbering import Numbered, Numbering
from topos_core.document.places import Places, written
from topos_core.document.ranking import is_listed
from topos_core.document.region import built_rows, identity, near_told, number
from topos_core.document.remedies import remedies
from topos_core.document.told import About, Told
from topos_core.document.wording import Wording
from topos_core.matching.fingerprint import fingerprint, fold, near_miss_fingerprint
from topos_core.matching.match import Match, NearMiss
from topos_core.plan.decision import Decision
from topos_core.plan.plan import Decided, PlanData
from topos_core.tape.span import Span


@dataclass(slots=True)
class Composer:
    """Composes one plan.

    `others` is what is decided of the same tape, pool and observations for the other consumers. `plain` gives what is decided
    where nothing is asked beside consumer, fidelity, machine, cost and dialect: regions are numbered as there.
    """

    plan: PlanData
    others: Sequence[Decided] = ()
    root: str | None = None
    plain: Callable[[], Decided] | None = None
    places: Places = field(init=False)
    sources: Sources = field(init=False)
    regions: list[dict[str, Any]] = field(init=False, default_factory=list)
    findings: list[Finding] = field(init=False, default_factory=list)
    _ids: dict[str, str] = field(init=False, default_factory=dict)
    _by_id: dict[str, Decision] = field(init=False, default_factory=dict)
    _inside: dict[str, list[Decision]] = field(init=False, default_factory=dict)
    _used: Counter[str] = field(init=False, default_factory=Counter)
    _elsewhere: list[tuple[str, dict[str, Decision], dict[str, Decision]]] = field(init=False, default_factory=list)
    _known: dict[str, Told] = field(init=False)
    _abouts: dict[str, About] = field(init=False)
    _numbering: Numbering = field(init=False)
    _nears: dict[tuple[str, Numbered], tuple[dict[str, Any], Finding]] = field(init=False)
    _words: Wording = field(init=False)

    def __post_init__(self) -> None:
        self.places = Places(self.plan.tape, self.root)
        self.sources = Sources(self.places)
        request = self.plan.request
        setting = (request.consumer, request.fidelity, request.machine, request.cost, request.dialect)
        compared = tuple(other.request.consumer for other in self.others)
        self._known = self.plan.once(("told", self.root, setting, compared), dict[str, Told])
        self._nears = self.plan.once(
            ("near", self.root, request.consumer, request.fidelity),
            dict[tuple[str, Numbered], tuple[dict[str, Any], Finding]],
        )
        self._abouts = self.plan.once(("about", self.root), dict[str, About])
        self._numbering = self.plan.once(("numbers", self.root, setting), self._numbered).onward()
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
        self._words = Wording(self.plan, self.places, self._by_id, self._inside)
        for decision in self.plan.decisions:
            self._decided(decision)
        for miss in self.plan.near_misses:
            self._nearly(miss)
        for note in self.plan.tape.notes:
            self._finding(note.code, None, display(note.message), (), self.places.value(note.value), ())
        self._kept()
        self.findings = merged(self.findings)

    # -- regions

    def _decided(self, d: Decision) -> None:
        """Gives a decision its region and finding: those of an earlier plan where nothing they tell has changed."""
        about = self._about(d.match)
        number_ = self._number(d.match, about)
        context = self._context(d, number_)
        known = self._known.get(d.match.id)
        if known is None or known.decision is not d or not known.holds(context):
            known = Told(d, context, *self._composed(d, about, number_))
            self._known[d.match.id] = known
        self.regions.append(known.region)
        self.findings += known.findings

    def _about(self, match: Match) -> About:
        """Gives what is told of a match under every request."""
        found = self._abouts.get(match.id)
        if found is None:
            tape = self.plan.tape
            print_, fold_ = self._prints(match)
            found = self._abouts[match.id] = About(
                title=facts.title(match.pattern, match.facts),
                spans=tuple(self._spans(match)),
                modules=tuple(self.places.modules(sorted(match.computing | match.produced))),
                fingerprint=print_,
                fold=fold_,
                scope=tuple(display(name) for name in tape.location_of(match.root).scope),
                nodes=sorted(match.interior | match.produced),
                computing=sorted(match.computing | match.produced),
                facts=facts.table(match.facts),
            )
        return found

    def _prints(self, match: Match) -> tuple[str, str]:
        """Gives fingerprint and fold; blocks that repeat share their matches' facts, and have one of each."""
        tape = self.plan.tape
        ops = tape.ops
        known = self.plan.once("prints", dict[Any, tuple[str, str]])
        key = (
            match.pattern, id(match.facts), ops[match.root].type, tuple(match.named),
            tuple([(name, ops[value].type) for name, value in match.bindings.items()]),
            tuple(sorted([ops[value].name for value in match.interior])),
        )  # fmt: skip
        found: tuple[str, str] | None = known.get(key)
        if found is None:
            print_ = fingerprint(tape, match)
            found = known[key] = print_, fold(tape, match, print_)
        return found

    def _context(self, d: Decision, numbered: Numbered) -> tuple[list[Any], list[Any]]:
        """Lists what a region tells beside its decision: plain values, and the other consumers' decisions."""
        related = (*d.contains, d.parent, d.winner)
        plain: list[Any] = [
            self._ids[d.match.id],
            numbered,
            self._words.winner(d) is None,
            self._words.read_names(d.match),
        ]
        plain += [self._id_of(other) if other is not None else None for other in related]
        others = [found.get(d.match.id) for _, own, inside in self._elsewhere for found in (own, inside)]
        plain += [other is not None and self._words.winner(other) is None for other in others]
        return plain, others

    def _composed(self, d: Decision, about: About, numbered: Numbered) -> tuple[dict[str, Any], list[Finding]]:
        match, count = d.match, len(self.findings)
        reason = self._words.reason(d)
        region: dict[str, Any] = {
            "id": self._ids[match.id],
            **identity(numbered, about.scope, about.spans, about.modules),
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
            "details": self._words.details(d),
            "action": self._words.action(d),
            "flips_if": self._words.flips_if(d),
            "facts": about.facts,
            "cost": {name: number(figure) for name, figure in d.numbers.items()},
            "envelope": self._envelope(d),
            "observations": list(d.observations),
            "paths": [list(path) for path in d.paths] if d.verdict == "blocked" else [],
            "would_block": list(d.would_block),
            "readers": list(d.readers),
            "nearest_free": d.nearest_free,
            "fixes": remedies(self.plan, self.sources, d) if d.verdict == "blocked" else [],
            "near_miss": None,
            "fingerprint": about.fingerprint,
            "others": self._others(match),
        }
        if d.verdict == "blocked":
            self._blocked(d, about, region)
        elif d.verdict == "declined":
            assert d.code is not None
            if is_listed(region):
                place, related = self._declined_places(d, about.title)
                headline = phrases.declined_finding(about.title, reason)
                self._finding(
                    d.code, d, headline, region["details"], place, related, about.fingerprint, built=about.modules
                )
        told = self.findings[count:]
        del self.findings[count:]
        return region, told

    def _nearly(self, miss: NearMiss) -> None:
        name, numbered = self._unique(miss.pattern, miss.root), self._number_near(miss)
        told = self._nears.get((name, numbered))
        if told is None:
            told = self._nears[name, numbered] = near_told(self.plan, self.places, miss, name, numbered)
        self.regions.append(told[0])
        self.findings.append(told[1])

    def _numbered(self) -> Numbering:
        """Numbers the regions of the plan where nothing is asked."""
        self._numbering = Numbering()
        decided = self.plan if self.plain is None else self.plain()
        for d in decided.decisions:
            self._number(d.match, self._about(d.match))
        for miss in decided.near_misses:
            self._number_near(miss)
        return self._numbering

    def _number(self, match: Match, about: About) -> Numbered:
        return self._numbering.of(match.id, match.pattern, about.fingerprint, about.scope, about.spans[0])

    def _number_near(self, miss: NearMiss) -> Numbered:
        known = self._numbering.known.get((miss.pattern, miss.root))
        if known is not None:
            return known
        tape = self.plan.tape
        scope = [display(name) for name in tape.location_of(miss.root).scope]
        print_ = near_miss_fingerprint(tape, miss)
        return self._numbering.of((miss.pattern, miss.root), miss.pattern, print_, scope, self.places.value(miss.root))

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
                found[consumer] = {"verdict": d.verdict, "code": d.code, "reason": self._words.reason(d, consumer)}
            elif match.id in inside:
                around = inside[match.id]
                title = facts.title(around.match.pattern, around.match.facts)
                reason = phrases.inside_other(title, self._words.reason(around, consumer))
                found[consumer] = {"verdict": around.verdict, "code": around.code, "reason": reason}
        return found

    # -- findings

    def _blocked(self, d: Decision, about: About, region: Mapping[str, Any]) -> None:
        """One finding per reader, at the reader; where a larger blocked region has it, people are told of that alone."""
        title = about.title
        around = self._by_id.get(d.parent) if d.parent is not None else None
        told = set(around.observations) if around is not None and around.verdict == "blocked" else set()
        for row, path in zip(d.observations, d.paths, strict=True):
            if row in told:
                continue
            observation = self.plan.observations[row]
            value = self.places.called(path[0])
            headline = phrases.blocked_finding(title, value, self._words.reader(row), asked=self._words.asked(row))
            related = [Related(phrases.made_here(), self.places.value(path[0]))]
            related.append(Related(phrases.region_here(title), self.places.value(d.match.root)))
            place = self.places.location(observation.location)
            readings = [self.plan.observations[other].location for other in d.observations if other != row]
            others = list(dict.fromkeys(self.places.location(reading) for reading in readings))
            related += [Related(phrases.read_too(), other) for other in others]
            together = [phrases.read_together([written(other) for other in others])] if others else []
            details = [*region["details"], *together, *([region["action"]] if region["action"] else [])]
            self._finding(
                "TP101", d, headline, details, place, related, about.fingerprint,
                fixes=self.sources.fixes(observation, d.nearest_free),
                built=(*self.places.modules(path[:1]), *about.modules),
            )  # fmt: skip

    def _declined_places(self, d: Decision, title: str) -> tuple[Span, list[Related]]:
        related = [Related(phrases.read_here(self._words.op(user)), self.places.value(user)) for user in d.readers]
        winner = self._words.winner(d) if d.winner is not None else None
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
                    kept = phrases.kept(display(name), facts.name(d.match.pattern))
                    self._finding("TP102", d, kept, (), place, related, built=self._about(d.match).modules)

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
        built: Sequence[tuple[str, Span]] = (),
    ) -> None:
        told = tuple(r for r in related if r.place != place)
        known = {place, *(r.place for r in told)}
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
                related=told,
                built=built_rows(built, known),
                fingerprint=print_ if print_ is not None else digest_of(code, pattern, headline)[:16],
                fixes=tuple(fixes),
            )
        )
