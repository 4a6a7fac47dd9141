"""Plans requests over one tape and one match pool, and remembers what the next request can use again.

The order of the steps decides verdicts; each has its reason beside it and a test that fails when two are swapped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any, get_args

from topos_core.cost.machine import Machine
from topos_core.cost.profiles import machine
from topos_core.errors import ConfigurationError
from topos_core.kernels.kernel import Consumer, Dialect, Fidelity, Offer
from topos_core.kernels.variants import VARIANTS
from topos_core.matching.match import NearMiss
from topos_core.plan.ballots import Standing
from topos_core.plan.decision import Number
from topos_core.plan.outcome import Reported
from topos_core.plan.plan import Decided, PlanData
from topos_core.plan.precedence import rank
from topos_core.plan.pricing import Price, price_recorded
from topos_core.plan.reading import Reading
from topos_core.plan.repeated import Repeated, repeated
from topos_core.plan.request import Request
from topos_core.plan.schedule import SOURCES, units
from topos_core.plan.setting import Setting
from topos_core.plan.survey import Pool, Survey
from topos_core.plan.verdicts import verdicts
from topos_core.recording.collector import collector_paused
from topos_core.tape.tape import Tape


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
    _survey: Survey = field(init=False)
    _repeated: Mapping[int, Repeated] = field(init=False)
    _prices: dict[tuple[str, bool], list[Price]] = field(init=False, default_factory=dict)
    _settings: dict[Any, Setting] = field(init=False, default_factory=dict)
    _memo: dict[Any, Any] = field(init=False, default_factory=dict)
    _read: tuple[Any, Reading] | None = field(init=False, default=None)
    _missed: tuple[bytearray, tuple[NearMiss, ...]] | None = field(init=False, default=None)

    _found: Set[tuple[str, int]] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        with collector_paused():
            self._survey = Survey(self.tape, self.pool)
            self._repeated = repeated(self._survey)

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
            _, reads, reported = self._reported(request)
        return Decided(request, tuple([one.decision for one in reported]), self._near_misses(reads))

    def _reported(self, request: Request) -> tuple[Setting, Reading, list[Reported]]:
        setting, reads = self._setting(request), self._reading(request)
        return setting, reads, verdicts(self._survey, setting, reads, request)

    def _plan(self, request: Request) -> PlanData:
        solved = self._setting(request).elector.solved
        setting, reads, reported = self._reported(request)
        taken = [one for one in reported if one.decision.verdict == "taken"]
        wanted = tuple(sorted({*self.tape.results, *reads.rows, *reads.beside}))
        run = units(self.tape, [one.decision.match for one in taken], wanted)
        return PlanData(
            tape=self.tape,
            request=request,
            machine=setting.profile,
            observations=reads.observations,
            decisions=tuple([one.decision for one in reported]),
            near_misses=self._near_misses(reads),
            wanted=wanted,
            kinds=self._survey.kinds,
            totals={
                "recorded": self._recorded_totals(reads, setting),
                "planned": _totals(
                    run, setting.prices, {one.decision.match.root: setting.standing(one.number) for one in taken}
                ),
            },
            elected=setting.elector.solved - solved,
            memo=self._memo,
        )

    def _near_misses(self, reads: Reading) -> tuple[NearMiss, ...]:
        """Lists the near misses that are alive, by root."""
        if self._missed is None or self._missed[0] is not reads.alive:
            found = [miss for miss in self.pool.near_misses if reads.alive[miss.root]]
            self._missed = reads.alive, tuple(sorted(found, key=lambda miss: (miss.root, rank(miss.pattern))))
        return self._missed[1]

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
        for pattern, value in request.off_at:
            if not 0 <= value < count:
                raise ConfigurationError(
                    f"no value %{value} to switch {pattern} off at; the tape has {count} values", code="TP504"
                )
            if (pattern, value) not in self._ends:
                raise ConfigurationError(
                    f"no {pattern} ends at %{value}, so none is switched off there; name the root of a region",
                    code="TP504",
                )
        rows = len(self.tape.observations)
        for what, asked in (("ignore", request.ignore), ("recompute beside a region", request.beside)):
            for row in asked:
                if not 0 <= row < rows:
                    raise ConfigurationError(f"no observation {row} to {what}; the tape has {rows}", code="TP504")
        for row in request.ignore:
            if self.tape.observations[row].kind == "output":
                raise ConfigurationError(
                    f"observation {row} is a returned output and cannot be ignored; change what the program returns",
                    code="TP504",
                )

    @property
    def _ends(self) -> Set[tuple[str, int]]:
        """Gives where patterns matched: the pattern and the root."""
        if self._found is None:
            self._found = frozenset((match.pattern, match.root) for match in self.pool.matches)
        return self._found

    def _setting(self, request: Request) -> Setting:
        off = request.off.intersection(VARIANTS)  # patterns that are off are none of a consumer's business
        key = (request.consumer, request.fidelity, request.machine, request.cost, request.dialect, off)
        setting = self._settings.get(key)
        if setting is None:
            profile = machine(request.machine, calibrated=self.calibrated)
            plain = replace(request, observe=(), ignore=frozenset(), beside=frozenset(), off=off, off_at=frozenset())
            prices = self._recorded_prices(request, profile)
            setting = self._settings[key] = Setting(
                self._survey, self._repeated, self.consumers[request.consumer], plain, profile, prices, self.last
            )
        return setting

    def _recorded_prices(self, request: Request, profile: Machine) -> list[Price]:
        key = (profile.name, request.consumer == "home")
        if key not in self._prices:
            self._prices[key] = price_recorded(self.tape, self._survey.kinds, profile, request.consumer)
        return self._prices[key]

    def _reading(self, request: Request) -> Reading:
        """Reads the tape under a request; what is decided for the other consumers reads as the plan itself."""
        key = (request.observe, request.ignore, request.beside)
        if self._read is None or self._read[0] != key:
            self._read = key, self._survey.asked(request)
        return self._read[1]

    def _recorded_totals(self, reads: Reading, setting: Setting) -> Mapping[str, Number]:
        key = bytes(reads.alive)
        if key not in setting.totals:
            ops = self.tape.ops
            run = [value for value, alive in enumerate(reads.alive) if alive and ops[value].name not in SOURCES]
            setting.totals[key] = _totals(run, setting.prices, {})
        return setting.totals[key]


def _totals(run: Iterable[int], prices: Sequence[Price], taken: Mapping[int, Standing]) -> dict[str, Number]:
    """Adds up what one run holds, in tape order: recorded ops at their own price, matches at their offer's."""
    flops = read = written = calls = 0
    seconds = 0.0
    for unit in run:
        standing = taken.get(unit)
        if standing is None:
            f, _, r, w, made, alone, _ = prices[unit]
        else:
            assert isinstance(standing.offer, Offer)
            f, _, r, w = standing.offer.work
            made, alone = 1, standing.seconds
        seconds += alone
        calls += made
        flops += f
        read += r
        written += w
    return {
        "flops": Number(flops, "flop", "counted"),
        "bytes_read": Number(read, "byte", "counted"),
        "bytes_written": Number(written, "byte", "counted"),
        "calls": Number(calls, "call", "counted"),
        "seconds": Number(seconds, "second", "modelled"),
    }
