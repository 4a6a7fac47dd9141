"""A number that a pattern knows only as a constant is none where it is read at run time: no match loses what the program reads."""

from dataclasses import replace

import numpy as np
import pytest

import topos_core as tp
from tests.core.patterns.check import agrees, searched
from tests.laws.metamorphic import Rewriter
from topos_core.matching.catalog import patterns
from topos_core.matching.search import search
from topos_core.tape.op import Op
from topos_core.tape.type import FLOATS, TensorType

EXAMPLES = [(p, e) for p in patterns().values() for e in p.examples]


def given(tape, value):
    """Makes what is one number everywhere an input of one number."""
    whole = tape.ops[value].type
    one = TensorType(whole.dtype, ())
    rewriter = Rewriter(tape, 0)
    rewriter.ops.append(Op("input", (), {"type": one}, one, tape.ops[value].location))
    for each in range(len(tape.ops)):
        spread = each == value
        rewriter.new[each] = (
            rewriter.emit("broadcast", 0, at=each, shape=whole.shape) if spread else rewriter.copy(each)
        )
    changed = rewriter.finish()
    return replace(changed, inputs=(*changed.inputs, 0))


def numbers_of(tape):
    return [
        value
        for value, op in enumerate(tape.ops)
        if op.name == "constant" and np.ndim(op.attributes["value"]) == 0 and op.type.dtype in FLOATS and op.type.shape
    ]


@pytest.mark.parametrize(
    ("pattern", "example"), EXAMPLES, ids=lambda v: str(getattr(v, "identifier", getattr(v, "name", v)))
)
def test_what_matches_computes_with_the_number_that_is_given(pattern, example):
    tape, _ = searched(example.function, example.specs)
    for value in numbers_of(tape):
        changed = given(tape, value)
        for match in search(changed, patterns().values()).matches:
            agrees(changed, match)


def rms(x, e):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + e)


def layer(x, e):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + e)


def batch(x, e):
    mean = x.mean((0, 2), keepdims=True)
    return (x - mean) / np.sqrt(((x - mean) ** 2).mean((0, 2), keepdims=True) + e)


def own_mean(x, e):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + (x * e).mean())


@pytest.mark.parametrize("epsilon", ["f32[]", "f32[1]"])
@pytest.mark.parametrize("function", [rms, layer, batch, own_mean])
def test_an_epsilon_that_is_read_at_run_time_counts(function, epsilon):
    tape = tp.trace(function, "f32[3,8,5]", epsilon)
    plan = tp.plan(tape, cost="always")
    random = np.random.default_rng(0)
    x, e = (
        random.standard_normal((3, 8, 5)).astype(np.float32),
        np.full(tape.ops[tape.inputs[1]].type.shape, 0.7, np.float32),
    )
    np.testing.assert_allclose(plan.run(x, e), function(x, e), rtol=2e-5, atol=2e-6)
    plan.prove()
    assert not any("norm" in one.match.pattern for one in plan.taken)


def test_the_near_miss_says_what_is_read():
    plan = tp.plan(tp.trace(rms, "f32[3,8]", "f32[]"), cost="always")
    assert [(miss.pattern, miss.code, miss.found) for miss in plan.near_misses] == [("rms_norm", "constant", "e")]
