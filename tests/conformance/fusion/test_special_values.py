"""NaN, infinities, zeros of both signs, overflow and cancellation."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

import topos_core as tp
from tests.conformance.fusion.cases import (
    at_result,
    case,
    decision,
    planned,
    recorded,
    run,
    runs_as_recorded,
    same_bits,
    taken,
)
from topos_core import nn

INF, NAN = np.inf, np.nan


def softmax(x):
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def unshifted(x):
    powers = np.exp(x)
    return powers / powers.sum(-1, keepdims=True)


def layer_norm(x):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)


def batch_norm(x):
    mean = x.mean(0)
    return (x - mean) / np.sqrt(((x - mean) ** 2).mean(0) + 1e-5)


@case(57)
def test_a_target_that_expands_a_batch_norm_to_one_pass_is_declined_with_both_errors():
    for dialect, verdict in (("portable", "taken"), ("xla", "declined"), ("iree", "declined")):
        plan = planned(batch_norm, {"x": "f32[256,4]"}, consumer="stablehlo", dialect=dialect)
        found = decision(plan, at_result(plan, "batch_norm_training"))
        assert found is not None
        assert found.verdict == verdict
        if verdict == "declined":
            assert found.code == "TP205"
            assert found.numbers["raised_error"].value > 100 * found.numbers["recorded_error"].value


@case(58)
@pytest.mark.parametrize("formula", [layer_norm, batch_norm])
@pytest.mark.parametrize("mean", [1e2, 1e3, 1e4])
def test_a_large_mean_with_a_tiny_spread_loses_no_more_than_the_recorded_ops(formula, mean):
    plan = planned(formula, {"x": "f32[64,64]"})
    x = (mean + np.random.default_rng(0).standard_normal((64, 64)) * mean * 1e-5).astype(np.float32)
    (got,), (plain,) = run(plan, x=x), recorded(plan, x=x)
    with np.errstate(all="ignore"):
        exact = formula(x.astype(np.float64))
    assert plan.taken
    error, own = np.abs(got - exact).max(), np.abs(plain - exact).max()
    assert error <= max(2 * own, 1e-5), (error, own)


@case(60)
@pytest.mark.parametrize("masked", [-INF, -3.4e38, -1e9])
@pytest.mark.parametrize("attention", [False, True])
def test_a_fully_masked_row_gives_what_was_recorded(masked, attention):
    def program(q, k, v, mask):
        weights = softmax(q @ k.swapaxes(-1, -2) * 0.5 + mask)
        return weights @ v if attention else weights

    specs = {"q": "f32[2,4,8]", "k": "f32[2,4,8]", "v": "f32[2,4,8]", "mask": "f32[4,4]"}
    mask = np.where(np.tri(4, k=-1) > 0, 0.0, masked).astype(np.float32)
    plan = planned(program, specs)
    got, want = run(plan, mask=mask)[0], recorded(plan, mask=mask)[0]
    assert np.isnan(want[:, 0]).all() == (masked == -INF)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


@case(62)
@pytest.mark.parametrize("formula", [softmax, unshifted])
def test_a_softmax_of_an_infinity_follows_the_recorded_formula(formula):
    x = np.array([[INF, 1, 2], [-INF, 1, 2], [NAN, 1, 2], [-INF, -INF, -INF]])
    for fidelity in ("exact", "fast"):
        plan = planned(formula, {"x": "f32[4,3]"}, fidelity=fidelity)
        want = recorded(plan, x=x)[0]
        assert np.isnan(want[0, 0])
        assert np.isnan(want[0, 1]) == (formula is softmax)
        np.testing.assert_allclose(run(plan, x=x)[0], want, rtol=1e-5)


@case(63)
def test_a_window_of_nan_is_nan_and_one_nan_is_enough():
    def program(x):
        return sliding_window_view(x, (2, 2), axis=(2, 3))[:, :, ::2, ::2].max((-2, -1))

    x = np.ones((1, 1, 4, 4))
    x[0, 0, :2, :2] = NAN
    x[0, 0, 3, 3] = NAN
    x[0, 0, 0, 2] = -0.0
    plan = planned(program, {"x": "f32[1,1,4,4]"})
    assert taken(plan, "window_reduce").match.facts.reducer == "max"
    got = run(plan, x=x)[0]
    assert same_bits(got, recorded(plan, x=x)[0])
    np.testing.assert_array_equal(np.isnan(got[0, 0]), [[True, False], [False, True]])


@case(65)
def test_a_product_of_exponentials_is_never_the_exponential_of_a_sum():
    def program(x):
        return np.exp(x) * np.exp(-x)

    for fidelity in ("exact", "fast"):
        plan = planned(program, {"x": "f32[4]"}, fidelity=fidelity)
        assert np.isnan(run(plan, x=[200.0, -200.0, 1.0, 0.0])[0][:2]).all()
        np.testing.assert_allclose(run(plan)[0], recorded(plan)[0], rtol=3e-7 if fidelity == "fast" else 0)
    assert plan.emit_stablehlo().count("stablehlo.exponential") == 2  # XLA makes one of them; the text does not


@case(66)
def test_a_product_with_zero_hides_nothing_and_a_multiplied_mask_is_no_pad():
    def zeroed(x):
        return x * 0.0

    special = [INF, NAN, 1.0, -1.0]
    plan = planned(zeroed, {"x": "f32[4]"})
    assert same_bits(run(plan, x=special)[0], recorded(plan, x=special)[0])

    def masked(x, mask, w):
        return nn.conv2d(x * mask, w)

    plan = planned(masked, {"x": "f32[1,2,6,6]", "mask": "f32[6,6]", "w": "f32[3,2,3,3]"})
    match = at_result(plan, "convolution")
    assert plan.tape.ops[match.bindings["x"]].name == "mul"
    x = np.ones((1, 2, 6, 6))
    x[0, 0, 0, 0] = INF
    edge = np.pad(np.ones((4, 4)), 1)
    np.testing.assert_array_equal(np.isnan(run(plan, x=x, mask=edge)[0]), np.isnan(recorded(plan, x=x, mask=edge)[0]))


@case(68)
def test_squares_that_overflow_half_precision_are_summed_in_the_recorded_type():
    def program(x):
        wide = x.astype("f4")
        return (wide / np.sqrt((wide * wide).mean(-1, keepdims=True) + 1e-6)).astype("f2")

    plan = planned(program, {"x": "f16[2,4096]"})
    x = np.full((2, 4096), 300.0)
    got = run(plan, x=x)[0]
    np.testing.assert_allclose(got.astype(np.float32), 1.0, rtol=2e-3)

    def mean(x):
        return x.mean(-1)

    tape = tp.trace(mean, x="f16[2,4096]")
    assert [op.attributes["accumulate"] for op in tape.ops if op.name == "sum"] == ["f32"]


@case(70)
def test_a_batch_norm_folded_into_a_convolution_is_fast_only_and_its_error_is_told():
    def program(x, w, mean, var, scale, shift):
        return nn.batch_norm(nn.conv2d(x, w), mean, var, scale, shift)

    specs = {"x": "f32[1,3,8,8]", "w": "f32[4,3,3,3]", **dict.fromkeys(("mean", "var", "scale", "shift"), "f32[4]")}
    fast, exact = planned(program, specs), planned(program, specs, fidelity="exact")
    found = taken(fast, "conv_bn_activation")
    assert found.offer is not None
    assert found.offer.envelope is not None
    assert 0 < found.offer.envelope.relative < 1e-4
    refused = decision(exact, at_result(exact, "conv_bn_activation"))
    assert refused is not None
    assert refused.code == "TP205"
    assert same_bits(run(exact)[0], recorded(exact)[0])


@case(71)
def test_the_drift_of_many_layer_norms_is_measured_end_to_end_and_each_says_its_own():
    def program(x, scale, shift):
        for _ in range(25):
            x = nn.layer_norm(x, scale, shift)
        return x

    plan = planned(program, {"x": "f32[16,64]", "scale": "f32[64]", "shift": "f32[64]"})
    norms = [one for one in plan.taken if one.match.pattern == "layer_norm"]
    assert len(norms) == 25
    assert all(one.offer is not None and one.offer.envelope is not None for one in norms)
    runs_as_recorded(plan)


EMITTED = """
import json, sys
import numpy as np
import topos_core as tp
from tests.conformance.fusion import emitted
print(json.dumps(emitted.differences()))
"""


@case(72, 107)
@pytest.mark.parametrize("fused", [True, False])
def test_emitted_modules_give_what_was_recorded_with_and_without_the_compilers_fusion(fused):
    flags = "" if fused else "--xla_disable_hlo_passes=fusion"
    done = subprocess.run(
        [sys.executable, "-c", EMITTED],
        env={**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        check=False,
        cwd=os.getcwd(),
    )
    assert done.returncode == 0, done.stderr[-2000:]
    differences = json.loads(done.stdout)
    assert len(differences) > 4
    for name, (finite, special) in differences.items():
        assert special == 0, f"{name}: NaN or infinity in another place"
        assert finite < 1e-5, name
