import math

import numpy as np
import pytest

from topos_core.kernels.launch import address_of
from topos_core.kernels.library import kernel
from topos_core.ops.erf import erf
from topos_core.tape.type import numpy_dtype

WIDER = {"f32": np.float64, "f64": np.longdouble}
BITS = {"f32": np.uint32, "f64": np.uint64}


def points(dtype):
    """Gives ordinary ranges densely, and values of every binade."""
    random = np.random.default_rng(0)
    kind = numpy_dtype(dtype)
    anywhere = random.integers(0, np.iinfo(BITS[dtype]).max, 1 << 17, BITS[dtype]).view(kind)
    return np.concatenate(
        [np.linspace(-110, 110, 1 << 17).astype(kind), np.linspace(-1.5, 1.5, 1 << 17).astype(kind), anywhere]
    )


def apply(name, x):
    result = x.copy()
    dtype = "f64" if x.dtype == np.float64 else "f32"
    kernel("activation", dtype, name).call(address_of(result), result.size)
    return result


def ulps(got, exact):
    unit = np.spacing(np.abs(exact).astype(got.dtype)).astype(exact.dtype)
    with np.errstate(all="ignore"):
        return np.where(np.isfinite(exact), np.abs(got.astype(exact.dtype) - exact) / unit, 0)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize(
    ("name", "function", "bound"),
    [
        ("exp", np.exp, 1.6),
        ("tanh", np.tanh, 5.0),
        ("erf", lambda x: erf(x.astype(np.float64)), 3.0),
        ("sigmoid", lambda x: 1 / (1 + np.exp(-x)), 5.0),
    ],
)
def test_errors_stay_within_their_bounds(name, function, bound, dtype):
    x = points(dtype)
    if name == "sigmoid":
        x = x[x > -80]  # below, exp(-x) nears the end of its range, and so does the recorded formula
    with np.errstate(all="ignore"):
        exact = function(x.astype(WIDER[dtype]))
        overflows = np.abs(exact) > np.finfo(x.dtype).max
        exact = np.where(overflows, np.inf, exact)
    got = apply(name, x)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(exact))
    np.testing.assert_array_equal(np.isinf(got), np.isinf(exact))
    assert np.nanmax(ulps(got, exact)) <= bound


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_special_values(dtype):
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan], numpy_dtype(dtype))
    np.testing.assert_array_equal(apply("exp", x), [1, 1, np.inf, 0, np.nan])
    np.testing.assert_array_equal(apply("erf", x), [0, 0, 1, -1, np.nan])
    np.testing.assert_allclose(apply("tanh", x), [0, 0, 1, -1, np.nan], rtol=5e-7)
    np.testing.assert_array_equal(apply("sigmoid", x), [0.5, 0.5, 1, 0, np.nan])
    for name in ("erf", "tanh"):
        assert np.signbit(apply(name, x)[1])


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("gelu_erf", lambda x: 0.5 * x * (1 + erf(x / math.sqrt(2)))),
        ("gelu_tanh", lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))),
        ("gelu_sigmoid", lambda x: x / (1 + np.exp(-1.702 * x))),
        ("silu", lambda x: x / (1 + np.exp(-x))),
        ("hardswish", lambda x: x * np.clip(x + 3, 0, 6) / 6),
    ],
)
def test_activations_follow_their_formulas(name, function, dtype):
    x = np.concatenate([np.linspace(-20, 20, 100_001), [np.inf, -np.inf, np.nan, -0.0]]).astype(numpy_dtype(dtype))
    with np.errstate(all="ignore"):
        exact = function(x.astype(np.float64))
    got = apply(name, x)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(exact))
    tolerance = 4e-7 if dtype == "f32" else 2e-15
    np.testing.assert_allclose(got, exact, rtol=8 * tolerance, atol=2.5 * tolerance)
