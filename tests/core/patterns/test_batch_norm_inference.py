from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.core.patterns.check import check, check_not, searched

X = {"x": "f64[3,4,5,2]", "mean": "f64[4]", "var": "f64[4]", "g": "f64[4]", "b": "f64[4]"}
ROWS = {"x": "f64[8,4]", "mean": "f64[4]", "var": "f64[4]", "g": "f64[4]", "b": "f64[4]"}
LAST = {"x": "f64[3,5,2,4]", "mean": "f64[4]", "var": "f64[4]", "g": "f64[4]", "b": "f64[4]"}


def _c(v: Any) -> Any:
    return v.reshape(1, 4, 1, 1)


def plain(x, mean, var, g, b):
    return (x - _c(mean)) / np.sqrt(_c(var) + 1e-5) * _c(g) + _c(b)


def reciprocal(x, mean, var, g, b):
    return _c(b) + _c(g) * ((x - _c(mean)) * _c(1 / np.sqrt(var + 1e-5)))


def folded(x, mean, var, g, b):
    k = g / np.sqrt(var + 1e-5)
    return x * _c(k) + _c(b - mean * k)


def folded_indexed(x, mean, var, g, b):
    k = (g * (var + 1e-5) ** -0.5)[:, None, None]
    return x * k + (b[:, None, None] - mean[:, None, None] * k)


def half_folded(x, mean, var, g, b):
    k = g * (1 / np.sqrt(var + 1e-5))
    return (x - _c(mean)) * _c(k) + _c(b)


def channels_to_the_end(x, mean, var, g, b):
    return ((x.transpose(0, 2, 3, 1) - mean) / np.sqrt(1e-5 + var) * g + b).transpose(0, 3, 1, 2)


def signs_turned(x, mean, var, g, b):
    return _c(b) - (_c(mean) - x) * _c(g / np.sqrt(var + 1e-5))


def broadcast_by_hand(x, mean, var, g, b):
    wide = [np.broadcast_to(_c(v), (3, 4, 5, 2)) for v in (mean, var, g, b)]
    return (x - wide[0]) / np.sqrt(wide[1] + 1e-5) * wide[2] + wide[3]


def of_a_product(x, mean, var, g, b):
    return (x * np.tanh(x) - _c(mean)) / np.sqrt(_c(var) + 1e-5) * _c(g) + _c(b)


@pytest.mark.parametrize(
    "spelling",
    [
        plain, reciprocal, folded, folded_indexed, half_folded, channels_to_the_end, signs_turned, broadcast_by_hand,
        of_a_product,
    ],
)  # fmt: skip
def test_every_spelling_over_images_is_one_batch_norm(spelling):
    match = check("batch_norm_inference", spelling, X, channels=4, epsilon=1e-5)
    assert set(match.bindings) == {"x", "mean", "variance", "scale", "shift"}
    assert not match.named


def test_rows_and_channels_last_are_batch_norms_too():
    def last(x, mean, var, g, b):
        return (x - mean) * (var + 1e-3) ** -0.5 * g + b

    check("batch_norm_inference", last, ROWS, channels=4, epsilon=1e-3)
    check("batch_norm_inference", last, LAST, channels=4, epsilon=1e-3)


def test_scale_and_shift_are_optional():
    def bare(x, mean, var):
        return (x - mean) / np.sqrt(var + 1e-5)

    specs = {name: ROWS[name] for name in ("x", "mean", "var")}
    assert set(check("batch_norm_inference", bare, specs).bindings) == {"x", "mean", "variance"}


def test_statistics_of_x_itself_belong_to_another_norm():
    def norm(x):
        d = x - x.mean(1, keepdims=True)
        return d / np.sqrt((d * d).mean(1, keepdims=True) + 1e-5)

    _, pool = searched(norm, {"x": "f64[8,4]"})
    assert [m for m in (*pool.matches, *pool.near_misses) if m.pattern == "batch_norm_inference"] == []


def outside(x, mean, var, g, b):
    return (x - mean) / (np.sqrt(var) + 1e-5) * g + b


def cast_variance(x, mean, var, g, b):
    return (x - mean) / np.sqrt((var + 1e-5).astype("f4").astype("f8")) * g + b


def another_axis(x, mean, var, g, b):
    return (x - mean) / np.sqrt(var[:, None] + 1e-5) * g + b


@pytest.mark.parametrize(
    ("program", "specs", "code"),
    [
        (outside, ROWS, "eps-outside-root"), (cast_variance, ROWS, "cast"),
        (another_axis, {**ROWS, "x": "f64[4,4]"}, "axis"),
    ],
)  # fmt: skip
def test_a_look_alike_is_refused_and_told_why(program, specs, code):
    check_not("batch_norm_inference", program, specs, code)
