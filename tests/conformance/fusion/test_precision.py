"""Casts, low precision and integers."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

import topos_core as tp
from tests.conformance.fusion.cases import (
    at_result,
    case,
    decision,
    matches,
    planned,
    recorded,
    run,
    runs_as_recorded,
    same_bits,
    taken,
)
from topos_core import nn


@case(73)
def test_a_round_trip_through_a_narrow_type_rounds():
    def program(x):
        return nn.silu(x.astype(tp.bf16.dtype).astype("f4"))

    plan = planned(program, {"x": "f32[8,64]"})
    match = at_result(plan, "silu")
    assert plan.tape.ops[match.bindings["x"]].name == "cast"
    x = np.linspace(-3, 3, 512)
    got = run(plan, x=x)[0]
    want = recorded(plan, x=x)[0]
    unrounded = x.astype(np.float32).reshape(8, 64)
    unrounded = unrounded / (1 + np.exp(-unrounded))
    np.testing.assert_allclose(got, want, rtol=1e-5)
    assert np.abs(want - unrounded).max() > 1e-3


@case(73)
def test_a_round_trip_through_a_narrow_type_inside_of_a_chain_rounds_too():
    def program(x):
        return (x * 1.5).astype(tp.bf16.dtype).astype("f4") + x

    plan = planned(program, {"x": "f32[8,64]"}, fidelity="exact")
    assert [found.match.pattern for found in plan.taken] == ["elementwise_chain"]
    assert same_bits(run(plan)[0], recorded(plan)[0])


@case(75)
@pytest.mark.parametrize("fidelity", ["exact", "fast"])
def test_ties_found_by_a_comparison_stay_ties(fidelity):
    def program(x):
        y = x * 3.0 + x
        return y == y.max(-1, keepdims=True)

    plan = planned(program, {"x": "bf16[16,64]"}, fidelity=fidelity)
    assert "reduction_elementwise" in [found.match.pattern for found in plan.taken]  # every op of it is exact
    x = np.round(np.random.default_rng(0).standard_normal((16, 64)), 1)
    got, want = run(plan, x=x)[0], recorded(plan, x=x)[0]
    np.testing.assert_array_equal(got, want)
    assert (want.sum(-1) >= 1).all()
    assert (want.sum(-1) > 1).any()


@case(76)
def test_a_sum_after_a_convolution_in_low_precision_is_fast_only():
    def program(x, w, y):
        return nn.conv2d(x, w, padding=1) + y

    specs = {"x": "bf16[1,4,8,8]", "w": "bf16[4,4,3,3]", "y": "bf16[1,4,8,8]"}
    fast, exact = planned(program, specs), planned(program, specs, fidelity="exact")
    assert taken(fast, "conv_bn_activation").match.facts.residual
    runs_as_recorded(fast)
    refused = decision(exact, at_result(exact, "conv_bn_activation"))
    assert refused is not None
    assert refused.code == "TP205"
    assert same_bits(run(exact)[0].astype(np.float32), recorded(exact)[0].astype(np.float32))


@case(77)
def test_a_convolution_of_small_integers_has_the_recorded_result_type():
    def program(x, w):
        windows = sliding_window_view(x.astype("i4"), (3, 3), axis=(2, 3))
        return np.einsum("bchwij,ocij->bohw", windows, w.astype("i4"))

    specs = {"x": "i8[1,4,6,6]", "w": "i8[3,4,3,3]"}
    full = {"x": np.full((1, 4, 6, 6), 127), "w": np.full((3, 4, 3, 3), -128)}
    plan = planned(program, specs)
    assert matches(plan, "convolution")
    got = run(plan, **full)[0]
    assert got.min() == 36 * 127 * -128
    np.testing.assert_array_equal(got, recorded(plan, **full)[0])
    text = planned(program, specs, consumer="stablehlo").emit_stablehlo(locations=False)
    assert "stablehlo.convolution" in text
    assert "tensor<1x3x4x4xi32>" in text


@case(79)
def test_an_epsilon_that_its_type_cannot_hold_is_told_as_recorded():
    def program(x):
        centred = x - x.mean(-1, keepdims=True)
        return centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + np.float16(1e-12))

    plan = planned(program, {"x": "f16[4,16]"})
    found = matches(plan, "layer_norm")
    assert all(match.facts.constants["epsilon"] == 0.0 for match in found)
    (number,) = {
        float(op.attributes["value"])
        for op in plan.tape.ops
        if op.name == "constant" and 0 <= float(np.max(op.attributes["value"])) < 1e-6
    }
    assert number == 0.0
    zeros = np.zeros((4, 16))
    assert np.isnan(run(plan, x=zeros)[0]).all() == np.isnan(recorded(plan, x=zeros)[0]).all()
