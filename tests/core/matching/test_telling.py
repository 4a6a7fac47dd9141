"""A near miss points at the difference, not only at the end of what almost was a pattern."""

from __future__ import annotations

import numpy as np
import pytest

from tests.core.patterns.check import searched
from topos_core.matching.catalog import patterns
from topos_core.matching.declared import DIFFERENCE
from topos_core.matching.template import templates

X = {"x": "f64[4,6]"}


def outside(x):
    centred = x - x.mean(-1, keepdims=True)
    return centred / (np.sqrt((centred * centred).mean(-1, keepdims=True)) + 1e-5)


def one_pass(x):
    mean = x.mean(-1, keepdims=True)
    return (x - mean) / np.sqrt((x * x).mean(-1, keepdims=True) - mean * mean + 1e-5)


def sample(x):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred * centred).sum(-1, keepdims=True) / 5 + 1e-5)


def guarded(x):
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / (powers.sum(-1, keepdims=True) + 1e-6)


@pytest.mark.parametrize(
    ("program", "code", "reads"),
    [
        (outside, "eps-outside-root", ["add", "sqrt"]),
        (one_pass, "one-pass-variance", ["add", "sub"]),
        (sample, "divisor", ["sum", "mul"]),
        (guarded, "eps-in-sum", ["add", "sum"]),
    ],
)
def test_a_near_miss_points_at_the_first_difference(program, code, reads):
    tape, pool = searched(program, X)
    (miss,) = pool.near_misses
    seen, at = [], miss.at
    for _ in reads:
        while tape.ops[at].name in ("reshape", "broadcast"):
            (at,) = tape.ops[at].operands
        seen.append(tape.ops[at].name)
        at = tape.ops[at].operands[0]
    assert (miss.code, miss.root > miss.at, seen) == (code, True, reads)


def by_tanh(x, half=0.5, inside=0.7978845608028654, cubed=0.044715):
    return half * x * (1 + np.tanh(inside * (x + cubed * x**3)))


@pytest.mark.parametrize("numbers", [{"half": 0.4}, {"inside": 0.79}, {"cubed": 0.0447}], ids=str)
def test_another_number_is_told_where_it_is_read(numbers):
    tape, pool = searched(lambda x: by_tanh(x, **numbers), X)
    (miss,) = pool.near_misses
    (number,) = numbers.values()
    read = [tape.ops[operand] for operand in tape.ops[miss.at].operands]
    read = [tape.ops[op.operands[0]] if op.name == "broadcast" else op for op in read]
    assert [float(op.attributes["value"]) for op in read if op.name == "constant"] == [number]
    assert miss.found == str(number)


def test_a_number_that_is_written_in_two_is_told_at_the_function_that_holds_it():
    tape, pool = searched(lambda x: 0.5 * x * (1 + np.tanh(0.395 * (2.0 * (x + 0.044715 * x**3)))), X)
    (miss,) = pool.near_misses
    assert (tape.ops[miss.at].name, miss.found) == ("tanh", "0.79")


def weights(scores):
    powers = np.exp(scores)
    return powers / powers.sum(-1, keepdims=True)


def of_all(q, k, v):
    scores = q @ k.T * 0.35
    return weights(scores - scores.max()) @ v


def of_all_before_scale(q, k, v):
    scores = q @ k.T
    return weights(0.35 * (scores - scores.max())) @ v


def of_all_masked(q, k, v):
    scores = q @ k.T * 0.35 + np.where(np.tri(4, dtype=bool), np.float32(0), np.float32(-1e9))
    return weights(scores - scores.max()) @ v


@pytest.mark.parametrize(
    ("program", "hole", "number"),
    [(of_all, "mask", "-1"), (of_all_before_scale, "mask", "-0.35"), (of_all_masked, "bias", "-1")],
)
def test_a_number_in_front_of_a_value_is_told_of_that_value(program, hole, number):
    tape, pool = searched(program, {"q": "f32[4,6]", "k": "f32[4,6]", "v": "f32[4,6]"})
    (miss,) = [miss for miss in pool.near_misses if miss.pattern == "attention"]
    assert (miss.expected, miss.found) == (f"{hole} (a max) with no number in front", f"{number} in front of it")
    assert tape.ops[miss.at].name == "max"


def test_a_short_number_is_no_root():
    _, pool = searched(lambda x: by_tanh(x, half=0.4), X)
    assert pool.near_misses[0].expected == "the factor in front 0.5"


def test_every_look_alike_marks_what_differs():
    known = [one for p in patterns().values() if p.term is not None for one in templates(p.term) if one.lookalike]
    assert len(known) > 10
    for one in known:
        func = one.named[DIFFERENCE][0]
        below, todo = set(), [one.root]
        while todo:
            held = todo.pop()
            below.add(held.number)
            todo += [kid.func for kid in held.kids]
        assert func.number in below, one.form


@pytest.mark.parametrize(
    ("function", "specs", "told"),
    [
        (
            lambda x, y: ((x + y) ** 2).mean(),
            {"x": "f32[4,8]", "y": "f32[4,8]"},
            "mse loss needs a difference; found a sum",
        ),
        (
            lambda x: x / (1 + np.exp(-1.7 * x)),
            {"x": "f32[4,8]"},
            "gelu needs the factor inside exp -1.702; found -1.7",
        ),
        (lambda x: x / (1 + np.exp(-1.1 * x)), {"x": "f32[4,8]"}, "silu needs the factor inside exp -1; found -1.1"),
        (lambda x: x / (2 + np.exp(-x)), {"x": "f32[4,8]"}, "silu needs the added constant 1; found 2"),
        (lambda x: x / (1 + np.exp(x)), {"x": "f32[4,8]"}, "silu needs the factor inside exp -1; found 1"),
        (lambda x: x / (1.5 + np.exp(-1.702 * x)), {"x": "f32[4,8]"}, "gelu needs the added constant 1; found 1.5"),
        (lambda x, y: x / (1 + np.exp(-1.7 * y)), {"x": "f32[4,8]", "y": "f32[4,8]"}, None),
    ],
)
def test_a_wrong_number_is_told_of_the_pattern_whose_number_is_nearest_and_a_wrong_sign_as_such(function, specs, told):
    _, pool = searched(function, specs)
    assert [miss.sentence for miss in pool.near_misses] == ([] if told is None else [told])


@pytest.mark.parametrize(
    ("factor", "code"),
    [
        ("f32[]", "scale-value"),
        ("f32[3,1,1]", "scale-value"),
        ("f32[5,1]", "scale-value"),
        ("f32[5]", "mask-multiplied"),
    ],
)
def test_a_factor_of_scores_is_a_mask_only_where_it_differs_by_key(factor, code):
    def function(q, k, v, t):
        scores = q @ k.swapaxes(-1, -2) * t
        powers = np.exp(scores - scores.max(-1, keepdims=True))
        return powers / powers.sum(-1, keepdims=True) @ v

    heads = dict.fromkeys("qkv", "f32[2,3,5,4]")
    _, pool = searched(function, {**heads, "t": factor})
    assert [miss.code for miss in pool.near_misses if miss.pattern == "attention"] == [code]
