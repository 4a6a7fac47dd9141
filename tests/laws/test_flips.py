"""Where a declined region says that it flips, one term 1 % past its break-even takes it; where it says why not, no term does."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, assert_never

import pytest

from tests.laws.repeating import layered
from topos_core import api
from topos_core.kernels.kernel import Consumer, Decline, Offer, Terms
from topos_core.matching.match import Match
from topos_core.plan.decision import Decision, Firm, Flip
from topos_core.plan.planner import Planner
from topos_core.plan.reading import claims_of
from topos_core.plan.request import Request
from topos_core.recording.trace import trace
from topos_core.tape.tape import Tape

SEEDS = (101, 103, 107, 109)
UNLIKE = (107, 207, 240)
MANY = range(200, 300)
PRODUCTS = ((1, 768, 768), (256, 768, 768), (512, 256, 1024), (512, 512, 512))


@dataclass(frozen=True, slots=True)
class Changed:
    """A consumer whose offers are changed."""

    consumer: Consumer
    change: Callable[[Match, Offer], Offer]

    @property
    def name(self) -> str:
        return self.consumer.name

    def concerns(self, pattern: str, /) -> bool:
        return self.consumer.concerns(pattern)

    def offer(self, tape: Tape, match: Match, terms: Terms, /) -> Offer | Decline:
        offer = self.consumer.offer(tape, match, terms)
        return self.change(match, offer) if isinstance(offer, Offer) else offer


@dataclass(slots=True)
class Case:
    """A tape with offers, decided; and again with one offer changed."""

    tape: Tape
    change: Callable[[Match, Offer], Offer] = lambda _, offer: offer
    planner: Planner = field(init=False)
    decided: Mapping[str, Decision] = field(init=False)

    def __post_init__(self) -> None:
        self.planner = api.planner(self.tape)
        self.decided = self._decide(self.change)

    def again(self, d: Decision, **terms: float) -> str:
        """Decides again with terms of one match's offer changed; gives its verdict, or that a taken one contains it."""

        def change(match: Match, offer: Offer) -> Offer:
            offer = self.change(match, offer)
            return offer._replace(**terms) if match.id == d.match.id else offer

        found = self._decide(change).get(d.match.id)
        return found.verdict if found is not None else "contained"

    def _decide(self, change: Callable[[Match, Offer], Offer]) -> Mapping[str, Decision]:
        planner = self.planner
        home = Changed(planner.consumers["home"], change)
        alone = Planner(
            planner.tape, replace(planner.pool, repeats=()), {**planner.consumers, "home": home}, planner.last
        )
        return {one.match.id: one for one in alone.decide(Request(machine="reference")).decisions}


def unlike(seed: int) -> Callable[[Match, Offer], Offer]:
    """Makes kernels of all qualities, so that regions that pay and such that do not claim the same ops."""

    def change(match: Match, offer: Offer) -> Offer:
        rng = random.Random(f"{seed} {match.id}")
        return offer._replace(
            efficiency=rng.choice((1e-5, 1e-4, 1e-3, 0.5, 0.9)), calls=rng.choice((0.1, 1.0, 1.0, 3.0, 8.0))
        )

    return change


def check(case: Case, d: Decision) -> str:
    """Checks what one decision tells; names it."""
    assert d.offer is not None
    match d.flip:
        case Flip(of, now, at):
            name = {"efficiency": "efficiency", "start": "calls"}[of]
            better, worse = (1.01, 0.99) if of == "efficiency" else (0.99, 1.01)
            even = getattr(d.offer, name) * at.value / now.value
            assert case.again(d, **{name: even * better}) == "taken", d
            assert case.again(d, **{name: even * worse}) in ("declined", "contained"), d
            return of
        case Firm(why):
            assert case.again(d, efficiency=1.0) != "taken", d
            assert case.again(d, calls=0.0) != "taken", d
            match why:
                case "slow":
                    whole, started, before = (figure.value for figure in d.flip.numbers)
                    assert min(whole, started) >= before
                case "observed":
                    assert case.again(d, efficiency=1.0, calls=0.0) != "taken"
                case "rival":
                    winner = case.decided[d.flip.rival or ""]
                    assert winner.verdict == "taken"
                    assert claims_of(winner.match) & claims_of(d.match)
                    if d.flip.numbers:
                        needed, most = (figure.value for figure in d.flip.numbers)
                        assert most <= needed
                case "itself" | "cycle":
                    pass
                case _:
                    assert_never(why)
            return why
        case None:
            raise AssertionError(f"nothing is told of {d}")
        case _:
            assert_never(d.flip)


def told(case: Case, most: int = 12) -> Counter[Any]:
    """Checks up to so many of a case's declines by cost of each kind; counts them by what they name."""
    declined = [d for d in case.decided.values() if d.code == "TP202"]
    assert all(d.flip is None for d in case.decided.values() if d.code != "TP202")
    kinds: dict[str, list[Decision]] = {}
    for d in declined:
        assert d.flip is not None
        kinds.setdefault(d.flip.of if isinstance(d.flip, Flip) else d.flip.why, []).append(d)
    for kind, of in kinds.items():
        for d in of[:: max(1, len(of) // most)]:
            assert check(case, d) == kind
    return Counter({kind: len(of) for kind, of in kinds.items()})


def test_random_layers_flip_where_they_say():
    assert sum(told(Case(layered(seed))).total() for seed in SEEDS) > len(SEEDS)


def test_kernels_of_all_qualities_flip_where_they_say_and_nowhere_else():
    found: Counter[Any] = Counter()
    for seed in UNLIKE:
        found += told(Case(layered(seed), unlike(seed)), most=4)
    assert min(found[kind] for kind in ("efficiency", "start", "slow", "rival", "observed")) > 0, found


def test_products_flip_where_they_say():
    found: Counter[Any] = Counter()
    for rows, inner, columns in PRODUCTS:
        found += told(Case(trace(lambda x, w: x @ w, x=f"f32[{rows},{inner}]", w=f"f32[{inner},{columns}]")))
    assert found["efficiency"] > 1


@pytest.mark.conformance
def test_many_random_layers_flip_where_they_say():
    assert sum(told(Case(layered(seed))).total() for seed in MANY) > len(MANY)


@pytest.mark.conformance
def test_many_kernels_of_all_qualities_flip_where_they_say_and_nowhere_else():
    assert sum(told(Case(layered(seed), unlike(seed)), most=4).total() for seed in MANY) > len(MANY)
