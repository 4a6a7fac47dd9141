"""A declined region's `flip` is true: with that one term 1 % past its break-even the same planner takes it, before that not."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import pytest

from tests.laws.repeating import layered
from topos_core import api
from topos_core.kernels.kernel import Consumer, Decline, Offer, Terms
from topos_core.matching.match import Match
from topos_core.plan.decision import Decision
from topos_core.plan.planner import Planner
from topos_core.plan.request import Request
from topos_core.recording.trace import trace
from topos_core.tape.tape import Tape

SEEDS = (101, 103, 107, 109)
MANY = range(200, 300)
PRODUCTS = ((1, 768, 768), (256, 768, 768), (512, 256, 1024), (512, 512, 512))


@dataclass(frozen=True, slots=True)
class Changed:
    """A consumer whose offer for one match differs in one field."""

    consumer: Consumer
    at: str
    field: str
    value: float

    @property
    def name(self) -> str:
        return self.consumer.name

    def concerns(self, pattern: str, /) -> bool:
        return self.consumer.concerns(pattern)

    def offer(self, tape: Tape, match: Match, terms: Terms, /) -> Offer | Decline:
        offer = self.consumer.offer(tape, match, terms)
        return offer._replace(**{self.field: self.value}) if match.id == self.at else offer


def changed(planner: Planner, d: Decision, by: float) -> dict[str, Decision]:
    """Decides again with a declined match's flipping term at its break-even times `by`."""
    assert d.flip is not None
    assert d.offer is not None
    ratio = d.flip.at.value / d.flip.now.value * by
    name = {"efficiency": "efficiency", "start": "calls"}[d.flip.of]
    home = Changed(planner.consumers["home"], d.match.id, name, getattr(d.offer, name) * ratio)
    alone = Planner(planner.tape, replace(planner.pool, repeats=()), {**planner.consumers, "home": home}, planner.last)
    return {one.match.id: one for one in alone.decide(Request(machine="reference")).decisions}


def flips(tape: Tape, most: int = 12) -> Counter[Any]:
    """Checks up to so many of a tape's flips; counts them by what they name."""
    planner = api.planner(tape)
    decided = planner.decide(Request(machine="reference")).decisions
    assert all(d.flip is None for d in decided if d.code != "TP202")
    told = [d for d in decided if d.flip is not None]
    for d in told[:: max(1, len(told) // most)]:
        faster, slower = (1.01, 0.99) if d.flip.of == "efficiency" else (0.99, 1.01)
        assert changed(planner, d, faster)[d.match.id].verdict == "taken", d
        again = changed(planner, d, slower)[d.match.id]
        assert (again.verdict, again.code) == ("declined", "TP202"), d
    return Counter(d.flip.of for d in told if d.flip is not None)


def test_random_layers_flip_where_they_say():
    assert sum(flips(layered(seed)).total() for seed in SEEDS) > len(SEEDS)


def test_products_flip_where_they_say():
    told: Counter[Any] = Counter()
    for rows, inner, columns in PRODUCTS:
        told += flips(trace(lambda x, w: x @ w, x=f"f32[{rows},{inner}]", w=f"f32[{inner},{columns}]"))
    assert told["efficiency"] > 1


@pytest.mark.conformance
def test_many_random_layers_flip_where_they_say():
    assert sum(flips(layered(seed)).total() for seed in MANY) > len(MANY)
