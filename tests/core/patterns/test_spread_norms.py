"""Norms whose scale is multiplied into x and into the mean by hand: a product is one product, in whatever order it was made."""

from __future__ import annotations

import numpy as np
import pytest

from tests.core.patterns.check import check, match_at_result, searched

IMAGE = {"x": "f64[2,4,5,6]", **dict.fromkeys(("m", "var", "g", "b"), "f64[4]")}
ROWS = {"x": "f64[4,5,6]", "g": "f64[6]", "b": "f64[6]"}


def c(v):
    return v.reshape(1, -1, 1, 1)


AFFINE = {
    "x * c(g * r) + c(b - m * g * r)": lambda x, m, r, g, b: x * c(g * r) + c(b - m * g * r),
    "x * c(r) * c(g) + c(b - m * r * g)": lambda x, m, r, g, b: x * c(r) * c(g) + c(b - m * r * g),
    "x * c(g * r) - c(m * g * r) + c(b)": lambda x, m, r, g, b: x * c(g * r) - c(m * g * r) + c(b),
    "x * c(g * r) + (c(b) - c(m * g * r))": lambda x, m, r, g, b: x * c(g * r) + (c(b) - c(m * g * r)),
    "c(b) - c(m * r) * c(g) + c(g) * (x * c(r))": lambda x, m, r, g, b: c(b) - c(m * r) * c(g) + c(g) * (x * c(r)),
    "(x * c(r) - c(m * r)) * c(g) + c(b)": lambda x, m, r, g, b: (x * c(r) - c(m * r)) * c(g) + c(b),
    "x * c(g * r) + c(b - m * (g * r))": lambda x, m, r, g, b: x * c(g * r) + c(b - m * (g * r)),
}


@pytest.mark.parametrize("spelling", AFFINE)
def test_given_statistics(spelling):
    def program(x, m, var, g, b):
        return AFFINE[spelling](x, m, 1 / np.sqrt(var + 1e-5), g, b)

    match = check("batch_norm_inference", program, IMAGE)
    assert set(match.bindings) == {"x", "mean", "variance", "scale", "shift"}


@pytest.mark.parametrize("spelling", AFFINE)
def test_statistics_of_a_batch(spelling):
    def program(x, g, b):
        m = x.mean((0, 2, 3))
        r = (((x - c(m)) ** 2).mean((0, 2, 3)) + 1e-5) ** -0.5
        return AFFINE[spelling](x, m, r, g, b)

    match = check("batch_norm_training", program, {"x": "f64[2,4,5,6]", "g": "f64[4]", "b": "f64[4]"})
    assert set(match.bindings) == {"x", "scale", "shift"}


@pytest.mark.parametrize("spelling", AFFINE)
def test_statistics_of_rows(spelling, monkeypatch):
    monkeypatch.setitem(globals(), "c", lambda v: v)

    def program(x, g, b):
        m = x.mean(-1, keepdims=True)
        return AFFINE[spelling](x, m, 1 / np.sqrt(((x - m) ** 2).mean(-1, keepdims=True) + 1e-5), g, b)

    match = check("layer_norm", program, ROWS)
    assert set(match.bindings) == {"x", "scale", "shift"}


@pytest.mark.parametrize(
    "divided", [lambda s, g: (g / s, lambda m: m * g / s), lambda s, g: (g / s, lambda m: m / s * g)]
)
def test_a_deviation_that_is_divided_by(divided):
    def program(x, m, var, g, b):
        slope, mean = divided(np.sqrt(var + 1e-5), g)
        return x * c(slope) + c(b - mean(m))

    check("batch_norm_inference", program, IMAGE)


@pytest.mark.parametrize(
    "of", [lambda x, y: x * y, lambda x, y: x + y, lambda x, y: np.sqrt(x * x)], ids=["product", "sum", "root"]
)
def test_an_x_that_is_a_product_a_sum_or_a_root_is_taken_whole(of):
    def program(x, y, var, m, g, b):
        r = 1 / np.sqrt(var + 1e-5)
        return of(x, y) * c(g * r) + c(b - m * g * r)

    check("batch_norm_inference", program, {"y": "f64[2,4,5,6]", **IMAGE})


def test_factors_that_somebody_else_reads_are_multiplied_out_too():
    def program(x, m, var, g, b):
        r = 1 / np.sqrt(var + 1e-5)
        k = g * r
        return x * c(k) + c(b - m * g * r), k, np.tanh(r)

    check("batch_norm_inference", program, IMAGE)


@pytest.mark.parametrize(
    "changed",
    [
        lambda x, m, r, g, b: x * c(g * r) + c(b - m * r),
        lambda x, m, r, g, b: x * c(r) + c(b - m * r * g),
        lambda x, m, r, g, b: x * c(g * r) + c(b - m * b * r),
        lambda x, m, r, g, b: x * c(g * r) + c(b + m * g * r),
        lambda x, m, r, g, b: x * c(g * r) + c(b - m * g * r * r),
    ],
)
def test_another_product_is_another_formula(changed):
    def program(x, m, var, g, b):
        return changed(x, m, 1 / np.sqrt(var + 1e-5), g, b)

    tape, pool = searched(program, IMAGE)
    assert match_at_result(tape, pool, "batch_norm_inference") is None
