from __future__ import annotations

import numpy as np
import pytest

import topos_core as tp
from tests.core.patterns.check import agrees, searched
from topos_core import nn
from topos_core.matching.certificate import certify
from topos_core.matching.chains import LIMIT

X = {"x": "f32[4,6]"}


def chains(function, specs):
    """Gives the chains of a program by their roots' op names and sizes; every one is proved and computes what was recorded."""
    tape, pool = searched(function, specs)
    found = [match for match in pool.matches if match.pattern == "elementwise_chain"]
    for match in found:
        agrees(tape, match)
        assert certify(tape, match).answer == "true", match.id
    return [(tape.ops[match.root].name, len(match.computing)) for match in found]


def test_the_largest_group_is_found_whatever_its_shape():
    def diamond(x):
        y = x * 2
        return (y + 1) / (y - 1)

    assert chains(diamond, X) == [("div", 4)]


def test_a_value_that_is_read_elsewhere_ends_a_group():
    def shared(x):
        y = np.tanh(x) * 2
        return (y + 1) * 3, y.sum(0)

    assert chains(shared, X) == [("mul", 2), ("mul", 2)]


def test_a_returned_value_ends_a_group():
    assert chains(lambda x: [y := np.tanh(x) * 2, (y + 1) * 3], X) == [("mul", 2), ("mul", 2)]


@pytest.mark.parametrize("between", [lambda y: y[:, None, :], lambda y: y.reshape(4, 1, 6, 1), lambda y: y[None]])
def test_axes_of_one_come_and_go(between):
    assert chains(lambda x: between(np.tanh(x) * 2) + 1, X) == [("add", 3)]


@pytest.mark.parametrize("between", [lambda y: y.reshape(24), lambda y: y.T, lambda y: y[:, ::-1], lambda y: y[:, :3]])
def test_other_movement_ends_a_group(between):
    assert chains(lambda x: np.sqrt(between(np.tanh(x) * 2) + 1), X) == [("mul", 2), ("sqrt", 2)]


def test_an_operand_may_repeat_or_have_its_axes_in_another_order():
    def program(x, a, b, c):
        return (x + a) * b - c.T

    specs = {**X, "a": "f32[6]", "b": "f32[4,1]", "c": "f32[6,4]"}
    assert chains(program, specs) == [("sub", 3)]


def test_a_square_operand_read_both_ways_is_two_operands():
    tape, pool = searched(lambda x: (x + x.T) * 2, {"x": "f32[5,5]"})
    (match,) = (match for match in pool.matches if match.pattern == "elementwise_chain")
    assert sorted(match.bindings.values()) == [0, 0]
    agrees(tape, match)


def test_a_member_read_in_another_order_is_no_member():
    def program(x):
        y = np.tanh(x) * 2
        return (y + y.T) * 3

    assert chains(program, {"x": "f32[5,5]"}) == [("mul", 2), ("mul", 2)]


def test_what_another_pattern_has_is_left_to_it():
    def program(x):
        return nn.gelu(x) * 2 + 1

    assert chains(program, X) == [("add", 2)]


def test_a_long_chain_is_cut():
    def long(x):
        for _ in range(LIMIT):
            x = x * 1.01 + 0.5
        return x

    assert chains(long, X) == [("add", LIMIT), ("add", LIMIT)]


def test_ops_of_constants_alone_are_no_chain():
    assert chains(lambda x: x[0], X) == []


def test_dead_ops_are_in_no_chain():
    def program(x):
        _ = np.tanh(x) * 2
        return np.sqrt(x) * 3

    assert chains(program, X) == [("mul", 2)]


def observed(x):
    y = np.maximum(x * 2 + 1, 0) * x
    tp.observe(y, "y")
    return np.sqrt(y + 1)


def test_an_observation_blocks_and_the_part_before_it_runs_alone():
    plan = tp.plan(tp.trace(observed, x="f32[500,600]"), machine="reference")
    assert [(d.verdict, len(d.match.computing), d.code) for d in plan.data.decisions] == [
        ("taken", 4, None), ("blocked", 6, "TP101"),
    ]  # fmt: skip
    free = plan.what_if(ignore=["y"])
    assert [(d.verdict, len(d.match.computing)) for d in free.data.decisions] == [("taken", 6)]


def test_a_small_chain_is_left_as_recorded_and_told_in_one_line():
    plan = tp.plan(tp.trace(lambda x: np.tanh(x) * 2, **X), machine="reference")
    assert [(d.verdict, d.code) for d in plan.data.decisions] == [("declined", "TP202")]
    assert "left      as recorded: elementwise chain, since no kernel is predicted to be faster" in plan.describe()
    assert "TP202" not in plan.describe()


def test_a_compiler_groups_such_ops_itself():
    plan = tp.plan(tp.trace(lambda x: np.tanh(x) * 2, **X), machine="reference", consumer="stablehlo", cost="always")
    assert plan.data.decisions == ()
    assert "stablehlo" not in tp.plan(tp.trace(lambda x: np.tanh(x) * 2, **X), cost="always").describe()
