from __future__ import annotations

import math

import numpy as np
import pytest

from tests.core.patterns.check import check, check_not, named, searched

X = {"x": "f64[4,5,6]", "w": "f64[6]"}


def llama(x, w):
    return w * (x * (1 / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6)))


def quotient(x, w):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * w


def axes_not_kept(x, w):
    r = ((x * x).sum(-1) / 6 + 1e-6) ** -0.5
    return x * r[..., None] * w


def einsum(x, w):
    return x / np.sqrt(np.einsum("btc,btc->bt", x, x) / 6 + 1e-6).reshape(4, 5, 1) * w


def l2(x, w):
    return w * (x * math.sqrt(6) / np.sqrt((x * x).sum(-1, keepdims=True) + 6e-6))


def matrix_product(x, w):
    y = x.reshape(20, 1, 6)
    return (y / np.sqrt((y @ y.swapaxes(1, 2)) / 6 + 1e-6)).reshape(4, 5, 6) * w


def np_abs(x, w):
    return x / np.sqrt((np.abs(x) * np.abs(x)).mean(-1, keepdims=True) + 1e-6) * w


def np_square(x, w):
    return x / np.sqrt(np.mean(np.square(x), axis=-1, keepdims=True) + 1e-6) * w


def residual(x, w):
    y = x + np.tanh(x)
    return w * (y / np.sqrt((y * y).mean(-1, keepdims=True) + 1e-6))


@pytest.mark.parametrize(
    "spelling", [llama, quotient, axes_not_kept, einsum, l2, matrix_product, np_square, np_abs, residual]
)
def test_every_spelling_is_one_rms_norm(spelling):
    match = check("rms_norm", spelling, X)
    assert set(match.bindings) == {"x", "scale"}
    assert match.facts.constants["epsilon"] == pytest.approx(1e-6)


def test_the_scale_is_optional():
    def norm(x):
        return x / np.sqrt(1e-6 + (x * x).mean(-1, keepdims=True))

    check("rms_norm", norm, {"x": "f64[4,5,6]"})


def test_x_may_be_widened_before():
    def norm(x):
        y = x.astype("f8")
        return y / np.sqrt((y * y).mean(-1, keepdims=True) + 1e-6)

    check("rms_norm", norm, {"x": "f32[4,5,6]"})


def test_heads_may_lie_inside_the_features():
    def norm(x, w):
        y = x.reshape(2, 5, 3, 4)
        return (y / np.sqrt((y * y).mean(-1, keepdims=True) + 1e-6) * w).reshape(2, 5, 12)

    match = check("rms_norm", norm, {"x": "f64[2,5,12]", "w": "f64[4]"})
    assert match.facts.extents == {"k": 30, "n": 4}


def test_a_centred_value_makes_a_layer_norm_instead():
    def norm(x, w):
        d = x - x.mean(-1, keepdims=True)
        return d / np.sqrt((d * d).mean(-1, keepdims=True) + 1e-6) * w

    _, pool = searched(norm, X)
    assert named(pool) == {"layer_norm"}


def another_power(x, w):
    return x * ((x * x).mean(-1, keepdims=True) + 1e-6) ** -0.4999 * w


def divisor(x, w):
    return x / np.sqrt((x * x).sum(-1, keepdims=True) / 5 + 1e-6) * w


def outside(x, w):
    return x / (np.sqrt((x * x).mean(-1, keepdims=True)) + 1e-6) * w


def root_of_a_root(x, w):
    r = np.sqrt((x * x).mean(-1, keepdims=True))
    return x / np.sqrt(r * np.sqrt((x * x).mean(-1, keepdims=True)) * 1.1 + 1e-6) * w


@pytest.mark.parametrize(
    ("program", "code"), [(another_power, "exponent"), (divisor, "divisor"), (outside, "eps-outside-root")]
)
def test_a_look_alike_is_refused_and_told_why(program, code):
    check_not("rms_norm", program, X, code)


def test_a_product_of_roots_is_no_mean_square():
    _, pool = searched(root_of_a_root, X)
    assert [m for m in pool.matches if m.pattern == "rms_norm"] == []


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_a_mean_of_half_precision_is_summed_in_single_precision(kind):
    def norm(x, g):
        return x / np.sqrt(np.mean(x * x, -1, keepdims=True) + 1e-3) * g

    check("rms_norm", norm, {"x": f"{kind}[4,6]", "g": f"{kind}[6]"})
