from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.core.patterns.check import check, check_not, searched
from topos_core.matching.facts import Layout
from topos_core.tape.type import numpy_dtype

X = {"x": "f64[3,4,5,2]", "g": "f64[4]", "b": "f64[4]"}
ROWS = {"x": "f64[8,4]", "g": "f64[4]", "b": "f64[4]"}
LAST = {"x": "f64[3,5,2,4]", "g": "f64[4]", "b": "f64[4]"}


def _c(v: Any) -> Any:
    return v.reshape(1, 4, 1, 1)


def nchw(x, g, b):
    m = x.mean((0, 2, 3), keepdims=True)
    v = ((x - m) ** 2).mean((0, 2, 3), keepdims=True)
    return (x - m) / np.sqrt(v + 1e-5) * _c(g) + _c(b)


def numpy_statistics(x, g, b):
    axes = (0, 2, 3)
    return (x - np.mean(x, axes, keepdims=True)) / np.sqrt(np.var(x, axes, keepdims=True) + 1e-5) * _c(g) + _c(b)


def standard_deviation_is_folded(x, g, b):
    m = x.mean((0, 2, 3))
    d = x - _c(m)
    s = g * (1 / np.sqrt((d * d).mean((0, 2, 3)) + 1e-5))
    return d * _c(s) + _c(b)


def folded_affine(x, g, b):
    m, v = x.mean((0, 2, 3)), x.var((0, 2, 3))
    k = g / np.sqrt(v + 1e-5)
    return x * _c(k) + _c(b - m * k)


def folded_affine_indexed(x, g, b):
    m, v = x.mean((0, 2, 3)), x.var((0, 2, 3))
    k = (v + 1e-5) ** -0.5 * g
    return (b - m * k)[:, None, None] + k[:, None, None] * x


def flattened_rows(x, g, b):
    y = x.transpose(1, 0, 2, 3).reshape(4, 30)
    d = y - y.mean(1, keepdims=True)
    z = d / np.sqrt((d**2).mean(1, keepdims=True) + 1e-5) * g[:, None] + b[:, None]
    return z.reshape(4, 3, 5, 2).transpose(1, 0, 2, 3)


def channels_to_the_end(x, g, b):
    y = x.transpose(0, 2, 3, 1).reshape(-1, 4)
    d = y - y.mean(0)
    return (d * ((d * d).mean(0) + 1e-5) ** -0.5 * g + b).reshape(3, 5, 2, 4).transpose(0, 3, 1, 2)


def sums_axis_by_axis(x, g, b):
    m = x.sum(0, keepdims=True).sum(2, keepdims=True).sum(3, keepdims=True) * (1 / 30)
    d = x - m
    v = (d * d).sum(3, keepdims=True).sum(2, keepdims=True).sum(0, keepdims=True) / 30
    return d / np.sqrt(v + 1e-5) * _c(g) + _c(b)


def signs_turned(x, g, b):
    m = x.mean((0, 2, 3), keepdims=True)
    d = m - x
    return -(d * (1 / ((d * d).mean((0, 2, 3), keepdims=True) + 1e-5) ** 0.5) * _c(g) - _c(b))


def einsum_variance(x, g, b):
    d = x - x.mean((0, 2, 3), keepdims=True)
    v = np.einsum("bchw,bchw->c", d, d) / 30
    return d / np.sqrt(_c(v) + 1e-5) * _c(g) + _c(b)


def reciprocal_count(x, g, b):
    m = x.sum((0, 2, 3)) * (1 / 30)
    d = x - _c(m)
    return d * _c(g * (1e-5 + (d * d).sum((0, 2, 3)) * (1 / 30)) ** -0.5) + _c(b)


def no_affine(x, g, b):
    d = x - x.mean((0, 2, 3), keepdims=True)
    return d / np.sqrt((d * d).mean((0, 2, 3), keepdims=True) + 1e-5)


def shift_only(x, g, b):
    d = x - x.mean((0, 2, 3), keepdims=True)
    return d / np.sqrt((d * d).mean((0, 2, 3), keepdims=True) + 1e-5) + _c(b)


def centred_first(x, g, b):
    x = x - x.mean((0, 2, 3), keepdims=True)
    return x / np.sqrt(x.var((0, 2, 3), keepdims=True) + 1e-5) * g[:, None, None] + b[:, None, None]


def rows(x, g, b):
    d = x - x.mean(0)
    return g * d / np.sqrt((d * d).mean(0) + 1e-5) + b


def square(x, g, b):
    d = x - x.mean(0)
    return b + d / (((d * d).sum(0) / 8 + 1e-5) ** 0.5) * g


def channels_last(x, g, b):
    d = x - x.mean((0, 1, 2))
    return d * (np.var(x, (0, 1, 2)) + 1e-5) ** -0.5 * g + b


def of_a_sum(x, g, b):
    y = x + np.tanh(x)
    d = y - y.mean((0, 2, 3), keepdims=True)
    return d / np.sqrt((d * d).mean((0, 2, 3), keepdims=True) + 1e-5) * _c(g) + _c(b)


def of_a_product(x, g, b):
    y = x * np.tanh(x) * 2.0
    d = y - y.mean((0, 2, 3), keepdims=True)
    return d / np.sqrt((d * d).mean((0, 2, 3), keepdims=True) + 1e-5) * _c(g) + _c(b)


@pytest.mark.parametrize(
    "spelling",
    [
        nchw, centred_first, numpy_statistics, standard_deviation_is_folded, folded_affine, folded_affine_indexed, flattened_rows,
        channels_to_the_end, sums_axis_by_axis, signs_turned, einsum_variance, reciprocal_count, of_a_sum, of_a_product,
    ],
)  # fmt: skip
def test_every_spelling_over_images_is_one_batch_norm(spelling):
    match = check("batch_norm_training", spelling, X, channels=4, count=30, epsilon=1e-5)
    assert set(match.bindings) == {"x", "scale", "shift"}
    assert set(match.named) == {"mean", "variance"}


@pytest.mark.parametrize("spelling", [rows, square])
def test_rows_are_normalised_by_column(spelling):
    match = check("batch_norm_training", spelling, ROWS, channels=4, count=8)
    assert match.facts.image == Layout((8, 4), ("n", "c"), (0, 0))


def test_channels_may_come_last():
    match = check("batch_norm_training", channels_last, LAST, channels=4, count=30)
    assert match.facts.image.roles[-1] == "c"


@pytest.mark.parametrize(("spelling", "holes"), [(no_affine, {"x"}), (shift_only, {"x", "shift"})])
def test_scale_and_shift_are_optional(spelling, holes):
    assert set(check("batch_norm_training", spelling, X).bindings) == holes


@pytest.mark.parametrize(
    ("spelling", "dtype"),
    [
        (nchw, "f32"),
        (numpy_statistics, "f32"),
        (reciprocal_count, "f32"),
        (reciprocal_count, "f16"),
        (reciprocal_count, "bf16"),
    ],
)
def test_constants_compare_at_their_dtype(spelling, dtype):
    specs = {name: spec.replace("f64", dtype) for name, spec in X.items()}
    match = check("batch_norm_training", spelling, specs)
    held = numpy_dtype(dtype)
    assert match.facts.epsilon == pytest.approx(float(held.type(1e-5)), rel=float(ml_dtypes.finfo(held).eps))


def test_a_mean_computed_twice_is_one_mean_with_two_producers():
    match = check("batch_norm_training", numpy_statistics, X)
    assert len(match.named["mean"]) == 2
    assert len(match.named["variance"]) == 1
    assert not set(match.named["mean"]) & match.interior


def test_a_unit_batch_and_a_unit_channel_keep_their_roles():
    unit = {"x": "f64[1,4,5,2]", "g": "f64[4]", "b": "f64[4]"}
    check("batch_norm_training", nchw_of(10), unit, channels=4, count=10)
    one = {"x": "f64[3,1,5,2]", "g": "f64[1]", "b": "f64[1]"}
    check("batch_norm_training", one_channel, one, channels=1, count=30)


def nchw_of(count):
    def norm(x, g, b):
        d = x - x.mean((0, 2, 3), keepdims=True)
        return d / np.sqrt((d * d).sum((0, 2, 3), keepdims=True) / count + 1e-5) * _c(g) + _c(b)

    return norm


def one_channel(x, g, b):
    d = x - x.mean((0, 2, 3), keepdims=True)
    v = (d * d).mean((0, 2, 3), keepdims=True)
    return d / np.sqrt(v + 1e-5) * g.reshape(1, 1, 1, 1) + b.reshape(1, 1, 1, 1)


def test_a_factor_on_scale_is_kept_where_the_program_computes_it():
    def doubled(x, g, b):
        return rows(x, g * 2.0, b)

    match = check("batch_norm_training", doubled, ROWS)
    tape, _ = searched(doubled, ROWS)
    assert tape.ops[match.bindings["scale"]].name == "mul"


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_means_of_half_precision_are_summed_in_single_precision(kind):
    match = check("batch_norm_training", nchw, {name: spec.replace("f64", kind) for name, spec in X.items()})
    assert set(match.named) == {"mean", "variance"}


# ---- what is no batch norm


def outside(x, g, b):
    d = x - x.mean(0)
    return d / (np.sqrt((d * d).mean(0)) + 1e-5) * g + b


def sample_variance(x, g, b):
    return (x - x.mean(0)) / np.sqrt(x.var(0, ddof=1) + 1e-5) * g + b


def one_pass_bounded(x, g, b):
    mean = x.mean(0)
    return (x - mean) / np.sqrt(np.maximum(0, (x * x).mean(0) - mean * mean) + 1e-5) * g + b


def one_pass(x, g, b):
    m = x.mean(0)
    return (x - m) / np.sqrt((x * x).mean(0) - m * m + 1e-5) * g + b


def cast_inside(x, g, b):
    d = x - x.mean(0)
    return d / np.sqrt((d * d).mean(0).astype("f4").astype("f8") + 1e-5) * g + b


def scale_per_element(x, g, b):
    d = x - x.mean(0)
    return d / np.sqrt((d * d).mean(0) + 1e-5) * np.concatenate([g[None]] * 4 + [b[None]] * 4) + b


def another_power(x, g, b):
    d = x - x.mean(0)
    return d * ((d * d).mean(0) + 1e-5) ** -0.499 * g + b


@pytest.mark.parametrize(
    ("program", "code"),
    [
        (outside, "eps-outside-root"), (sample_variance, "divisor"), (one_pass, "one-pass-variance"), (one_pass_bounded, "one-pass-variance"),
        (cast_inside, "cast"), (scale_per_element, "axis"), (another_power, "exponent"),
    ],
)  # fmt: skip
def test_a_look_alike_is_refused_and_told_why(program, code):
    check_not("batch_norm_training", program, ROWS, code)


def test_a_sample_variance_of_many_elements_is_still_told_apart():
    def huge(x, g, b):
        return (x - x.mean(0)) / np.sqrt(x.var(0, ddof=1) + 1e-5) * g + b

    specs = {"x": "f32[4000000,4]", "g": "f32[4]", "b": "f32[4]"}
    miss = check_not("batch_norm_training", huge, specs, "divisor")
    assert miss is not None
    assert miss.numbers == {"count": 4000000, "divisor": 3999999}


def test_another_centre_is_refused():
    def around_another_mean(x, g, b):
        m = x.mean(0)
        e = x - b
        return (x - m) / np.sqrt((e * e).mean(0) + 1e-5) * g + b

    _, pool = searched(around_another_mean, ROWS)
    assert [m for m in pool.matches if m.pattern == "batch_norm_training"] == []


@pytest.mark.parametrize("axis", [1, (1, 2, 3), (2, 3)])
def test_statistics_that_keep_axis_0_are_no_batch_norm(axis):
    def norm(x):
        d = x - x.mean(axis, keepdims=True)
        return d / np.sqrt((d * d).mean(axis, keepdims=True) + 1e-5)

    _, pool = searched(norm, {"x": "f64[3,4,5,2]"})
    assert [m for m in pool.matches if m.pattern == "batch_norm_training"] == []
    assert [m for m in pool.near_misses if m.pattern == "batch_norm_training"] == []


def test_wrong_axes_of_a_square_array_are_told_apart():
    def mixed(x):
        d = x - x.mean(0)
        return d / np.sqrt((d * d).mean(1, keepdims=True) + 1e-5)

    _, pool = searched(mixed, {"x": "f64[4,4]"})
    assert [m for m in pool.matches if m.pattern == "batch_norm_training"] == []
