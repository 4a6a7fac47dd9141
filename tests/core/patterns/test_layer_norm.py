from __future__ import annotations

import math

import numpy as np
import pytest

from tests.core.patterns.check import check, check_not, named, searched

X = {"x": "f64[4,5,6]", "g": "f64[6]", "b": "f64[6]"}


def textbook(x, g, b):
    m = x.mean(-1, keepdims=True)
    v = ((x - m) ** 2).mean(-1, keepdims=True)
    return g * (x - m) / np.sqrt(v + 1e-5) + b


def centred_first(x, g, b):
    x = x - x.mean(-1, keepdims=True)
    return x / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * g + b


def size_squared(x, g, b):
    d = x - x.mean(-1, keepdims=True)
    return d / np.sqrt(np.mean(np.abs(d) ** 2, -1, keepdims=True) + 1e-5) * g + b


def inverse_root(x, g, b):
    d = x - x.mean(-1, keepdims=True)
    return d * (1 / np.sqrt((d * d).mean(-1, keepdims=True) + 1e-5)) * g + b


def axes_not_kept(x, g, b):
    m = x.sum(2) / 6
    d = x - m[..., None]
    v = (d * d).sum(2) * (1 / 6)
    return b + g * (d * ((1e-5 + v) ** -0.5)[..., None])


def by_var(x, g, b):
    return (x - x.mean(-1, keepdims=True)) / (x.var(-1, keepdims=True) + 1e-5) ** 0.5 * g + b


def by_std_squared(x, g, b):
    return (x - np.mean(x, -1, keepdims=True)) / np.sqrt(np.std(x, -1, keepdims=True) ** 2 + 1e-5) * g + b


def by_std_times_std(x, g, b):
    s = np.std(x, -1, keepdims=True)
    return (x - np.mean(x, -1, keepdims=True)) / np.sqrt(s * s + 1e-5) * g + b


def rows(x, g, b):
    y = x.reshape(20, 6)
    m = y.mean(1)
    d = y - m.reshape(20, 1)
    i = (((d**2).mean(1) + 1e-5) ** -0.5).reshape(20, 1)
    return (d * i).reshape(4, 5, 6) * g + b


def scale_in_the_root(x, g, b):
    d = x - x.mean(-1, keepdims=True)
    w = g / np.sqrt((d**2).mean(-1, keepdims=True) + 1e-5)
    return w * d + b


def folded(x, g, b):
    m = x.mean(-1, keepdims=True)
    w = g / np.sqrt(((x - m) * (x - m)).mean(-1, keepdims=True) + 1e-5)
    return x * w + (b - m * w)


def mean_by_product(x, g, b):
    d = x - np.einsum("btc,c->bt", x, np.full(6, 1 / 6))[..., None]
    return d / np.sqrt((d * d).mean(-1, keepdims=True) + 1e-5) * g + b


def sums(x, g, b):
    d = x - x.mean(-1, keepdims=True)
    return math.sqrt(6) * d / np.sqrt((d * d).sum(-1, keepdims=True) + 6e-5) * g + b


def transposed(x, g, b):
    y = x.transpose(2, 0, 1)
    d = y - y.mean(0)
    return (d / np.sqrt((d * d).mean(0) + 1e-5)).transpose(1, 2, 0) * g + b


def residual(x, g, b):
    y = x + np.tanh(x)
    d = y - y.mean(-1, keepdims=True)
    return d / np.sqrt((d * d).mean(-1, keepdims=True) + 1e-5) * g + b


def gated(x, g, b):
    y = x * np.tanh(x)
    d = y - y.mean(-1, keepdims=True)
    return d / np.sqrt((d * d).mean(-1, keepdims=True) + 1e-5) * g + b


@pytest.mark.parametrize(
    "spelling",
    [
        textbook, inverse_root, axes_not_kept, by_var, rows, scale_in_the_root, folded, mean_by_product, sums, transposed,
        residual, gated, by_std_squared, by_std_times_std, centred_first, size_squared,
    ],
)  # fmt: skip
def test_every_spelling_is_one_layer_norm(spelling):
    match = check("layer_norm", spelling, X)
    assert set(match.bindings) == {"x", "scale", "shift"}
    assert match.facts.extents == {"k": 20, "n": 6}
    assert match.facts.constants["epsilon"] == pytest.approx(1e-5)


def test_channels_of_an_image_are_features():
    def norm(x, g, b):
        d = x.mean(1, keepdims=True) - x
        s = 1 / np.sqrt((d * d).mean(1, keepdims=True) + 1e-6)
        return b.reshape(6, 1, 1) - d * s * g[:, None, None]

    check("layer_norm", norm, {"x": "f64[2,6,3,3]", "g": "f64[6]", "b": "f64[6]"})


def test_several_axes_are_features():
    def norm(x, g):
        d = x - x.mean((1, 2), keepdims=True)
        return d / np.sqrt((d * d).mean((1, 2), keepdims=True) + 1e-5) * g

    match = check("layer_norm", norm, {"x": "f64[4,5,6]", "g": "f64[5,6]"})
    assert match.facts.extents == {"k": 4, "n": 30}


def test_scale_and_shift_are_optional():
    def norm(x):
        d = x - x.mean(-1, keepdims=True)
        return d / np.sqrt((d * d).mean(-1, keepdims=True) + 1e-5)

    assert set(check("layer_norm", norm, {"x": "f64[4,5,6]"}).bindings) == {"x"}


def outside(x, g, b):
    d = x - x.mean(-1, keepdims=True)
    return d / (np.sqrt((d * d).mean(-1, keepdims=True)) + 1e-5) * g + b


def sample_variance(x, g, b):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True, ddof=1) + 1e-5) * g + b


def one_pass_bounded(x, g, b):
    mean = x.mean(-1, keepdims=True)
    return (x - mean) / np.sqrt(np.maximum((x * x).mean(-1, keepdims=True) - mean**2, 0) + 1e-5) * g + b


def one_pass(x, g, b):
    m = x.mean(-1, keepdims=True)
    return (x - m) / np.sqrt((x * x).mean(-1, keepdims=True) - m * m + 1e-5) * g + b


def cast_inside(x, g, b):
    d = x - x.mean(-1, keepdims=True)
    return d / np.sqrt((d * d).mean(-1, keepdims=True).astype("f4").astype("f8") + 1e-5) * g + b


@pytest.mark.parametrize(
    ("program", "code"),
    [
        (outside, "eps-outside-root"),
        (sample_variance, "divisor"),
        (one_pass, "one-pass-variance"),
        (one_pass_bounded, "one-pass-variance"),
        (cast_inside, "cast"),
    ],
)
def test_a_look_alike_is_refused_and_told_why(program, code):
    check_not("layer_norm", program, X, code)


def mean_along_rows(x):
    d = x - x.mean(1)  # broadcasts along the wrong axis
    return d / np.sqrt((d * d).mean(1, keepdims=True) + 1e-5)


def variance_along_rows(x):
    d = x - x.mean(1, keepdims=True)
    return d / np.sqrt((d * d).mean(1) + 1e-5)


def other_axes(x):
    d = x - x.mean(0)
    return d / np.sqrt((d * d).mean(1, keepdims=True) + 1e-5)


@pytest.mark.parametrize("program", [mean_along_rows, variance_along_rows])
def test_a_square_array_fools_nobody(program):
    check_not("layer_norm", program, {"x": "f64[4,4]"}, "axis-mixed")


def test_statistics_over_different_axes_are_told_once():
    _, pool = searched(other_axes, {"x": "f64[4,4]"})
    assert named(pool) == {"rms_norm"}
    assert [miss.code for miss in pool.near_misses] == ["axis-mixed"]


def scale_along_two_axes(x, g):
    d = x - x.mean(-1, keepdims=True)
    return d / np.sqrt((d * d).mean(-1, keepdims=True) + 1e-5) * g


def scale_that_expands(x, g):
    d = x - x.mean(-1, keepdims=True)
    return d / np.sqrt((d * d).mean(-1, keepdims=True) + 1e-5) * g


def scale_along_fewer_axes(x, g):
    d = x - x.mean((1, 2), keepdims=True)
    return d / np.sqrt((d * d).mean((1, 2), keepdims=True) + 1e-5) * g


@pytest.mark.parametrize(
    ("program", "specs"),
    [
        (scale_along_two_axes, {"x": "f64[4,5,6]", "g": "f64[5,6]"}),
        (scale_that_expands, {"x": "f64[4,1,6]", "g": "f64[3,6]"}),
        (scale_along_fewer_axes, {"x": "f64[4,5,6]", "g": "f64[6]"}),
    ],
)
def test_a_scale_along_other_axes_is_left_out(program, specs):
    _, pool = searched(program, specs)
    found = [m for m in pool.matches if m.pattern == "layer_norm"]
    assert [set(m.bindings) for m in found] == [{"x"}]
    assert [note.code for note in found[0].stopped] == ["axis"]


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_means_of_half_precision_are_summed_in_single_precision(kind):
    def means(x, g, b):
        d = x - np.mean(x, -1, keepdims=True)
        return d / np.sqrt(np.mean(d * d, -1, keepdims=True) + 1e-3) * g + b

    def unrounded(x, g, b):
        d = x - x.astype("f4").mean(-1, keepdims=True).astype(x.dtype)
        return d / np.sqrt((d * d).astype("f4").mean(-1, keepdims=True) + 1e-3).astype(x.dtype) * g + b

    specs = {"x": f"{kind}[4,6]", "g": f"{kind}[6]", "b": f"{kind}[6]"}
    check("layer_norm", means, specs)
    _, pool = searched(unrounded, specs)
    assert [m for m in pool.matches if m.pattern == "layer_norm"] == []
    assert [m.pattern for m in pool.near_misses] == ["layer_norm"]
