"""What-if tells what planning anew would tell: a planner that has planned before gives the documents of one that has not."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.laws.repeating import layered
from topos_core import api
from topos_core.document.changes import PLAN, REST, changes
from topos_core.plan.request import Request
from topos_core.tape.tape import Tape

SEEDS = (0, 4, 9)
MANY = range(10, 70)
ASKED = 6


def document(planner: Any, request: Request) -> dict[str, Any]:
    return api.Plan(planner.plan(request), planner, {}).document(target="model.py:program")


def requests(rng: random.Random, tape: Tape, patterns: list[str]) -> list[Request]:
    """Draws requests one after the other, each as the last with one thing changed, and now and then the first again."""
    request = first = Request(machine="reference")
    computed = [value for value, op in enumerate(tape.ops) if op.operands]
    asked = []
    for _ in range(ASKED):
        observe, off = request.observe, request.off
        change = rng.randrange(5)
        if change == 0:
            request = first
        elif change == 1 and patterns:
            request = Request(machine="reference", observe=observe, off=off ^ {rng.choice(patterns)})
        elif change == 2:
            request = Request(machine="reference", observe=observe, off=off, cost=rng.choice(("model", "always")))
        elif change == 3 and observe:
            request = Request(machine="reference", observe=observe[1:], off=off, cost=request.cost)
        else:
            request = Request(
                machine="reference", observe=(*observe, rng.choice(computed)), off=off, cost=request.cost,
                consumer=rng.choice(("home", "home", "stablehlo")),
            )  # fmt: skip
        asked.append(request)
    return asked


def applied(base: dict[str, Any], delta: dict[str, Any]) -> dict[str, Any]:
    """Puts what a what-if carries into the document that it starts from."""
    regions = {region["id"]: region for region in base["regions"]}
    for name in delta["removed"]:
        del regions[name]
    for region in delta["changed"]:
        regions[region["id"]] = region
    order = delta["order"] or list(regions)
    told = (*PLAN, *REST, "liveness")
    return {**base, **{name: delta[name] for name in told}, "regions": [regions[name] for name in order]}


def agrees(seed: int) -> None:
    rng, tape = random.Random(seed), layered(seed)
    planner = api.planner(tape)
    base = document(planner, Request(machine="reference"))
    fresh_base = document(api.planner(tape), Request(machine="reference"))
    for request in requests(rng, tape, sorted({match.pattern for match in planner.pool.matches})):
        fresh = document(api.planner(tape), request)
        assert document(planner, request) == fresh
        assert applied(fresh_base, changes(base, document(planner, request))) == fresh


@pytest.mark.parametrize("seed", SEEDS)
def test_a_planner_that_has_planned_before_tells_what_a_fresh_one_tells(seed):
    agrees(seed)


@pytest.mark.conformance
@pytest.mark.parametrize("seed", MANY)
def test_many_planners_that_have_planned_before_tell_what_fresh_ones_tell(seed):
    agrees(seed)
