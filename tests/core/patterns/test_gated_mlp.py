from __future__ import annotations

import numpy as np
import pytest

from tests.core.patterns.check import check, searched
from topos_core import nn
from topos_core.recording.elementary import erf

SPECS = {"x": "f64[3,8]", "wg": "f64[8,6]", "wu": "f64[8,6]", "wd": "f64[6,8]"}


def llama(x, wg, wu, wd):
    g = x @ wg
    return (g * (1 / (1 + np.exp(-g))) * (x @ wu)) @ wd


def commuted(x, wg, wu, wd):
    g = x @ wg
    return ((x @ wu) * (g / (1 + np.exp(-g)))) @ wd


def by_exp(x, wg, wu, wd):
    g = x @ wg
    e = np.exp(g)
    return (g * (x @ wu) * e / (1 + e)) @ wd


def by_power(x, wg, wu, wd):
    g, u = x @ wg, x @ wu
    return ((g * u) * ((1 + np.exp(-g)) ** -1)) @ wd


def by_tanh(x, wg, wu, wd):
    g = x @ wg
    return (0.5 * g * (np.tanh(g / 2) + 1) * (x @ wu)) @ wd


def by_nn(x, wg, wu, wd):
    return nn.gated_mlp(x, wg.T, wu.T, wd.T)


@pytest.mark.parametrize("spelling", [llama, commuted, by_exp, by_power, by_tanh, by_nn])
def test_every_spelling_by_silu_is_one_gated_layer(spelling):
    match = check("gated_mlp", spelling, SPECS)
    assert match.facts.activation == ("silu_of_exp" if spelling is by_exp else "silu")
    assert set(match.bindings) == {"x", "gate_weight", "up_weight", "down_weight"}


def gelu_erf(g):
    return 0.5 * g * (1 + erf(g / np.sqrt(2.0).item()))


def gelu_tanh(g):
    return nn.gelu(g, approximate="tanh")


@pytest.mark.parametrize(
    ("activation", "name"),
    [
        (gelu_erf, "gelu_erf"),
        (gelu_tanh, "gelu_tanh"),
        (nn.relu, "relu"),
        (nn.sigmoid, "sigmoid"),
        (nn.silu, "silu"),
        (lambda y: 0.5 * y + 0.5 * y * np.tanh(y / 2), "silu"),
        (lambda y: 0.5 * y + 0.5 * y * erf(y / 2**0.5), "gelu_erf"),
        (lambda y: 0.5 * y + 0.5 * y * np.tanh((2 / np.pi) ** 0.5 * (y + 0.044715 * y**3)), "gelu_tanh"),
        (lambda y: 0.5 * (np.tanh(0.5 * y) + 1), "sigmoid"),
        (lambda y: np.where(y < 0, np.exp(y) / (1 + np.exp(y)), 1 / (1 + np.exp(-y))), "sigmoid"),
        (lambda y: y * np.where(y >= 0, 1 / (1 + np.exp(-y)), np.exp(y) / (1 + np.exp(y))), "silu"),
        (lambda y: np.exp(-np.logaddexp(0, -y)), "sigmoid"),
        (lambda y: y * np.exp(-nn.softplus(-y)), "silu"),
    ],
)
def test_the_activation_may_be_another_one(activation, name):
    match = check("gated_mlp", lambda x, wg, wu, wd: (activation(x @ wg) * (x @ wu)) @ wd, SPECS)
    assert match.facts.activation == name


def test_biases_are_bound():
    def program(x, wg, wu, wd, bg, bu, bd):
        g = x @ wg + bg
        return (g / (1 + np.exp(-g)) * (x @ wu + bu)) @ wd + bd

    match = check("gated_mlp", program, {**SPECS, "bg": "f64[6]", "bu": "f64[6]", "bd": "f64[8]"})
    assert {"gate_bias", "up_bias", "down_bias"} <= set(match.bindings)


def split(x, w):
    g, u = np.split(x @ w, 2, -1)
    return g / (1 + np.exp(-g)) * u


def reshaped(x, w):
    h = (x @ w).reshape(3, 2, 5)
    return h[:, 0] / (np.exp(-h[:, 0]) + 1) * h[:, 1]


@pytest.mark.parametrize("spelling", [split, reshaped])
def test_both_sides_may_be_parts_of_one_product(spelling):
    match = check("gated_mlp", spelling, {"x": "f64[3,8]", "w": "f64[8,10]"})
    assert set(match.bindings) == {"x", "gate_weight", "up_weight"}
    assert match.bindings["gate_weight"] == match.bindings["up_weight"]
    assert set(match.facts.parts) == {"gate", "up"}


def other_source(x, y, wg, wu):
    g = x @ wg
    return g / (1 + np.exp(-g)) * (y @ wu)


def plain_silu(x, y, wg, wu):
    g = x @ wg
    return g / (1 + np.exp(-g))


def no_projection(x, y, wg, wu):
    return x / (1 + np.exp(-x)) * y


@pytest.mark.parametrize("program", [other_source, plain_silu, no_projection])
def test_what_is_no_gated_layer_is_not_taken_for_one(program):
    specs = {"x": "f64[3,8]", "y": "f64[3,8]", "wg": "f64[8,6]", "wu": "f64[8,6]"}
    _, pool = searched(program, specs)
    assert [m for m in pool.matches if m.pattern == "gated_mlp"] == []


@pytest.mark.parametrize("zero", [np.float64(-0.0), -np.zeros(6), -np.float64(0.0)])
def test_a_bound_of_minus_zero_is_no_relu(zero):
    def program(x, wg, wu, wd):
        return (np.maximum(x @ wg, zero) * (x @ wu)) @ wd

    _, pool = searched(program, SPECS)
    assert not [match for match in pool.matches if match.pattern == "gated_mlp"]
