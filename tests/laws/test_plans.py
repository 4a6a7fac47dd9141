"""What holds of every plan, on random tapes with random matches, readers and observations."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from tests.core.plan.consumers import planner
from tests.core.plan.matches import match
from tests.laws.outbidding import check_outbid
from tests.support.tapes import TapeBuilder
from topos_core.cost.work import Work
from topos_core.kernels.kernel import Decline, Offer
from topos_core.matching.match import Match
from topos_core.matching.order import LAST
from topos_core.plan.decision import Decision
from topos_core.plan.plan import PlanData
from topos_core.plan.reading import boundary
from topos_core.plan.request import Request
from topos_core.tape.tape import Tape

PATTERNS = ("convolution", "linear", "softmax", "matmul", "elementwise_chain", "batch_norm_training")


def random_tape(rng: random.Random) -> Tape:
    b = TapeBuilder()
    values = [b.input("x", "f32[8,8]"), b.parameter("w", "f32[8,8]")]
    for _ in range(rng.randint(4, 24)):
        name = rng.choice(("exp", "neg", "add", "mul", "matmul", "permute", "constant"))
        recent = values[-6:]
        if name == "constant":
            values.append(b.constant(1.0, "f32[8,8]"))
        elif name == "permute":
            values.append(b.op(name, rng.choice(recent), order=(1, 0)))
        elif name == "matmul":
            values.append(b.op(name, rng.choice(recent), rng.choice(values), accumulate="f32"))
        elif name in ("add", "mul"):
            values.append(b.op(name, rng.choice(recent), rng.choice(values)))
        else:
            values.append(b.op(name, rng.choice(recent)))
    for _ in range(rng.randint(0, 3)):
        b.observe(rng.choice(values), kind=rng.choice(("observe", "print", "hook")))
    return b.tape(*rng.sample(values[-5:], rng.randint(1, 2)))


def random_match(rng: random.Random, tape: Tape) -> Match | None:
    """Cuts a random connected piece above a random root; a part of its inner values may be named results."""
    computing = [v for v, op in enumerate(tape.ops) if op.operands and op.name != "permute"]
    if not computing:
        return None
    root = rng.choice(computing)
    inside: set[int] = set()
    edge = list(tape.ops[root].operands)
    while edge and len(inside) < rng.randint(0, 6):
        value = edge.pop(rng.randrange(len(edge)))
        if tape.ops[value].name in ("input", "parameter") or value in inside:
            continue
        inside.add(value)
        edge += tape.ops[value].operands
    pattern = rng.choice(PATTERNS)
    named = {}
    candidates = [v for v in inside if tape.ops[v].operands]
    if pattern == "batch_norm_training" and candidates:
        named = {"mean": (rng.choice(candidates),)}
        inside -= {named["mean"][0]}
    bound = {o for v in (*inside, root, *named.get("mean", ())) for o in tape.ops[v].operands}
    bound -= inside | {root} | set(named.get("mean", ()))
    return match(tape, pattern, root, {f"b{k}": v for k, v in enumerate(sorted(bound))}, named, inside)


def random_pool(rng: random.Random, tape: Tape) -> list[Match]:
    found = [random_match(rng, tape) for _ in range(rng.randint(1, 14))]
    return list({m.id: m for m in found if m is not None}.values())


def random_request(rng: random.Random, tape: Tape) -> Request:
    readers = [k for k, o in enumerate(tape.observations) if o.kind != "output"]
    return Request(
        consumer=rng.choice(("home", "stablehlo")),
        machine="reference",
        cost=rng.choice(("model", "model", "always")),
        observe=tuple(rng.sample(range(len(tape.ops)), rng.randint(0, 1))),
        ignore=frozenset(rng.sample(readers, rng.randint(0, len(readers)))),
        off=frozenset(rng.sample(PATTERNS, rng.choice((0, 0, 1)))),
    )


def random_answer(rng: random.Random) -> Offer | Decline:
    if rng.random() < 0.15:
        return Decline(rng.choice(("TP205", "TP206", "TP207", "TP209")), "word", "no")
    return Offer("k", Work(flops=rng.choice((0, 100_000, 2_000_000))), exact=True)


def observed_values(plan: PlanData) -> set[int]:
    return {o.value for row, o in enumerate(plan.observations) if row not in plan.request.ignore}


def check_plan(tape: Tape, pool: list[Match], plan: PlanData) -> None:
    users = tape.users()
    wanted = {*tape.results, *observed_values(plan)}
    taken = [d.match for d in plan.taken]

    # Taken regions own their computing ops alone, and nobody reads what they never make.
    claims = [claim for m in taken for claim in boundary(tape, users, m).claims]
    assert len(claims) == len(set(claims))
    alive = _alive(tape, wanted)
    for m in taken:
        border = boundary(tape, users, m)
        assert not wanted & {v for v in m.interior if tape.ops[v].name != "constant"}
        assert not any(alive[u] for _, u in border.outside), m.id

    # The schedule makes what is wanted, reads only what exists, and never makes a taken computing interior.
    exists = set(plan.schedule.sources)
    for step in plan.schedule.steps:
        assert set(step.reads) <= exists
        exists |= set(step.produces)
        exists -= set(step.frees)
    assert wanted <= exists
    made = {v for step in plan.schedule.steps for v in step.produces}
    assert not made & {v for m in taken for v in m.computing - m.produced}

    # Every live match is decided once, is named inside a decided one, or says nothing that a larger one does not say; those
    # elected last say nothing about ops that others speak of.
    decided = {d.match.id: d for d in plan.decisions}
    assert len(decided) == len(plan.decisions)
    named = {name for d in plan.decisions for name in d.contains}
    for m in pool:
        if alive[m.root] and m.id not in decided and m.id not in named:
            mine = boundary(tape, users, m).claims
            others = [boundary(tape, users, d.match).claims for d in plan.decisions]
            assert any(mine <= other or (m.pattern in LAST and mine & other) for other in others), m.id

    for d in plan.decisions:
        check_decision(plan, decided, d)
        if d.outbid is not None and d.outbid.by != "cycle" and not d.would_block:
            check_outbid(tape, users, plan, d)


def check_decision(plan: PlanData, decided: dict[str, Decision], d: Decision) -> None:
    assert (d.code is None) == (d.verdict == "taken")
    assert (d.code == "TP101") == (d.verdict == "blocked")
    assert (d.winner is not None) == (d.outbid is not None) == (d.code == "TP204")
    assert bool(d.readers) == (d.code == "TP203")
    assert bool(d.observations) == (d.verdict == "blocked")
    assert d.parent is None or decided[d.parent].verdict == "blocked"
    assert all(number.unit and number.basis for number in d.numbers.values())
    if d.verdict == "blocked":
        values = {plan.observations[row].value for row in d.observations}
        assert {path[-1] for path in d.paths} == values
        assert all(path[0] in d.match.interior for path in d.paths)
        by_cost = plan.request.consumer == "home" and plan.request.cost == "model"
        assert not by_cost or d.numbers["price"].value > -1e-12
        assert d.nearest_free is None or d.nearest_free not in d.match.interior
    if d.verdict == "taken" and plan.request.consumer == "home" and plan.request.cost == "model":
        assert d.numbers["benefit"].value > 0


def _alive(tape: Tape, wanted: set[int]) -> list[bool]:
    alive = [v in wanted for v in range(len(tape.ops))]
    for v in reversed(range(len(tape.ops))):
        if alive[v]:
            for o in tape.ops[v].operands:
                alive[o] = True
    return alive


@pytest.mark.parametrize("seed", range(12))
def test_every_random_plan_keeps_the_rules(seed: int) -> None:
    rng = random.Random(seed)
    verdicts: set[tuple[str, str | None]] = set()
    for _ in range(120):
        tape = random_tape(rng)
        pool = random_pool(rng, tape)
        if not pool:
            continue
        answers = {f"{m.pattern}@{m.root}": random_answer(rng) for m in pool}
        p = planner(tape, pool, answers)
        for _ in range(2):
            request = random_request(rng, tape)
            plan = p.plan(request)
            check_plan(tape, pool, plan)
            # What an earlier request left in the planner's memory changes nothing.
            fresh = planner(tape, pool, answers).plan(request)
            assert replace(plan, elected=0) == replace(fresh, elected=0)
            verdicts |= {(d.verdict, d.code) for d in plan.decisions}
    assert {code for _, code in verdicts} >= {None, "TP101", "TP202", "TP203", "TP204", "TP206", "TP208"}
