"""Epilogues are read by structure: commuted, with movement between, in the order bias, norm, residual, activation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

import topos_core as tp
from tests.core.matching.check import check, inputs_of, matches_of

IMAGE, KERNEL, VECTOR = "f32[2,3,6,6]", "f32[4,3,3,3]", "f32[4]"


def convolved(x, w):
    return np.einsum("bchwij,ocij->bohw", sliding_window_view(x, (3, 3), axis=(2, 3)), w)


def last(function, **specs):
    """Gives the facts and bindings of the match at the program's result."""
    tape, pool = check(function, specs)
    (match,) = (m for m in matches_of(pool, "conv_bn_activation") if m.root == tape.results[0])
    return tape, match


def biased_before_the_reshape(x, w, b):
    u = sliding_window_view(x, (3, 3), axis=(2, 3)).transpose(0, 2, 3, 1, 4, 5).reshape(32, 27)
    y = u @ w.transpose(1, 2, 3, 0).reshape(27, 4) + b
    return np.maximum(y.reshape(2, 4, 4, 4).transpose(0, 3, 1, 2), 0)


def biased_after(x, w, b):
    return np.maximum(0, b[None, :, None, None] + convolved(x, w))


def biased_by_part_of_a_vector(x, w, b):
    return np.maximum(convolved(x, w) + b[2:6].reshape(1, 4, 1, 1), 0)


@pytest.mark.parametrize(
    ("function", "bias"),
    [(biased_before_the_reshape, VECTOR), (biased_after, VECTOR), (biased_by_part_of_a_vector, "f32[8]")],
)
def test_bias_and_relu_are_found_in_any_order_of_movement(function, bias):
    tape, match = last(function, x=IMAGE, w=KERNEL, b=bias)
    assert (match.facts.bias, match.facts.activation, match.facts.residual) == (True, "relu", False)
    assert tape.type_of(match.bindings["bias"]).size == 4
    assert match.facts.result.roles == ("b", "f", "0", "1")


@pytest.mark.parametrize(
    ("name", "activation"),
    [
        ("relu", lambda y: np.maximum(y, 0)),
        ("relu", lambda y: np.where(y <= 0, 0, y)),
        ("relu_where_positive", lambda y: np.where(y > 0, y, 0)),
        ("relu6", lambda y: np.clip(y, 0, 6)),
        ("relu6", lambda y: np.minimum(6, np.maximum(0, y))),
        ("tanh", np.tanh),
        ("sigmoid", lambda y: 1 / (1 + np.exp(-y))),
        ("silu", lambda y: y * (1 / (1 + np.exp(-y)))),
        ("silu", lambda y: y / (np.exp(-y) + 1)),
        ("hardswish", lambda y: y * np.clip(y + 3, 0, 6) / 6),
        ("gelu_tanh", lambda y: 0.5 * y * (1 + np.tanh(math.sqrt(2 / math.pi) * (y + 0.044715 * y**3)))),
        ("gelu_tanh", lambda y: (y * 0.5) * (np.tanh((y * y * y * 0.044715 + y) * 0.7978845608028654) + 1)),
        ("gelu_sigmoid", lambda y: y / (1 + np.exp(-1.702 * y))),
    ],
)
def test_activations_are_named(name, activation):
    _, match = last(lambda x, w: activation(convolved(x, w)), x=IMAGE, w=KERNEL)
    assert match.facts.activation == name


@pytest.mark.parametrize(
    "other",
    [
        lambda y: np.maximum(y, 0.1 * y),
        lambda y: np.maximum(y, 1),
        lambda y: 0.5 * y * (1 + np.tanh(0.7979 * (y + 0.044715 * y**3))),
        lambda y: 0.5 * y * (1 + np.tanh(math.sqrt(2 / math.pi) * (y + 0.044715 * y**2))),
        lambda y: y / (1 + np.exp(y)),
    ],
)
def test_other_functions_are_no_activations(other):
    tape, pool = check(lambda x, w: other(convolved(x, w)), {"x": IMAGE, "w": KERNEL})
    assert not [m for m in matches_of(pool, "conv_bn_activation") if m.root == tape.results[0]]


def test_a_residual_is_bound_as_it_is():
    def block(x, w, b, r):
        return np.maximum(r + (convolved(x, w) + b[:, None, None]), 0)

    tape, match = last(block, x=IMAGE, w=KERNEL, b=VECTOR, r="f32[2,4,4,4]")
    assert match.facts.residual
    assert match.bindings["residual"] == tape.inputs[3]


def test_a_residual_never_depends_on_its_own_convolution():
    def own(x, w):
        y = convolved(x, w)
        return y + np.sin(y)

    _, pool = check(own, {"x": IMAGE, "w": KERNEL})
    assert not matches_of(pool, "conv_bn_activation")


def test_the_sum_of_two_convolutions_is_the_later_one_with_a_residual():
    def shortcut(x, w, v):
        return np.maximum(convolved(x, w) + convolved(x, v), 0)

    tape, match = last(shortcut, x=IMAGE, w=KERNEL, v=KERNEL)
    assert tape.ops[match.bindings["residual"]].name in ("reshape", "permute", "matmul")


def test_taps_of_one_convolution_are_no_residuals_of_each_other():
    def shifted(x, w):
        total = 0
        for i in range(3):
            for j in range(3):
                total = total + np.einsum("bchw,oc->bohw", x[:, :, i : i + 4, j : j + 4], w[:, :, i, j])
        return np.maximum(total, 0)

    _, pool = check(shifted, {"x": IMAGE, "w": KERNEL})
    (match,) = matches_of(pool, "conv_bn_activation")
    assert match.facts.activation == "relu"
    assert match.facts.convolution.windows[0].size == 3


def test_a_bias_along_another_axis_is_a_residual():
    def by_column(x, w, b):
        return convolved(x, w) + b

    _, match = last(by_column, x=IMAGE, w=KERNEL, b=VECTOR)
    assert (match.facts.bias, match.facts.residual) == (False, True)


def test_grouped_results_keep_groups_above_features():
    def grouped(x, w, b):
        u = sliding_window_view(x, (3, 3), axis=(2, 3)).reshape(2, 2, 2, 4, 4, 3, 3)
        y = np.einsum("bgchwij,gocij->bgohw", u, w.reshape(2, 3, 2, 3, 3)).reshape(2, 6, 4, 4)
        return np.maximum(y + b[:, None, None], 0)

    _, match = last(grouped, x="f32[2,4,6,6]", w="f32[6,2,3,3]", b="f32[6]")
    assert match.facts.result.roles == ("b", "g", "f", "0", "1")


def column(a):
    return a[:, None, None]


def norm_as_written(x, w, m, v, s, t):
    return (convolved(x, w) - column(m)) / np.sqrt(column(v) + 1e-5) * column(s) + column(t)


def norm_as_scale_and_shift(x, w, m, v, s, t):
    k = s / np.sqrt(v + 1e-5)
    return convolved(x, w) * column(k) + column(t - m * k)


def norm_by_reciprocal(x, w, m, v, s, t):
    return column(t) + column(s) * ((convolved(x, w) - column(m)) * column(1 / np.sqrt(1e-5 + v)))


def norm_by_power(x, w, m, v, s, t):
    return column((v + 1e-5) ** -0.5 * s) * (convolved(x, w) - column(m)) + column(t)


def norm_before_the_reshape(x, w, m, v, s, t):
    u = sliding_window_view(x, (3, 3), axis=(2, 3)).transpose(0, 2, 3, 1, 4, 5).reshape(32, 27)
    y = u @ w.transpose(1, 2, 3, 0).reshape(27, 4)
    y = (y - m) / np.sqrt(v + 1e-5)
    return y.reshape(2, 4, 4, 4).transpose(0, 3, 1, 2) * column(s) + column(t)


NORMS = [norm_as_written, norm_as_scale_and_shift, norm_by_reciprocal, norm_by_power, norm_before_the_reshape]


@pytest.mark.parametrize("function", NORMS, ids=lambda f: f.__name__)
def test_a_batch_norm_is_found_in_any_spelling(function):
    tape, match = last(
        lambda x, w, m, v, s, t: np.maximum(function(x, w, m, abs(v), s, t), 0),
        x=IMAGE, w=KERNEL, m=VECTOR, v=VECTOR, s=VECTOR, t=VECTOR,
    )  # fmt: skip
    assert match.facts.norm == pytest.approx(1e-5)
    assert match.facts.activation == "relu"
    names = {name: tape.names.get(value) for name, value in match.bindings.items() if name.startswith("bn_")}
    assert names == {"bn_mean": "m", "bn_variance": None, "bn_scale": "s", "bn_shift": "t"}


def by_vectors(mean, variance, scale, shift):
    """Writes a batch norm of vectors that are made of others: `(m, v, s, t)` to what stands in its formula."""

    def function(x, w, m, v, s, t):
        mu, var, gamma, beta = (column(made(m, v, s, t)) for made in (mean, variance, scale, shift))
        return (convolved(x, w) - mu) / np.sqrt(var + 1e-3) * gamma + beta

    return function


def folded_by_sums(x, w, m, v, s, t):
    k = (1 + s) / np.sqrt(v * v + 1e-3)
    return convolved(x, w) * column(k) + column(t - (m + t) * k)


def mean_added(x, w, m, v, s, t):
    return (convolved(x, w) + column(-m)) / np.sqrt(column(v) + 1e-3) * column(s) + column(t)


M, V, S, T = (lambda *vectors, k=k: vectors[k] for k in range(4))
MADE = {
    "a squared deviation": by_vectors(M, lambda m, v, s, t: v * v, S, T),
    "a deviation to a power": by_vectors(M, lambda m, v, s, t: v**2, S, T),
    "a sum of variances": by_vectors(M, lambda m, v, s, t: v + s * s, S, T),
    "a multiple": by_vectors(M, lambda m, v, s, t: 2 * v, S, T),
    "a scale around 1": by_vectors(M, V, lambda m, v, s, t: 1 + s, T),
    "a product as mean": by_vectors(lambda m, v, s, t: s * m, V, S, T),
    "sums": by_vectors(lambda m, v, s, t: m + t, V, lambda m, v, s, t: s * 3, lambda m, v, s, t: t - s),
    "a mean that is added": mean_added,
    "folded": folded_by_sums,
}


@pytest.mark.parametrize("function", MADE.values(), ids=MADE)
def test_vectors_of_a_norm_may_be_made_of_others_and_one_kernel_has_it_all(function):
    tape, match = last(function, x=IMAGE, w=KERNEL, m=VECTOR, v=VECTOR, s=VECTOR, t=VECTOR)
    assert match.facts.norm == pytest.approx(1e-3)
    assert not match.facts.steps
    plan = tp.plan(tape, cost="always", machine="reference")
    assert match.id in [d.match.id for d in plan.taken]
    assert "conv_bn_activation" not in [d.match.pattern for d in plan.declined]


def test_a_vector_that_is_multiplied_in_and_out_again_is_no_part_of_a_norm():
    def function(x, w, m, v, s, t):
        return (convolved(x, w) - column(m)) / np.sqrt(column(v) + 1e-3) * column(s) / column(t) * column(t)

    tape, pool = check(function, {"x": IMAGE, "w": KERNEL, "m": VECTOR, "v": VECTOR, "s": VECTOR, "t": VECTOR})
    assert not [m for m in matches_of(pool, "conv_bn_activation") if m.root == tape.results[0]]


def test_bias_norm_residual_and_relu_stand_in_one_match():
    def block(x, w, b, m, v, s, t, r):
        y = convolved(x, w) + column(b)
        return np.maximum((y - column(m)) / np.sqrt(column(abs(v)) + 1e-5) * column(s) + column(t) + r, 0)

    _, match = last(block, x=IMAGE, w=KERNEL, b=VECTOR, m=VECTOR, v=VECTOR, s=VECTOR, t=VECTOR, r="f32[2,4,4,4]")
    facts = match.facts
    assert (facts.bias, facts.norm is not None, facts.residual, facts.activation) == (True, True, True, "relu")
    assert set(match.bindings) == {
        "x", "kernel", "bias", "bn_mean", "bn_variance", "bn_scale", "bn_shift", "residual",
    }  # fmt: skip


@pytest.mark.parametrize(
    "function",
    [
        lambda x, w, m, v: (convolved(x, w) - column(m)) / (np.sqrt(column(abs(v))) + 1e-5),
        lambda x, w, m, v: (convolved(x, w) - column(m)) / column(abs(v) + 1e-5),
        lambda x, w, m, v: (convolved(x, w) + column(m)) / np.sqrt(column(abs(v)) + 1e-5),
        lambda x, w, m, v: convolved(x, w) / np.sqrt(column(abs(v)) + 1e-5),
    ],
    ids=["epsilon outside the root", "no root", "mean added", "no mean"],
)
def test_near_norms_are_no_norms(function):
    _, pool = check(function, {"x": IMAGE, "w": KERNEL, "m": VECTOR, "v": VECTOR})
    assert not [m for m in matches_of(pool, "conv_bn_activation") if m.facts.norm is not None]


def test_a_norm_folded_beforehand_is_read_step_by_step():
    def block(x, w, m, d, s, t):
        return np.maximum((convolved(x, w) - column(m)) / column(d) * column(s) + column(t), 0)

    tape, match = last(block, x=IMAGE, w=KERNEL, m=VECTOR, d=VECTOR, s=VECTOR, t=VECTOR)
    assert (match.facts.norm, match.facts.steps) == (None, ("sub", "div", "mul", "add"))
    assert [match.bindings[f"step{k}"] for k in range(4)] == list(tape.inputs[2:])


def test_a_bias_stands_before_the_steps():
    def block(x, w, b, s, t):
        return (convolved(x, w) + column(b)) * column(s) + column(t)

    _, match = last(block, x=IMAGE, w=KERNEL, b=VECTOR, s=VECTOR, t=VECTOR)
    assert (match.facts.bias, match.facts.steps) == (True, ("mul", "add"))


def test_a_vector_divided_or_reduced_by_the_convolution_is_no_step():
    for function in (lambda x, w, s: column(s) / convolved(x, w), lambda x, w, s: column(s) - convolved(x, w)):
        _, pool = check(function, {"x": IMAGE, "w": KERNEL, "s": VECTOR})
        assert not matches_of(pool, "conv_bn_activation")


def test_a_residual_may_come_last():
    def block(x, w, b, r):
        return r + np.clip(convolved(x, w) + column(b), 0, 6)

    _, match = last(block, x=IMAGE, w=KERNEL, b=VECTOR, r="f32[2,4,4,4]")
    assert (match.facts.activation, match.facts.residual, match.facts.residual_last) == ("relu6", True, True)


def taps(x, w):
    return [
        np.einsum("bchw,oc->bohw", x[:, :, i : i + 4, j : j + 4], w[:, :, i, j]) for i in range(3) for j in range(3)
    ]


@pytest.mark.parametrize("place", range(10))
def test_a_bias_may_stand_anywhere_among_the_taps(place):
    def function(x, w, b):
        terms = taps(x, w)
        terms.insert(place, b[:, None, None])
        return np.maximum(sum(terms), 0)

    tape, match = last(function, x=IMAGE, w=KERNEL, b=VECTOR)
    assert (match.facts.bias, match.facts.residual, match.facts.activation) == (True, False, "relu")
    assert match.facts.among == (place < 9)  # after the last tap: the taps have a value of their own
    assert [window.size for window in match.facts.convolution.windows] == [3, 3]
    plan = tp.plan(tape, cost="always")
    assert [one.match.pattern for one in plan.taken] == ["conv_bn_activation"]
    assert not plan.near_misses


@pytest.mark.parametrize("first", ["x", "r", "zeros"])
def test_a_sum_of_taps_may_begin_with_a_residual(first):
    zeros = np.zeros((2, 4, 4, 4), np.float32)

    def function(x, w, b, r):
        begin = {"x": x[:, :1, 1:5, 1:5], "r": r, "zeros": zeros}[first]
        return sum(taps(x, w), begin + b[:, None, None])

    _, match = last(function, x=IMAGE, w=KERNEL, b=VECTOR, r="f32[2,4,4,4]")
    assert (match.facts.bias, match.facts.residual, match.facts.among) == (True, True, True)


def test_what_begins_with_a_bias_and_leaves_a_tap_out_is_no_convolution():
    def function(x, w, b):
        return sum(taps(x, w)[:8], b[:, None, None])

    _, pool = check(function, {"x": IMAGE, "w": KERNEL, "b": VECTOR})
    assert not [match for match in matches_of(pool, "conv_bn_activation") if match.facts.among]


def test_three_more_terms_among_the_taps_are_too_many():
    def function(x, w, b, r, s):
        return sum(taps(x, w), b[:, None, None] + r + s)

    specs = {"x": IMAGE, "w": KERNEL, "b": VECTOR, "r": "f32[2,4,4,4]", "s": "f32[2,4,4,4]"}
    _, pool = check(function, specs)
    assert not [match for match in matches_of(pool, "conv_bn_activation") if match.facts.among]


def test_a_residual_made_from_one_of_the_taps_leaves_that_tap_shared():
    def function(x, w):
        terms = taps(x, w)
        return sum(terms, np.tanh(terms[4]))

    tape, _ = check(function, {"x": IMAGE, "w": KERNEL})
    plan = tp.plan(tape, cost="always")
    assert not [one for one in plan.taken if one.match.pattern == "conv_bn_activation" and one.match.facts.among]
    arrays = inputs_of(tape, 1)
    np.testing.assert_allclose(plan.run(*arrays), function(*arrays), rtol=1e-5, atol=1e-5)
