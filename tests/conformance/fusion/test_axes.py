"""A template that ignored axes, attributes or broadcasting would take these for what they are not."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

from tests.conformance.fusion.cases import (
    at_result,
    case,
    codes,
    matches,
    planned,
    pool,
    recorded,
    run,
    runs_as_recorded,
    taken,
)
from topos_core import nn
from topos_core.matching.certificate import certify

NORMS = ("layer_norm", "rms_norm", "batch_norm_training", "group_norm", "instance_norm", "softmax")


def softmax(x, axis=-1):
    powers = np.exp(x - x.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


@case(1)
@pytest.mark.parametrize("order", [(0, 2, 3, 1), (1, 0, 3, 2), (2, 0, 3, 1), (0, 1, 3, 2)])
def test_keys_permuted_in_any_way_are_attention_over_that_view(order):
    def attention(q, k, v):
        return softmax(q @ k.transpose(order) * 0.5) @ v

    inner = [2, 2, 4, 5]
    shape = [inner[order.index(axis)] for axis in range(4)]
    specs = {"q": "f32[2,2,5,4]", "k": f"f32[{','.join(map(str, shape))}]", "v": "f32[2,2,5,3]"}
    plan = planned(attention, specs)
    match = at_result(plan, "attention")
    assert match.bindings["k"] == plan.tape.inputs[1]
    assert certify(plan.tape, match).answer == "true"
    runs_as_recorded(plan)


@case(20)
@pytest.mark.parametrize("order", [(0, 2, 1), (1, 2, 0), (2, 1, 0), (1, 0, 2)])
def test_keys_of_rank_three_permuted_in_any_way_are_attention_over_that_view(order):
    def attention(q, k, v):
        return softmax(q @ k.transpose(order)) @ v

    plan = planned(attention, {"q": "f32[4,4,4]", "k": "f32[4,4,4]", "v": "f32[4,4,4]"})
    match = at_result(plan, "attention")
    assert match.bindings["k"] == plan.tape.inputs[1]
    assert certify(plan.tape, match).answer == "true"


@case(2)
def test_a_softmax_over_the_queries_between_two_products_is_no_attention():
    def program(q, k, v):
        return softmax(q @ k, axis=0) @ v

    plan = planned(program, {"q": "f32[6,6]", "k": "f32[6,6]", "v": "f32[6,6]"})
    assert matches(plan, "attention") == []
    assert len(matches(plan, "softmax")) == 1
    runs_as_recorded(plan)


@case(4)
@pytest.mark.parametrize("shape", ["1", "3,1", "2,1,1"])
def test_a_scale_that_does_not_vary_along_the_normalised_axis_is_no_scale_of_the_norm(shape):
    def program(x, scale):
        centred = x - x.mean(-1, keepdims=True)
        return centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + 1e-5) * scale

    plan = planned(program, {"x": "f32[2,3,4]", "scale": f"f32[{shape}]"})
    assert matches(plan, "layer_norm")
    assert not any("scale" in match.bindings for match in matches(plan, "layer_norm"))
    runs_as_recorded(plan)


@case(5)
@pytest.mark.parametrize(("x", "scale"), [("1,1", "2"), ("4,6", "2,1,6")])
def test_a_scale_that_expands_the_result_stays_outside_of_the_norm(x, scale):
    def program(x, scale):
        centred = x - x.mean(-1, keepdims=True)
        return centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + 1e-5) * scale

    plan = planned(program, {"x": f"f32[{x}]", "scale": f"f32[{scale}]"})
    result = plan.tape.results[0]
    assert not [match for match in pool(plan) if match.root == result and match.pattern in NORMS]
    runs_as_recorded(plan)


@case(7)
def test_a_mean_that_lost_its_axis_centres_another_one():
    def program(x):
        centred = x - x.mean(1)
        return centred / np.sqrt((centred * centred).mean(1, keepdims=True) + 1e-5)

    plan = planned(program, {"x": "f32[4,4]"})
    assert not any(match.pattern in ("layer_norm", "batch_norm_training") for match in pool(plan))
    runs_as_recorded(plan)


@case(8)
def test_a_whole_tensor_added_to_a_convolution_is_a_residual_and_no_bias():
    def program(x, w, other):
        return nn.conv2d(x, w, padding=1, groups=4) + other

    plan = planned(program, {"x": "f32[1,8,6,6]", "w": "f32[8,2,3,3]", "other": "f32[1,8,6,6]"})
    match = at_result(plan, "conv_bn_activation")
    assert match.facts.residual
    assert not match.facts.bias
    runs_as_recorded(plan)


@case(10)
def test_a_bias_chain_stops_where_the_second_bias_varies_along_the_rows():
    def program(x, w, first, second):
        return (x @ w + first).reshape(2, 3, 4) + second

    specs = {"x": "f32[6,5]", "w": "f32[5,4]", "first": "f32[4]", "second": "f32[1,3,4]"}
    plan = planned(program, specs)
    bound = [match.bindings.get("bias") for match in pool(plan) if match.pattern.startswith("linear")]
    assert plan.tape.inputs[2] in bound
    assert plan.tape.inputs[3] not in bound
    runs_as_recorded(plan)


@case(12)
def test_a_zero_pad_under_a_maximum_is_kept_as_it_is():
    def program(x):
        padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        return sliding_window_view(padded, (3, 3), axis=(2, 3))[:, :, ::2, ::2].max(axis=(-2, -1))

    for consumer in ("home", "stablehlo"):
        plan = planned(program, {"x": "f32[1,2,6,6]"}, consumer=consumer)
        assert not any(match.facts.pad_fill == -np.inf for match in matches(plan, "window_reduce"))
        assert "pad-fill" in codes(plan, "window_reduce")
        assert plan.tape.ops[taken(plan, "window_reduce").match.bindings["x"]].name == "pad"
    plan = planned(program, {"x": "f32[1,2,6,6]"})
    negative = -np.abs(np.random.default_rng(0).standard_normal((1, 2, 6, 6)))
    (got,) = run(plan, x=negative)
    assert got.max() == 0.0
    np.testing.assert_array_equal(got, recorded(plan, x=negative)[0])


@case(13)
def test_a_crop_before_a_convolution_is_a_negative_pad_where_the_dialect_has_it():
    def program(x, w):
        return nn.conv2d(x[:, :, 1:-1, 2:-1], w)

    plan = planned(program, {"x": "f32[1,2,8,8]", "w": "f32[3,2,3,3]"}, consumer="stablehlo")
    windows = taken(plan, "convolution").match.facts.windows
    assert [(window.low, window.high) for window in windows] == [(-1, -1), (-2, -1)]
    text = "".join(plan.emit_stablehlo(locations=False).split())
    assert "[[-1,-1],[-2,-1]]" in text
    runs_as_recorded(planned(program, {"x": "f32[1,2,8,8]", "w": "f32[3,2,3,3]"}))


@case(15)
@pytest.mark.parametrize("reduce", ["max", "sum"])
def test_mixed_pads_of_a_pool_give_what_was_recorded(reduce):
    def program(x):
        fill = -np.inf if reduce == "max" else 0.0
        padded = np.pad(x, ((0, 0), (0, 0), (1, 2), (0, 1)), constant_values=fill)
        windows = sliding_window_view(padded, (3, 2), axis=(2, 3))[:, :, ::2, ::2]
        return windows.max((-2, -1)) if reduce == "max" else windows.sum((-2, -1)) / 6

    plan = planned(program, {"x": "f32[2,3,8,7]"})
    windows = at_result(plan, "window_reduce").facts.windows
    assert [(window.low, window.high) for window in windows[2:]] == [(1, 2), (0, 1)]
    runs_as_recorded(plan)


@case(16)
@pytest.mark.parametrize("extent", [4, 1])
def test_rows_and_columns_of_a_square_are_not_confused(extent):
    def rows_by_columns(x):
        return x / np.sqrt((x * x).mean(0) + 1e-5).reshape(-1, 1)

    def columns(x):
        return x / np.sqrt((x * x).mean(0) + 1e-5)

    specs = {"x": f"f32[{extent},{extent}]"}
    crossed = planned(rows_by_columns, specs)
    if extent > 1:
        assert matches(crossed, "rms_norm") == []
        assert len(matches(planned(columns, specs), "rms_norm")) == 1
    runs_as_recorded(crossed)
    runs_as_recorded(planned(columns, specs))


@case(16)
@pytest.mark.parametrize("extent", [4, 1])
def test_a_reduction_and_its_map_meet_along_the_reduced_axis_alone(extent):
    def along(x):
        return x - x.max(0)

    def across(x):
        return x - x.max(0)[:, None]

    specs = {"x": f"f32[{extent},{extent}]"}
    for program in (along, across):
        plan = planned(program, specs)
        assert len(matches(plan, "reduction_elementwise")) == (extent > 1 and program is along)
        runs_as_recorded(plan)


@case(18)
def test_two_convolutions_in_a_row_and_summed_are_two_convolutions():
    def program(x, a, b):
        first = nn.conv2d(x, a, padding=1)
        return nn.conv2d(first, b, padding=1) + first

    plan = planned(program, {"x": "f32[1,3,6,6]", "a": "f32[3,3,3,3]", "b": "f32[3,3,3,3]"})
    found = matches(plan, "convolution")
    assert len({match.root for match in found}) == 2
    between = found[1].bindings["x"]
    while between != found[0].root:
        (between,) = plan.tape.ops[between].operands
    assert at_result(plan, "conv_bn_activation").facts.residual
    runs_as_recorded(plan)
