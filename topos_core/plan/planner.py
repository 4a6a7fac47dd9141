"""Plans requests over one tape and one match pool, and remembers what the next request can use again.

The order of the steps decides verdicts; each has its reason beside it and a test that fails when two are swapped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, get_args

from topos_core.cost.machine import Machine
from topos_core.cost.memory import Placement
from topos_core.cost.profiles import machine
from topos_core.errors import ConfigurationError
from topos_core.kernels.kernel import Consumer, Decline, Dialect, Fidelity, Offer
from topos_core.matching.match import Match
from topos_core.matching.order import LAST
from topos_core.plan.contraction import find_cycle
from topos_core.plan.decision import Decision, Number
from topos_core.plan.election import Candidate, Elector, by_claim, families
from topos_core.plan.liveness import recorded_places
from topos_core.plan.plan import Decided, PlanData, Pool
from topos_core.plan.precedence import rank
from topos_core.plan.pricing import (
    Before,
    Figures,
    Recorded,
    offered_seconds,
    pressure,
    price_after,
    price_before,
    price_declined,
    price_recorded,
    stated,
    weight,
)
from topos_core.plan.reading import Boundary, Reading, blocking, boundary, reading, shared_readers
from topos_core.plan.request import Request
from topos_core.plan.schedule import SOURCES, units
from topos_core.plan.verdicts import Ballot, Families, Standing, verdicts
from topos_core.recording.collector import collector_paused
from topos_core.tape.tape import Tape


@dataclass(slots=True)
class _Setting:
    """What depends on the consumer, the fidelity, the machine, the dialect and the cost mode, but on no observation."""

    profile: Machine
    recorded: Recorded
    elector: Elector
    standings: list[Standing]
    families: Families
    plain: list[Ballot]
    index: Mapping[int, Sequence[Candidate]]
    totals: dict[bytes, dict[str, Number]] = field(default_factory=dict)


@dataclass(slots=True)
class Planner:
    """Plans requests over one tape and pool; what-if is another request to the same planner.

    Args:
        tape: The spec.
        pool: What one search found.
        consumers: Who may act, by name.
        last: Patterns from outside the catalogue that are elected last.
        calibrated: This host's measured profile, where there is one.
    """

    tape: Tape
    pool: Pool
    consumers: Mapping[str, Consumer]
    last: frozenset[str] = frozenset()
    calibrated: Machine | None = None
    _users: list[list[int]] = field(init=False)
    _places: tuple[Placement, ...] = field(init=False)
    _borders: list[Boundary] = field(init=False)
    _alive: Sequence[bool] = field(init=False)
    _like: Sequence[int] = field(init=False)
    _families: Sequence[int] = field(init=False)
    _ranks: dict[str, int] = field(init=False)
    _before: dict[tuple[str, bool], tuple[Recorded, list[Before]]] = field(init=False, default_factory=dict)
    _settings: dict[tuple[str, ...], _Setting] = field(init=False, default_factory=dict)
    _memo: dict[Any, Any] = field(init=False, default_factory=dict)
    _read: tuple[Any, Reading] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self._users = self.tape.users()
        self._places = recorded_places(self.tape)
        self._borders = [boundary(self.tape, self._users, match) for match in self.pool.matches]
        self._families = families([border.claims for border in self._borders])
        self._like = self.pool.repeats or range(len(self.pool.matches))
        patterns = sorted({match.pattern for match in self.pool.matches}, key=rank)
        self._ranks = {pattern: place for place, pattern in enumerate(patterns)}
        # Shares of movement are counted with the tape's own readers, whatever a request adds: a benefit must not change
        # where what-if touches nothing.
        self._alive = reading(self.tape, self._users, Request()).alive

    def plan(self, request: Request) -> PlanData:
        """Plans one request.

        Raises:
            ConfigurationError: TP504, an unknown consumer or machine, or a value, a row or a pattern that is not there.
        """
        self._check(request)
        with collector_paused():
            return self._plan(request)

    def decide(self, request: Request) -> Decided:
        """Decides one request and schedules nothing: what a plan for another consumer tells beside its own.

        Raises:
            ConfigurationError: TP504, as `plan`.
        """
        self._check(request)
        with collector_paused():
            _, _, decisions = self._decisions(request)
        return Decided(request, decisions)

    def _decisions(self, request: Request) -> tuple[_Setting, Reading, tuple[Decision, ...]]:
        setting = self._setting(request)
        reads = self._reading(request)
        concerns = self.consumers[request.consumer].concerns
        ballots = [
            self._ballot(number, setting.plain[number], reads, request)
            for number, match in enumerate(self.pool.matches)
            # a match that leads nowhere is dead code: nothing would run
            if reads.alive[match.root] and concerns(match.pattern)
        ]
        decisions = verdicts(
            self.tape, self.pool.matches, self._borders, ballots, reads, setting.elector, setting.families,
            setting.index, self._cycle,
        )  # fmt: skip
        return setting, reads, decisions

    def _plan(self, request: Request) -> PlanData:
        solved = self._setting(request).elector.solved
        setting, reads, decisions = self._decisions(request)
        taken = [decision for decision in decisions if decision.verdict == "taken"]
        wanted = tuple(sorted({*self.tape.results, *reads.rows}))
        run = units(self.tape, [decision.match for decision in taken], wanted)
        return PlanData(
            tape=self.tape,
            request=request,
            machine=setting.profile,
            observations=reads.observations,
            decisions=decisions,
            near_misses=tuple(
                sorted(
                    (n for n in self.pool.near_misses if reads.alive[n.root]),
                    key=lambda n: (n.root, rank(n.pattern)),
                )
            ),
            wanted=wanted,
            places=self._places,
            totals={
                "recorded": self._recorded_totals(reads, setting),
                "planned": _totals(run, setting, self._standings(setting, taken)),
            },
            elected=setting.elector.solved - solved,
            memo=self._memo,
        )

    def _check(self, request: Request) -> None:
        count = len(self.tape.ops)
        if request.consumer not in self.consumers:
            known = " ".join(self.consumers)
            raise ConfigurationError(f"no consumer {request.consumer!r}; use one of {known}", code="TP504")
        for what, chosen, choices in (
            ("fidelity", request.fidelity, get_args(Fidelity)),
            ("cost", request.cost, ("model", "always")),
            ("dialect", request.dialect, get_args(Dialect)),
        ):
            if chosen not in choices:
                raise ConfigurationError(f"no {what} {chosen!r}; use one of {' '.join(choices)}", code="TP504")
        for value in request.observe:
            if not 0 <= value < count:
                raise ConfigurationError(f"no value %{value} to observe; the tape has {count} values", code="TP504")
        rows = len(self.tape.observations)
        for row in request.ignore:
            if not 0 <= row < rows:
                raise ConfigurationError(f"no observation {row} to ignore; the tape has {rows}", code="TP504")
            if self.tape.observations[row].kind == "output":
                raise ConfigurationError(
                    f"observation {row} is a returned output and cannot be ignored; change what the program returns",
                    code="TP504",
                )

    def _cycle(self, picks: frozenset[int]) -> Sequence[int]:
        return find_cycle(self.tape, self._users, self.pool.matches, picks)

    def _setting(self, request: Request) -> _Setting:
        key = (request.consumer, request.fidelity, request.machine, request.cost, request.dialect)
        setting = self._settings.get(key)
        if setting is None:
            profile = machine(request.machine, calibrated=self.calibrated)
            recorded, before = self._recorded_prices(request, profile)
            consumer = self.consumers[request.consumer]
            standings: list[Standing] = []
            for number, (match, border) in enumerate(zip(self.pool.matches, self._borders, strict=True)):
                like = self._like[number]
                # What repeats in another block and costs the same as recorded is offered what it was offered there.
                same = like < number and before[like] == before[number]
                costs = before[number]
                made = standings[like] if same else self._standing(match, border, consumer, request, profile, costs)
                standings.append(made)
            plain = [Ballot(self._candidate(number, standing), standing) for number, standing in enumerate(standings)]
            setting = self._settings[key] = _Setting(
                profile, recorded, Elector(self._families), standings, Families(self._families), plain,
                by_claim(ballot.candidate for ballot in plain),
            )  # fmt: skip
        return setting

    def _recorded_prices(self, request: Request, profile: Machine) -> tuple[Recorded, list[Before]]:
        key = (profile.name, request.consumer == "home")
        if key not in self._before:
            recorded = price_recorded(self.tape, self._places, profile, request.consumer)
            before = [
                price_before(self.tape, self._users, self._alive, recorded, match, border)
                for match, border in zip(self.pool.matches, self._borders, strict=True)
            ]
            self._before[key] = recorded, before
        return self._before[key]

    def _standing(
        self, match: Match, border: Boundary, consumer: Consumer, request: Request, profile: Machine, before: Before
    ) -> Standing:
        offer = consumer.offer(self.tape, match, request)
        if isinstance(offer, Offer) and request.fidelity == "exact" and not offer.exact:
            envelope = offer.envelope
            errors = (
                {} if envelope is None else {"relative_error": envelope.relative, "absolute_error": envelope.absolute}
            )
            offer = Decline("TP205", "fidelity", f"{offer.kernel} is not bit-identical to the recorded ops", errors)
        if isinstance(offer, Decline):
            return Standing(offer, {**price_declined(before), **stated(offer)}, 0)
        dtype = self.tape.ops[match.root].type.dtype
        seconds = offered_seconds(offer, dtype, profile)
        benefit = before.seconds - seconds
        # A raise is a name and costs its target nothing to read, so only home is elected by predicted time.
        legal_only = request.cost == "always" or request.consumer != "home"
        gain = weight(benefit, len(border.claims), legal_only=legal_only)
        numbers = Figures(partial(_side_by_side, self.tape, match, profile, offer, before, seconds))
        return Standing(offer, numbers, gain, before.calls, seconds, benefit)

    def _is_last(self, match: Match) -> bool:
        return match.pattern in LAST or match.pattern in self.last

    def _candidate(self, number: int, standing: Standing) -> Candidate:
        match = self.pool.matches[number]
        return Candidate(
            number=number,
            claims=self._borders[number].claims,
            weight=standing.weight,
            root=match.root,
            rank=self._ranks[match.pattern],
            last=self._is_last(match),
        )

    def _ballot(self, number: int, plain: Ballot, reads: Reading, request: Request) -> Ballot:
        """Adds what the request says to the ballot of a match that nobody reads inside and nothing switches off."""
        match, border = self.pool.matches[number], self._borders[number]
        # 206, 207, 209, 205 come with the offer: without a kernel nothing else is worth telling. Then 203 before 208:
        # a switched-off match that could not run anyway is told why. Cost (202) and rivals (204) come with the election.
        candidate, standing = plain.candidate, plain.standing
        if isinstance(standing.offer, Decline):
            return plain
        readers = shared_readers(border, reads) if border.outside else ()
        if readers:
            return Ballot(candidate, standing, readers=readers)
        if match.pattern in request.off or (match.pattern, match.root) in request.off_at:
            return Ballot(candidate, standing, off=True)
        blocks = blocking(border, reads)
        return Ballot(candidate, standing, blocking=blocks) if blocks else plain

    def _reading(self, request: Request) -> Reading:
        """Reads the tape under a request; what is decided for the other consumers reads as the plan itself."""
        key = (request.observe, request.ignore)
        if self._read is None or self._read[0] != key:
            self._read = key, reading(self.tape, self._users, request)
        return self._read[1]

    def _standings(self, setting: _Setting, taken: Iterable[Decision]) -> dict[int, Standing]:
        """Gives how those that are taken stand, by root."""
        numbers = {(match.pattern, match.root): number for number, match in enumerate(self.pool.matches)}
        return {d.match.root: setting.standings[numbers[d.match.pattern, d.match.root]] for d in taken}

    def _recorded_totals(self, reads: Reading, setting: _Setting) -> dict[str, Number]:
        key = bytes(reads.alive)
        if key not in setting.totals:
            ops = self.tape.ops
            run = (value for value, alive in enumerate(reads.alive) if alive and ops[value].name not in SOURCES)
            setting.totals[key] = _totals(run, setting, {})
        return setting.totals[key]


def _side_by_side(
    tape: Tape, match: Match, profile: Machine, offer: Offer, before: Before, seconds: float
) -> dict[str, Number]:
    return {**price_after(offer, before, seconds), **pressure(tape, match, profile)}


def _totals(run: Iterable[int], setting: _Setting, taken: Mapping[int, Standing]) -> dict[str, Number]:
    """Adds up what one run holds, in tape order: recorded ops at their own price, matches at their offer's."""
    flops = read = written = calls = 0
    seconds = 0.0
    estimates = setting.recorded.estimates
    for unit in run:
        standing = taken.get(unit)
        if standing is None:
            work, made, alone = estimates[unit]
        else:
            assert isinstance(standing.offer, Offer)
            work, made, alone = standing.offer.work, 1, standing.seconds
        seconds += alone
        calls += made
        flops += work.flops
        read += work.bytes_read
        written += work.bytes_written
    return {
        "flops": Number(flops, "flop", "counted"),
        "bytes_read": Number(read, "byte", "counted"),
        "bytes_written": Number(written, "byte", "counted"),
        "calls": Number(calls, "call", "counted"),
        "seconds": Number(seconds, "second", "modelled"),
    }
