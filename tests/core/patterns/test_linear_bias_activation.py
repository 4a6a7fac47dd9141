from __future__ import annotations

import numpy as np
import pytest

from tests.core.patterns.check import check, searched
from topos_core import nn
from topos_core.recording.elementary import erf

XWB = {"x": "f64[4,5]", "w": "f64[5,6]", "b": "f64[6]"}


@pytest.mark.parametrize(
    ("activation", "name"),
    [
        (lambda y: np.maximum(y, 0), "relu"), (lambda y: np.maximum(0.0, y), "relu"), (nn.relu6, "relu6"),
        (np.tanh, "tanh"), (nn.sigmoid, "sigmoid"), (nn.silu, "silu"), (nn.hardswish, "hardswish"),
        (lambda y: 0.5 * y * (1 + erf(y / np.sqrt(2.0).item())), "gelu_erf"),
        (lambda y: y * (1 + erf(y / np.sqrt(2.0).item())) * 0.5, "gelu_erf"),
        (lambda y: 0.5 * y * (1 - erf(-y * np.sqrt(0.5).item())), "gelu_erf"),
        (lambda y: y * (np.broadcast_to(np.array(1.0), (4, 6)) - np.tanh(-0.5 * y)) / 2, "silu"),
        (lambda y: np.maximum(y, np.broadcast_to(np.zeros((), y.dtype), (4, 6))), "relu"),
        (lambda y: nn.gelu(y, approximate="tanh"), "gelu_tanh"),
        (lambda y: nn.gelu(y, approximate="sigmoid"), "gelu_sigmoid"),
        (lambda y: np.exp(-np.logaddexp(0, -y)), "sigmoid"),
        (lambda y: np.where(y >= 0, 1 / (1 + np.exp(-y)), np.exp(y) / (1 + np.exp(y))), "sigmoid"),
        (lambda y: y * np.exp(-nn.softplus(-y)), "silu"),
        (lambda y: y * np.where(y < 0, np.exp(1.702 * y) / (1 + np.exp(1.702 * y)), 1 / (1 + np.exp(-1.702 * y))), "gelu_sigmoid"),
        (lambda y: y * np.exp(-np.logaddexp(0, -1.702 * y)), "gelu_sigmoid"),
    ],
)  # fmt: skip
def test_every_activation_joins_its_layer(activation, name):
    match = check("linear_bias_activation", lambda x, w, b: activation(x @ w + b), XWB)
    assert match.facts.options == {"activation": name}
    assert set(match.bindings) == {"x", "w", "bias"}


def einsum(x, w, b):
    return np.maximum(np.einsum("bi,io->bo", x, w) + b, 0)


def multiply_and_sum(x, w, b):
    return np.maximum((x[:, :, None] * w[None]).sum(1) + b, 0)


def columns(x, w, b):
    return np.maximum(w.T @ x.T + b.reshape(6, 1), 0)


@pytest.mark.parametrize("spelling", [einsum, multiply_and_sum, columns])
def test_the_layer_may_be_spelled_as_it_is(spelling):
    check("linear_bias_activation", spelling, XWB)


def test_the_bias_is_optional():
    match = check("linear_bias_activation", lambda x, w: np.maximum(x @ w, 0), {"x": "f64[4,5]", "w": "f64[5,6]"})
    assert set(match.bindings) == {"x", "w"}


@pytest.mark.parametrize(
    "program",
    [lambda x, w, b: np.maximum(x @ w + b, 0.1), lambda x, w, b: np.maximum(x, 0) @ w + b, lambda x, w, b: x @ w + b],
)
def test_another_threshold_or_no_activation_is_none(program):
    _, pool = searched(program, XWB)
    assert [m for m in pool.matches if m.pattern == "linear_bias_activation"] == []
