"""Spellings that a template of the wrong form would miss, and those that only look alike."""

from __future__ import annotations

import math

import numpy as np
import pytest

import topos_core as tp
from tests.conformance.fusion.cases import (
    at_result,
    case,
    codes,
    decision,
    matches,
    planned,
    recorded,
    run,
    runs_as_recorded,
    taken,
)
from topos_core import nn
from topos_core.errors import ToposError
from topos_core.recording.trace import record

HEADS = {"q": "f32[2,3,5,4]", "k": "f32[2,3,5,4]", "v": "f32[2,3,5,4]"}


def softmax(x):
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


@case(37)
@pytest.mark.parametrize("first", ["mask", "scores"])
def test_a_mask_added_from_either_side_is_attention(first):
    def program(q, k, v, mask):
        scores = q @ k.swapaxes(-1, -2) * 0.5
        return softmax(mask + scores if first == "mask" else scores + mask) @ v

    plan = planned(program, {**HEADS, "mask": "f32[5,5]"})
    assert at_result(plan, "attention").bindings["mask"] == plan.tape.inputs[3]
    runs_as_recorded(plan)


@case(39)
def test_attention_in_half_precision_with_casts_around_it_is_matched():
    def program(q, k, v, mask):
        scores = (q.astype("f4") @ k.astype("f4").swapaxes(-1, -2)) * 0.5 + mask
        return (softmax(scores) @ v.astype("f4")).astype("f2")

    plan = planned(program, {**{name: spec.replace("f32", "f16") for name, spec in HEADS.items()}, "mask": "f32[5,5]"})
    assert at_result(plan, "attention").bindings["mask"] == plan.tape.inputs[3]
    runs_as_recorded(plan)


@case(39)
def test_a_fed_dropout_mask_on_the_weights_is_part_of_attention():
    def program(q, k, v, mask, dropout):
        return (softmax(q @ k.swapaxes(-1, -2) * 0.5 + mask) * dropout) @ v

    plan = planned(program, {**HEADS, "mask": "f32[5,5]", "dropout": "f32[2,3,5,5]"})
    assert {"mask", "drop"} <= set(taken(plan, "attention").match.bindings)
    runs_as_recorded(plan)


@case(39)
def test_attention_in_half_precision_whose_softmax_is_in_single_precision_is_taken():
    def program(q, k, v, mask):
        scores = q @ k.swapaxes(-1, -2) * 0.5 + mask
        return softmax(scores.astype("f4")).astype("f2") @ v

    plan = planned(program, {**{name: spec.replace("f32", "f16") for name, spec in HEADS.items()}, "mask": "f16[5,5]"})
    assert taken(plan, "attention").match.facts.options["widened"] == "yes"
    runs_as_recorded(plan)


@case(40, 97)
def test_an_unknown_extent_is_named_and_taken_once_it_has_a_value():
    def program(x):
        return nn.layer_norm(x.reshape(-1, 8))

    with pytest.raises(ToposError) as refused:
        record(program, (), {"x": "f32[N,3,8]"})
    assert "N" in str(refused.value)
    tape = record(program, (), {"x": "f32[N,3,8]"}, dims={"N": 4})
    plan = tp.plan(tape, machine="reference", cost="always")
    assert [one.match.pattern for one in plan.taken] == ["layer_norm"]


@case(42)
def test_other_reshapes_are_attention_and_a_guard_against_nan_is_not():
    def flattened(q, k, v):
        rows = [x.reshape(6, 5, 4) for x in (q, k, v)]
        weights = softmax(np.einsum("bid,bjd->bij", rows[0], rows[1]) * 0.5)
        return np.einsum("bij,bjd->bid", weights, rows[2]).reshape(2, 3, 5, 4)

    def guarded(q, k, v):
        weights = softmax(q @ k.swapaxes(-1, -2) * 0.5)
        return np.where(np.isnan(weights), np.float32(0), weights) @ v

    assert at_result(planned(flattened, HEADS), "attention")
    plan = planned(guarded, HEADS)
    assert matches(plan, "attention") == []
    assert len(matches(plan, "softmax")) == 1
    runs_as_recorded(plan)


def gelus():
    slope = math.sqrt(0.5)
    erf = nn.activation.erf if hasattr(nn.activation, "erf") else None
    from topos_core.recording.elementary import erf as own

    erf = erf or own
    return {
        "half on x, quotient": lambda x: 0.5 * x * (1 + erf(x / math.sqrt(2))),
        "half on x, product": lambda x: (0.5 * x) * (1 + erf(x * slope)),
        "half on the bracket": lambda x: x * (0.5 * (1 + erf(x / math.sqrt(2)))),
        "half inside the bracket": lambda x: x * (0.5 + 0.5 * erf(x * slope)),
        "half at the end": lambda x: x * (1 + erf(x * slope)) * 0.5,
        "a quotient at the end": lambda x: x * (1 + erf(x / math.sqrt(2))) / 2,
        "short constant": lambda x: 0.5 * x * (1 + erf(x * 0.70710678)),
    }


@case(44)
@pytest.mark.parametrize("name", gelus())
def test_a_gelu_with_its_half_anywhere_is_one_and_never_exact(name):
    plan = planned(gelus()[name], {"x": "f32[16,64]"})
    at_result(plan, "gelu")
    runs_as_recorded(plan)
    exact = planned(gelus()[name], {"x": "f32[16,64]"}, fidelity="exact")
    found = decision(exact, at_result(exact, "gelu"))
    assert found is not None
    assert found.code == "TP205"


@case(46)
def test_a_layer_norm_without_scale_and_shift_is_one():
    def program(x):
        return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)

    plan = planned(program, {"x": "f32[4,6,16]"})
    assert set(at_result(plan, "layer_norm").bindings) == {"x"}
    runs_as_recorded(plan)


@case(47)
def test_a_cast_before_and_after_the_weight_are_two_results():
    def normed(x):
        wide = x.astype("f4")
        return wide / np.sqrt((wide * wide).mean(-1, keepdims=True) + 1e-6)

    def before(x, w):
        return w * normed(x).astype(tp.bf16.dtype)

    def after(x, w):
        return (w.astype("f4") * normed(x)).astype(tp.bf16.dtype)

    specs = {"x": "bf16[8,64]", "w": "bf16[64]"}
    early, late = planned(before, specs), planned(after, specs)
    (inner,) = matches(early, "rms_norm")
    assert "scale" not in inner.bindings
    assert "scale" in at_result(late, "rms_norm").bindings
    for plan in (early, late):
        runs_as_recorded(plan)
    assert not np.array_equal(recorded(early)[0], recorded(late)[0])


@case(48)
@pytest.mark.parametrize(("name", "matched"), [("rsqrt", 1), ("reciprocal", 1), ("power", 1), ("nearly", 0)])
def test_every_spelling_of_a_reciprocal_root_is_one_and_another_power_is_not(name, matched):
    def program(x):
        centred = x - x.mean(-1, keepdims=True)
        variance = (centred * centred).mean(-1, keepdims=True) + 1e-5
        scales = {
            "rsqrt": lambda: 1.0 / np.sqrt(variance),
            "reciprocal": lambda: np.reciprocal(np.sqrt(variance)),
            "power": lambda: variance**-0.5,
            "nearly": lambda: variance**-0.4999,
        }
        return centred * scales[name]()

    plan = planned(program, {"x": "f32[4,16]"})
    assert len(matches(plan, "layer_norm")) == matched
    if not matched:
        assert "exponent" in codes(plan, "layer_norm")
    runs_as_recorded(plan)


@case(50)
def test_a_softmax_without_the_shift_keeps_its_overflow_under_exact():
    def program(x):
        powers = np.exp(x)
        return powers / powers.sum(-1, keepdims=True)

    large = np.linspace(-100, 100, 32)
    exact = planned(program, {"x": "f32[4,8]"}, fidelity="exact")
    found = decision(exact, at_result(exact, "softmax"))
    assert found is not None
    assert found.code == "TP205"
    np.testing.assert_array_equal(run(exact, x=large)[0], recorded(exact, x=large)[0])
    assert np.isnan(recorded(exact, x=large)[0]).any()
    fast = planned(program, {"x": "f32[4,8]"})
    runs_as_recorded(fast)  # in the range where the recorded formula has an answer


@case(53)
def test_a_left_side_that_was_transposed_twice_is_the_same_left_side():
    def program(x, a, b):
        return x @ a, x.transpose(1, 0).transpose(1, 0) @ b

    plan = planned(program, {"x": "f32[6,5]", "a": "f32[5,4]", "b": "f32[5,3]"})
    first, second = matches(plan, "linear")
    assert first.bindings["x"] == second.bindings["x"] == plan.tape.inputs[0]
    (siblings,) = matches(plan, "sibling_matmul")
    assert siblings.bindings["x"] == plan.tape.inputs[0]
    runs_as_recorded(plan)
    runs_as_recorded(plan.what_if(off=["linear"]))


@case(56)
def test_a_join_of_different_results_before_a_product_is_a_value_of_its_own():
    def program(x, y, w):
        return np.concatenate([np.exp(x), np.tanh(y)], axis=-1) @ w

    plan = planned(program, {"x": "f32[6,3]", "y": "f32[6,5]", "w": "f32[8,4]"})
    match = at_result(plan, "linear")
    assert plan.tape.ops[match.bindings["x"]].name == "concat"
    assert match.interior == frozenset()
    runs_as_recorded(plan)
