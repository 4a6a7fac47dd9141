"""The plan: every decision of one request, the schedule and the totals. Immutable; run, emission and document read it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from topos_core.cost.machine import Machine
from topos_core.cost.memory import Placement
from topos_core.matching.match import NearMiss
from topos_core.plan.arena import Arena, lay_out
from topos_core.plan.decision import Decision, Number
from topos_core.plan.folding import folded
from topos_core.plan.kinds import Kinds
from topos_core.plan.liveness import Liveness, liveness
from topos_core.plan.request import Request
from topos_core.plan.schedule import Schedule, schedule
from topos_core.tape.tape import Observation, Tape

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Decided:
    """One request's decisions and near misses, and nothing of how they would run."""

    request: Request
    decisions: tuple[Decision, ...]
    near_misses: tuple[NearMiss, ...] = ()


@dataclass(frozen=True, slots=True)
class PlanData:
    """One request, decided. Its schedules and curves are worked out when somebody first reads them: a what-if reads neither.

    Args:
        tape: The spec; nothing here changes it.
        request: What was asked.
        machine: The profile that the predictions were made with.
        observations: The tape's rows, then the request's own; a row's index is its id, `request.ignore` names some.
        decisions: One per reported match, by root; matches inside a taken one are in its `contains` instead.
        near_misses: Where a pattern almost matched, by root.
        wanted: Values that must exist at the end of a run: results and observed values.
        kinds: Ops that lie and cost alike when all run as recorded.
        totals: `recorded` and `planned` figures of a whole run, by name.
        elected: How many conflict components this plan had to solve; 0 where an earlier plan had solved them all.
        memo: What was worked out about the tape and its pool alone (digests, fingerprints), shared by a planner's plans.
        runs: What was worked out of this plan's own runs.
    """

    tape: Tape
    request: Request
    machine: Machine
    observations: tuple[Observation, ...]
    decisions: tuple[Decision, ...]
    near_misses: tuple[NearMiss, ...]
    wanted: tuple[int, ...]
    kinds: Kinds
    totals: Mapping[str, Mapping[str, Number]]
    elected: int = 0
    memo: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False)
    runs: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def places(self) -> Sequence[Placement]:
        """Says where every value lies when all ops run as recorded."""
        return self.once("places", self.kinds.places)

    @property
    def schedule(self) -> Schedule:
        """Gives what runs, in order."""
        return self._run("schedule", lambda: schedule(self.tape, [d.match for d in self.taken], self.wanted))

    @property
    def liveness(self) -> Liveness:
        """Gives live bytes along the schedule."""
        offers = {d.match.root: d.offer for d in self.taken if d.offer is not None}
        return self._run("liveness", lambda: liveness(self.tape, self.schedule, offers, self.places, self.folded))

    @property
    def folded(self) -> frozenset[int]:
        """Collects the recorded values of the schedule that are computed once, before the first run."""
        return self._run("folded", lambda: folded(self.tape, self.schedule, self.places))

    @property
    def arena(self) -> Arena:
        """Gives the layout of a run's memory."""
        return self._run("arena", lambda: lay_out(self.liveness.buffers))

    @property
    def recorded_schedule(self) -> Schedule:
        """Gives what would run if nothing were taken."""
        return self._run("recorded schedule", lambda: schedule(self.tape, [], self.wanted))

    @property
    def recorded_liveness(self) -> Liveness:
        """Gives live bytes along that."""
        return self._run(
            "recorded liveness", lambda: liveness(self.tape, self.recorded_schedule, {}, self.places, in_place=False)
        )

    def _run(self, key: str, make: Callable[[], T]) -> T:
        if key not in self.runs:
            self.runs[key] = make()
        found: T = self.runs[key]
        return found

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """Gives what `make` gives, worked out once per tape and pool."""
        if key not in self.memo:
            self.memo[key] = make()
        found: T = self.memo[key]
        return found

    def with_verdict(self, verdict: str) -> tuple[Decision, ...]:
        """Lists the decisions with one verdict, by root."""
        return tuple(decision for decision in self.decisions if decision.verdict == verdict)

    @property
    def taken(self) -> tuple[Decision, ...]:
        """Lists what runs in place of recorded ops."""
        return self.with_verdict("taken")

    @property
    def observed(self) -> tuple[int, ...]:
        """Lists observed values that are no results, ascending."""
        results = set(self.tape.results)
        rows = (o.value for k, o in enumerate(self.observations) if k not in self.request.ignore)
        return tuple(sorted({value for value in rows if value not in results}))
