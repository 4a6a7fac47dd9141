from __future__ import annotations

import pytest

from tests.core.plan.matches import match
from tests.support.tapes import TapeBuilder
from topos_core.errors import InternalError
from topos_core.matching.match import Match
from topos_core.plan.schedule import Schedule, schedule
from topos_core.tape.tape import Tape


def check(tape: Tape, taken: list[Match], wanted: list[int], order: list[int]) -> Schedule:
    """Checks the order, that every step reads only what exists, and that nothing is dropped early or kept late."""
    plan = schedule(tape, taken, wanted)
    assert [step.value for step in plan.steps] == order
    exists = set(plan.sources)
    for step in plan.steps:
        assert set(step.reads) <= exists
        exists |= set(step.produces)
        assert set(step.frees) <= exists
        exists -= set(step.frees)
    assert exists - set(plan.sources) == {v for v in plan.kept if v not in plan.sources}
    return plan


def test_recorded_ops_run_in_tape_order_and_dead_ones_not_at_all() -> None:
    b = TapeBuilder()
    x = b.input("x", "f32[4]")
    unused = b.input("y", "f32[4]")
    a = b.op("abs", x)
    b.op("neg", unused)
    c = b.op("add", a, a)
    plan = check(b.tape(c), [], [c], [a, c])
    assert plan.sources == (x,)
    assert plan.steps[1].reads == (a,)
    assert plan.steps[1].frees == (a,)


def test_a_match_replaces_its_ops() -> None:
    b = TapeBuilder()
    x = b.input("x", "f32[4]")
    a = b.op("abs", x)
    r = b.op("exp", b.op("neg", a))
    tape = b.tape(r)
    plan = check(tape, [match(tape, "chain", r, {"x": x})], [r], [r])
    assert plan.steps[0].match is not None
    assert plan.steps[0].reads == (x,)


def test_movement_inside_a_match_runs_only_while_an_unclaimed_reader_remains() -> None:
    b = TapeBuilder()
    x = b.input("x", "f32[4,4]")
    w = b.input("w", "f32[4,4]")
    turned = b.op("permute", x, order=(1, 0))
    first = b.op("matmul", turned, w, accumulate="f32")
    second = b.op("matmul", turned, turned, accumulate="f32")
    tape = b.tape(first, second)
    matches = [match(tape, "linear", first, {"x": x, "w": w}), match(tape, "matmul", second, {"x": x})]
    check(tape, matches, [first, second], [first, second])
    check(tape, matches[:1], [first, second], [turned, first, second])
    check(tape, [], [first, second], [turned, first, second])


def test_a_named_result_is_produced_by_its_match_before_its_reader() -> None:
    b = TapeBuilder()
    x = b.input("x", "f32[8,2]")
    mean = b.op("sum", x, axes=(0,), accumulate="f32")
    early = b.op("neg", mean)  # recorded before the root
    root = b.op("sub", x, b.op("broadcast", mean, shape=(8, 2)))
    tape = b.tape(root, early)
    norm = match(tape, "batch_norm_training", root, {"x": x}, named={"mean": (mean,)})
    plan = check(tape, [norm], [root, early], [root, early])
    assert plan.steps[0].produces == (mean, root)


def test_a_match_stands_at_its_root_unless_a_named_result_is_wanted_earlier() -> None:
    b = TapeBuilder()
    x = b.input("x", "f32[8,2]")
    mean = b.op("sum", x, axes=(0,), accumulate="f32")
    other = b.op("exp", x)
    root = b.op("sub", x, b.op("broadcast", mean, shape=(8, 2)))
    tape = b.tape(root, other, mean)
    norm = match(tape, "batch_norm_training", root, {"x": x}, named={"mean": (mean,)})
    check(tape, [norm], [root, other, mean], [other, root])


def test_a_result_that_is_an_input_needs_no_step() -> None:
    b = TapeBuilder()
    x = b.input("x", "f32[4]")
    plan = check(b.tape(x), [], [x], [])
    assert plan.sources == plan.kept == (x,)


def test_a_cycle_of_matches_is_a_bug_of_the_election() -> None:
    b = TapeBuilder()
    x = b.input("x", "f32[8,2]")
    mean = b.op("sum", x, axes=(0,), accumulate="f32")
    scale = b.op("broadcast", b.op("exp", mean), shape=(8, 2))
    root = b.op("mul", b.op("sub", x, b.op("broadcast", mean, shape=(8, 2))), scale)
    tape = b.tape(root)
    norm = match(tape, "batch_norm_training", root, {"x": x, "scale": scale}, named={"mean": (mean,)})
    with pytest.raises(InternalError, match="cycle"):
        schedule(tape, [norm], [root])
