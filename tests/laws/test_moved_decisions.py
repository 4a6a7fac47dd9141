"""What a plan tells of repeated blocks is what a planner tells that prices, offers, elects and decides each block by itself."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from benchmarks.networks import recorded
from tests.laws.repeating import layered
from topos_core import api
from topos_core.plan.planner import Planner
from topos_core.plan.repeated import repeated
from topos_core.plan.request import Request
from topos_core.plan.survey import Survey
from topos_core.tape.tape import Tape

SEEDS = range(100, 110)
MANY = range(200, 700)


@pytest.fixture(autouse=True)
def short_programs_count_too(monkeypatch):
    monkeypatch.setattr("topos_core.matching.shortened.WORTH", 8)


def drawn(rng: random.Random, planner: Planner) -> Request:
    """Draws a request that observes, ignores or switches off something, mostly in one of the repeats."""
    tape, pool = planner.tape, planner.pool
    repeats = [k for k, like in enumerate(pool.repeats) if like != k] or list(range(len(pool.matches)))
    inner = [value for k in repeats for value in pool.matches[k].interior] or list(range(len(tape.ops)))
    others = [row for row, observation in enumerate(tape.observations) if observation.kind != "output"]
    request = Request(
        machine="reference",
        fidelity=rng.choice(("fast", "fast", "exact")),
        cost=rng.choice(("model", "model", "always")),
        consumer=rng.choice(("home", "home", "stablehlo")),
        dialect=rng.choice(("portable", "xla")),
    )
    for change in rng.sample(("observe", "ignore", "off", "off_at", "variant"), rng.choice((0, 1, 1, 2))):
        match change:
            case "observe":
                chosen = rng.sample(inner, min(len(inner), rng.choice((1, 1, 2))))
                request = replace(request, observe=tuple(dict.fromkeys((*chosen, rng.randrange(len(tape.ops))))))
            case "ignore" if others:
                request = replace(request, ignore=frozenset(rng.sample(others, 1)))
            case "off" if repeats:
                request = replace(request, off=frozenset({pool.matches[rng.choice(repeats)].pattern}))
            case "off_at" if repeats:
                found = pool.matches[rng.choice(repeats)]
                request = replace(request, off_at=frozenset({(found.pattern, found.root)}))
            case "variant":
                request = replace(request, off=request.off | {"winograd"})
    return request


def document(planner: Planner, request: Request) -> tuple[Any, dict[str, Any]]:
    plan = planner.plan(request)
    return replace(plan, elected=0), api.Plan(plan, planner, {}).document(target="model.py:program", curve=False)


def agrees(tape: Tape, seed: int, asked: int) -> int:
    """Compares some plans and documents; gives how many families were told as others are."""
    rng, planner = random.Random(seed), api.planner(tape)
    alone = replace(planner.pool, repeats=())
    for _ in range(asked):
        request = drawn(rng, planner)
        each_by_itself = Planner(tape, alone, planner.consumers, planner.last)
        assert document(planner, request) == document(each_by_itself, request), request
    return len(repeated(Survey(tape, planner.pool)))


def test_random_layers_are_decided_as_if_each_were_decided_by_itself():
    moved = [agrees(layered(seed), seed, asked=3) for seed in SEEDS]
    assert sum(map(bool, moved)) >= len(SEEDS) // 4, f"families that repeat others: {moved}"


@pytest.mark.parametrize("network", ["transformer", "resnet"])
def test_networks_are_decided_as_if_each_block_were_decided_by_itself(network):
    assert agrees(recorded(network, 2500, repeats=True), 7, asked=3) > 5


@pytest.mark.conformance
def test_many_random_layers_are_decided_as_if_each_were_decided_by_itself():
    moved = [agrees(layered(seed), seed, asked=6) for seed in MANY]
    assert sum(map(bool, moved)) >= len(MANY) // 4
