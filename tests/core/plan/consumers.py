"""Consumers by hand: what they answer is data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from topos_core.cost.work import Work
from topos_core.kernels.kernel import Decline, Offer, Terms
from topos_core.matching.match import Match, NearMiss
from topos_core.plan.planner import Planner
from topos_core.tape.tape import Tape

FREE = Offer("test kernel", Work(), exact=True)


@dataclass(frozen=True, slots=True)
class Answers:
    """Answers by `pattern@root`, else by pattern, else with a kernel that costs its call."""

    name: str = "home"
    answers: Mapping[str, Offer | Decline] = field(default_factory=dict)

    def concerns(self, pattern: str, /) -> bool:
        return True

    def offer(self, tape: Tape, match: Match, terms: Terms, /) -> Offer | Decline:
        key = f"{match.pattern}@{match.root}"
        return self.answers.get(key) or self.answers.get(match.pattern) or FREE


@dataclass(frozen=True, slots=True)
class Found:
    """A pool by hand."""

    matches: Sequence[Match]
    near_misses: Sequence[NearMiss] = ()
    repeats: Sequence[int] = ()


def planner(tape: Tape, matches: Sequence[Match], answers: Mapping[str, Offer | Decline] | None = None) -> Planner:
    """Gives a planner whose two consumers answer alike."""
    consumers = {name: Answers(name, answers or {}) for name in ("home", "stablehlo")}
    return Planner(tape, Found(matches), consumers)
