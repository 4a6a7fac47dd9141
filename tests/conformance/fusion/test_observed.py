"""Observed values, further readers and named results."""

from __future__ import annotations

import numpy as np
import pytest

import topos_core as tp
from tests.conformance.fusion.cases import (
    at_result,
    case,
    decision,
    inputs_of,
    matches,
    never_blocked,
    planned,
    pool,
    recorded,
    run,
    runs_as_recorded,
    same_bits,
    taken,
)
from topos_core import nn

HEADS = {"q": "f32[2,3,5,4]", "k": "f32[2,3,5,4]", "v": "f32[2,3,5,4]"}


def softmax(x):
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


@case(21)
def test_an_observed_value_inside_blocks_and_is_named():
    def program(x):
        powers = np.exp(x - x.max(-1, keepdims=True))
        tp.observe(powers, "powers")
        return powers / powers.sum(-1, keepdims=True)

    plan = planned(program, {"x": "f32[64,128]"})
    (blocked,) = plan.blocked
    assert blocked.match.pattern == "softmax"
    (finding,) = [one for one in plan.document()["findings"] if one["code"] == "TP101"]
    assert "`powers`" in finding["headline"]
    assert finding["path"].endswith("test_observed.py")
    (name,) = plan.run(*inputs_of(plan.tape), observed=True)[1]
    assert name == "powers"


@case(21)
def test_observed_scores_keep_attention_from_being_taken():
    def program(q, k, v):
        scores = q @ k.swapaxes(-1, -2) * 0.5
        tp.observe(scores, "scores")
        return softmax(scores) @ v

    plan = planned(program, HEADS)
    found = decision(plan, at_result(plan, "attention"))
    assert found is not None
    assert found.verdict != "taken"
    runs_as_recorded(plan)


@case(22)
def test_statistics_that_are_results_keep_a_batch_norm_out_of_the_convolution_and_are_written_back():
    def program(x, w):
        y = nn.conv2d(x, w)
        mean = y.mean((0, 2, 3), keepdims=True)
        variance = ((y - mean) ** 2).mean((0, 2, 3), keepdims=True)
        return (y - mean) / np.sqrt(variance + 1e-5), mean, variance

    plan = planned(program, {"x": "f32[4,3,8,8]", "w": "f32[5,3,3,3]"})
    assert "conv_bn_activation" not in [one.match.pattern for one in plan.taken]
    found = taken(plan, "batch_norm_training")
    assert set(found.match.named) == {"mean", "variance"}
    assert set(plan.tape.results) <= found.match.produced
    runs_as_recorded(plan)


@case(24)
def test_one_weight_in_two_folded_batch_norms_is_read_twice_and_written_never():
    def program(x, y, w, mean, var, scale, shift):
        first, second = nn.conv2d(x, w, padding=1), nn.conv2d(y, w, padding=1)
        return nn.batch_norm(first, mean, var, scale, shift), nn.batch_norm(second, mean, var, shift, scale)

    vectors = dict.fromkeys(("mean", "var", "scale", "shift"), "f32[4]")
    plan = planned(program, {"x": "f32[2,4,6,6]", "y": "f32[2,4,6,6]", "w": "f32[4,4,3,3]", **vectors})
    first, second = (at_result(plan, "conv_bn_activation", result) for result in (0, 1))
    for match in (first, second):
        kernel = match.bindings["kernel"]
        while plan.tape.ops[kernel].operands:
            (kernel,) = plan.tape.ops[kernel].operands
        assert kernel == plan.tape.inputs[2]
    inputs = inputs_of(plan.tape)
    before = [array.copy() for array in inputs]
    once, twice = plan.run(*inputs), plan.run(*inputs)
    assert all(same_bits(a, b) for a, b in zip(inputs, before, strict=True))
    assert all(same_bits(a, b) for a, b in zip(once, twice, strict=True))
    runs_as_recorded(plan)


def normalised(x, scale, shift):
    for _ in range(3):
        x = nn.layer_norm(x, scale, shift)
        tp.observe(x, "normalised")
        x = x + 0.5 * x
    return x


@case(26)
def test_observing_every_layer_norm_changes_no_bit_under_exact_and_no_match_under_fast():
    specs = {"x": "f32[6,16]", "scale": "f32[16]", "shift": "f32[16]"}
    exact = planned(normalised, specs, fidelity="exact")
    assert same_bits(run(exact)[0], recorded(exact)[0])
    fast = planned(normalised, specs)
    assert sum(one.match.pattern in ("layer_norm", "add_norm") for one in fast.taken) == 3
    runs_as_recorded(fast)


@case(27)
@pytest.mark.parametrize("which", ["root", "whole", "quotient"])
def test_observing_one_of_sin_ceil_and_div_changes_no_bit(which):
    def program(x):
        values = {"root": np.sin(x)}
        values["whole"] = np.ceil(values["root"])
        values["quotient"] = values["root"] / values["whole"]
        tp.observe(values[which], which)
        return values["quotient"]

    special = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 1.0, -1.0, 3.0])
    for fidelity in ("exact", "fast"):
        plan = planned(program, {"x": "f32[8]"}, fidelity=fidelity)
        assert same_bits(run(plan, x=special)[0], recorded(plan, x=special)[0])


@case(29)
def test_the_report_lists_what_each_observation_costs():
    def program(x, w):
        y = nn.softmax(nn.relu(nn.conv2d(x, w, padding=1)).reshape(2, -1))
        return nn.layer_norm(y)

    base = planned(program, {"x": "f32[2,3,16,16]", "w": "f32[8,3,3,3]"})
    everything = [value for value, op in enumerate(base.tape.ops) if op.name not in ("input", "constant")]
    plan = base.what_if(observe=everything)
    lost = {one.match.id for one in base.taken} - {one.match.id for one in plan.taken}
    assert lost
    told = {one.match.id: one for one in plan.data.decisions}
    for identity in lost:
        assert told[identity].verdict == "blocked"
        assert told[identity].observations
        assert told[identity].numbers["price"].unit


@case(30)
def test_one_match_is_switched_off_by_name_and_place():
    def program(x, y):
        return nn.softmax(x), nn.softmax(y)

    base = planned(program, {"x": "f32[8,64]", "y": "f32[8,64]"})
    first, second = matches(base, "softmax")
    plan = base.what_if(off_at=frozenset({("softmax", first.root)}))
    off, kept = decision(plan, first), decision(plan, second)
    assert off is not None
    assert kept is not None
    assert (off.verdict, off.code) == ("declined", "TP208")
    assert kept.verdict == "taken"
    runs_as_recorded(plan)


@case(31)
def test_a_later_observation_is_another_plan_and_the_old_one_does_not_answer_for_it():
    def program(x):
        return nn.softmax(x * 2.0)

    old = planned(program, {"x": "f32[8,64]"})
    inner = matches(old, "softmax")[0].bindings["x"]
    new = old.what_if(observe=[inner])
    inputs = inputs_of(old.tape)
    assert old.run(*inputs, observed=True)[1] == {}
    (array,) = new.run(*inputs, observed=True)[1].values()
    np.testing.assert_array_equal(array, inputs[0] * np.float32(2))
    assert old.data.request != new.data.request


@case(32)
def test_observed_queries_keys_and_values_are_inputs_of_attention_and_block_nothing():
    def program(x, a, b, c):
        q, k, v = x @ a, x @ b, x @ c
        for name, value in (("q", q), ("k", k), ("v", v)):
            tp.observe(value, name)
        return softmax(q @ k.swapaxes(-1, -2) * 0.5) @ v

    plan = planned(program, {"x": "f32[2,5,8]", **dict.fromkeys("abc", "f32[8,4]")})
    never_blocked(plan, at_result(plan, "attention"))
    runs_as_recorded(plan)


@case(32)
def test_observed_queries_and_keys_that_are_scaled_first_block_nothing():
    def program(x, a, b, c):
        q, k, v = x @ a * 0.5, x @ b * 0.5, x @ c
        for name, value in (("q", q), ("k", k), ("v", v)):
            tp.observe(value, name)
        return softmax(q @ k.swapaxes(-1, -2)) @ v

    plan = planned(program, {"x": "f32[2,5,8]", **dict.fromkeys("abc", "f32[8,4]")})
    taken(plan, "attention")
    runs_as_recorded(plan)


@case(35)
def test_the_larger_of_two_matches_wins_and_contains_the_smaller():
    def program(x, w, bias):
        return np.minimum(np.maximum(nn.conv2d(x, w) + bias[:, None, None], 0), 6)

    plan = planned(program, {"x": "f32[2,3,8,8]", "w": "f32[4,3,3,3]", "bias": "f32[4]"})
    (found,) = plan.taken
    assert found.match.pattern == "conv_bn_activation"
    assert found.match.facts.activation == "relu6"
    assert any(identity.startswith("convolution@") for identity in found.contains)

    def product(x, w, bias):
        return np.minimum(np.maximum(x @ w + bias, 0), 6)

    plan = planned(product, {"x": "f32[8,6]", "w": "f32[6,4]", "bias": "f32[4]"})
    whole = at_result(plan, "linear_bias_activation")
    never_blocked(plan, whole)
    runs_as_recorded(plan)


@case(36)
def test_names_take_no_part():
    def plain(x, weight, bias):
        hidden = nn.layer_norm(x @ weight + bias)
        tp.observe(hidden, "hidden")
        return nn.gelu(hidden)

    def odd(out, input, self):
        result = nn.layer_norm(out @ input + self)
        tp.observe(result, "out")
        return nn.gelu(result)

    shapes = ("f32[4,6]", "f32[6,8]", "f32[8]")
    one = planned(plain, dict(zip(("x", "weight", "bias"), shapes, strict=True)))
    other = planned(odd, dict(zip(("out", "input", "self"), shapes, strict=True)))
    assert [match.id for match in pool(one)] == [match.id for match in pool(other)]
    assert [each.verdict for each in one.data.decisions] == [each.verdict for each in other.data.decisions]
