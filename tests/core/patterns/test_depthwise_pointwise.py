from __future__ import annotations

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

from tests.core.patterns.check import check, searched
from topos_core import nn

SPECS = {"x": "f64[2,4,6,6]", "w": "f64[4,1,3,3]", "p": "f64[5,4,1,1]"}


def by_nn(x, w, p):
    return nn.conv2d(nn.conv2d(x, w, groups=4), p)


def by_windows(x, w, p):
    y = (sliding_window_view(x, (3, 3), axis=(2, 3)) * w[:, :, None]).sum((-2, -1))
    return np.einsum("bchw,oc->bohw", y, p[:, :, 0, 0])


def by_taps(x, w, p):
    y = sum(x[:, :, i : i + 4, j : j + 4] * w[:, 0, i, j][:, None, None] for i in range(3) for j in range(3))
    return np.einsum("oc,bchw->bohw", p.reshape(5, 4), y)


def channels_last_out(x, w, p):
    return np.einsum("bchw,oc->bhwo", nn.conv2d(x, w, groups=4), p[:, :, 0, 0])


def channels_turned(x, w, p):
    y = nn.conv2d(x, w, groups=4)
    return nn.conv2d(
        y.reshape(2, 2, 2, 4, 4).transpose(0, 2, 1, 3, 4).reshape(2, 4, 4, 4), p
    )  # the kernel's channels are turned the other way


@pytest.mark.parametrize("spelling", [by_nn, by_windows, by_taps, channels_last_out, channels_turned])
def test_every_spelling_is_one_pair(spelling):
    match = check("depthwise_pointwise", spelling, SPECS)
    assert set(match.bindings) == {"x", "depthwise_kernel", "pointwise_kernel"}


def test_the_pointwise_kernel_may_be_a_matrix_that_multiplies():
    def program(x, w, p):
        y = nn.relu(np.einsum("bchwij,cij->bchw", sliding_window_view(x, (3, 3), axis=(2, 3)), w[:, 0]))
        return (p @ y.reshape(2, 4, 16)).reshape(2, 5, 4, 4)

    check("depthwise_pointwise", program, SPECS | {"p": "f64[5,4]"})


@pytest.mark.parametrize("options", [{"stride": 2}, {"dilation": 2}, {"padding": 1}, {"padding": (2, 0)}])
def test_the_window_may_be_any(options):
    check("depthwise_pointwise", lambda x, w, p: nn.conv2d(nn.conv2d(x, w, groups=4, **options), p), SPECS)


def test_epilogues_of_both_belong_to_the_pair():
    def program(x, w, p, b, c, mean, variance, other):
        y = nn.relu(nn.batch_norm(nn.conv2d(x, w, b, groups=4), mean, variance))
        return nn.silu(nn.conv2d(y, p, c)) + other

    vectors = {"b": "f64[4]", "c": "f64[5]", "mean": "f64[4]", "variance": "f64[4]", "other": "f64[2,5,4,4]"}
    match = check("depthwise_pointwise", program, SPECS | vectors)
    assert {"depthwise_bias", "depthwise_bn_mean", "pointwise_bias", "pointwise_residual"} <= set(match.bindings)
    assert (match.facts.depthwise.activation, match.facts.pointwise.activation) == ("relu", "silu")


def test_several_results_of_one_channel():
    specs = {"x": "f64[2,4,6,6]", "w": "f64[8,1,3,3]", "p": "f64[5,8,1,1]"}
    match = check("depthwise_pointwise", lambda x, w, p: nn.conv2d(nn.relu(nn.conv2d(x, w, groups=4)), p), specs)
    assert match.facts.depthwise.convolution.out_channels == 8


def test_one_spatial_axis():
    specs = {"x": "f64[2,4,9]", "w": "f64[4,1,3]", "p": "f64[5,4,1]"}
    check("depthwise_pointwise", lambda x, w, p: nn.conv1d(nn.conv1d(x, w, groups=4), p), specs)


def pointwise_first(x, w, p):
    return nn.conv2d(nn.conv2d(x, p[:4]), w, groups=4)


def two_channels_a_group(x, w, p):
    return nn.conv2d(nn.conv2d(x, np.concatenate([w, w], 1), groups=2), p)


def three_by_three_second(x, w, p):
    return nn.conv2d(nn.conv2d(x, w, groups=4), np.tile(p, (1, 1, 3, 3)))


def pointwise_with_groups(x, w, p):
    return nn.conv2d(nn.conv2d(x, w, groups=4), p[:4, :2], groups=2)


def pointwise_with_a_stride(x, w, p):
    return nn.conv2d(nn.conv2d(x, w, groups=4), p, stride=2)


def pooled_between(x, w, p):
    return nn.conv2d(nn.max_pool(nn.conv2d(x, w, groups=4), 2), p)


def residual_between(x, w, p):
    return nn.conv2d(nn.conv2d(x, w, padding=1, groups=4) + x, p)


LOOKALIKES = [
    pointwise_first, two_channels_a_group, three_by_three_second, pointwise_with_groups, pointwise_with_a_stride,
    pooled_between, residual_between,
]  # fmt: skip


@pytest.mark.parametrize("program", LOOKALIKES)
def test_what_is_no_pair_is_not_taken_for_one(program):
    _, pool = searched(program, SPECS)
    assert [m.id for m in pool.matches if m.pattern == "depthwise_pointwise"] == []
    assert [m.sentence for m in pool.near_misses if m.pattern == "depthwise_pointwise"] == []
