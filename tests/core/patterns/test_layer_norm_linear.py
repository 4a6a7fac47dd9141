from __future__ import annotations

import numpy as np
import pytest

import topos_core as tp
from tests.core.patterns.check import check, searched
from topos_core import nn

SPECS = {"x": "f64[4,5,6]", "scale": "f64[6]", "shift": "f64[6]", "w": "f64[6,7]", "b": "f64[7]"}


def by_nn(x, scale, shift, w, b):
    return nn.layer_norm(x, scale, shift) @ w + b


def by_einsum(x, scale, shift, w, b):
    return b + np.einsum("btd,dn->btn", nn.layer_norm(x, scale, shift), w)


def flattened(x, scale, shift, w, b):
    return nn.layer_norm(x, scale, shift).reshape(-1, 6) @ w + b


def flattened_before(x, scale, shift, w, b):
    return nn.layer_norm(x.reshape(20, 6), scale, shift) @ w + b


def by_hand(x, scale, shift, w, b):
    centred = x - x.sum(-1, keepdims=True) / 6
    variance = (centred**2).mean(-1, keepdims=True)
    return (scale * centred * (variance + 1e-5) ** -0.5 + shift) @ w + b


def weight_transposed(x, scale, shift, w, b):
    return nn.linear(nn.layer_norm(x, scale, shift), w.T, b)


@pytest.mark.parametrize("spelling", [by_nn, by_einsum, flattened, flattened_before, by_hand, weight_transposed])
def test_every_spelling_is_one_layer(spelling):
    match = check("layer_norm_linear", spelling, SPECS)
    assert set(match.bindings) == {"x", "scale", "shift", "weight", "bias"}
    assert len(match.named["norm"]) == 1


@pytest.mark.parametrize(("activation", "name"), [(nn.relu, "relu"), (nn.gelu, "gelu_erf"), (nn.silu, "silu")])
def test_an_activation_belongs_to_the_layer(activation, name):
    match = check("layer_norm_linear", lambda x, scale, shift, w, b: activation(by_nn(x, scale, shift, w, b)), SPECS)
    assert match.facts.linear.options["activation"] == name


def test_the_norm_may_have_other_readers():
    def program(x, scale, shift, w, b):
        y = nn.layer_norm(x, scale, shift)
        return y @ w + b, y @ w.swapaxes(0, 1).T, y

    _, pool = searched(program, SPECS)
    found = [m for m in pool.matches if m.pattern == "layer_norm_linear" and "shift" in m.bindings]
    assert {m.named["norm"] for m in found} == {found[0].named["norm"]}
    assert len({m.root for m in found}) == 3  # both layers, and the first one without its bias


def another_axis(x, scale, shift, w, b):
    return nn.layer_norm(x, scale, shift).swapaxes(1, 2) @ w[:5]


def two_axes(x, scale, shift, w, b):
    centred = x - x.mean((1, 2), keepdims=True)
    return centred / np.sqrt((centred * centred).mean((1, 2), keepdims=True) + 1e-5) @ w


def residual_between(x, scale, shift, w, b):
    return (nn.layer_norm(x, scale, shift) + x) @ w


def activated_between(x, scale, shift, w, b):
    return nn.relu(nn.layer_norm(x, scale, shift)) @ w


def rms(x, scale, shift, w, b):
    return nn.rms_norm(x, scale) @ w


def sample_variance(x, scale, shift, w, b):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True, ddof=1) + 1e-5) * scale @ w


@pytest.mark.parametrize("program", [another_axis, two_axes, residual_between, activated_between, rms, sample_variance])
def test_what_is_no_such_layer_is_not_taken_for_one(program):
    _, pool = searched(program, SPECS)
    assert [m.id for m in pool.matches if m.pattern == "layer_norm_linear"] == []


def test_a_norm_is_written_back_for_those_who_read_it():
    def alone(x, scale, shift, w):
        return nn.layer_norm(x, scale, shift) @ w

    def read_again(x, scale, shift, w):
        y = nn.layer_norm(x, scale, shift)
        return y @ w, y

    specs = {name: spec.replace("f64", "f32") for name, spec in SPECS.items() if name != "b"}
    for program, told in ((alone, False), (read_again, True)):
        plan = tp.plan(tp.trace(program, **specs), machine="reference", cost="always")
        (taken,) = plan.taken
        assert taken.match.pattern == "layer_norm_linear"
        assert ("writes back norm" in plan.describe()) == told
