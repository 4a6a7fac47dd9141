from __future__ import annotations

import math

import numpy as np
import pytest

from topos_core.ops.erf import erf, formula

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def worst_ulps(x: np.ndarray) -> float:
    exact = np.array([math.erf(float(value)) for value in x])
    spacing = np.spacing(np.abs(exact).astype(x.dtype)).astype(np.float64)
    return float(np.max(np.abs(erf(x).astype(np.float64) - exact) / spacing))


@pytest.mark.parametrize(("dtype", "ulps"), [("f4", 2.0), ("f8", 3.0), ("f2", 0.51)])
def test_the_formula_stays_within_its_error(dtype, ulps):
    # math.erf itself is within 1 ulp of f64
    edge = formula({"f2": "f16", "f4": "f32", "f8": "f64"}[dtype]).edge
    x = np.concatenate([np.linspace(-6, 6, 40001), np.geomspace(1e-6, 7, 4001), edge + np.linspace(-1e-3, 1e-3, 201)])
    assert worst_ulps(x.astype(dtype)) <= ulps


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_corners_are_exact(dtype):
    got = erf(np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 30.0, -30.0], dtype))
    np.testing.assert_array_equal(got, np.array([0, 0, 1, -1, np.nan, 1, -1], dtype))
    assert np.signbit(got[1])


def test_erf_is_odd():
    x = np.linspace(0, 5, 1001, dtype=np.float32)
    np.testing.assert_array_equal(erf(-x), -erf(x))
