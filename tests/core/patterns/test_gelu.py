from __future__ import annotations

import math

import numpy as np
import pytest

from tests.core.patterns.check import check, check_not, searched
from topos_core.recording.elementary import erf

X = {"x": "f64[3,7]"}
K = math.sqrt(2 / math.pi)


def published(x):
    return 0.5 * x * (1.0 + np.tanh(K * (x + 0.044715 * x**3)))


def half_last(x):
    return x * (1 + np.tanh((x + 0.044715 * (x * x * x)) * 0.7978845608028654)) * 0.5


def divided(x):
    return x * (np.tanh(K * (x + x * x * x * 0.044715)) + 1) / 2


def half_inside(x):
    return x * (0.5 + 0.5 * np.tanh(K * (0.044715 * x**3 + x)))


def factored(x):
    return x * 0.5 * (1 + np.tanh(x * 0.7978845608028654 * (1 + 0.044715 * x * x)))


def distributed(x):
    h = 0.5 * x
    return h + h * np.tanh(K * (x + 0.044715 * x**3))


def square_kept(x):
    u = x * x
    return 0.5 * (x * (1 + np.tanh(x * (0.7978845608028654 + 0.035677408136300125 * u))))


def np_power(x):
    return 0.5 * x * (1 + np.tanh(K * (x + 0.044715 * np.power(x, 3))))


@pytest.mark.parametrize(
    "spelling", [published, half_last, divided, half_inside, factored, distributed, square_kept, np_power]
)
def test_every_spelling_by_tanh_is_one_gelu(spelling):
    assert check("gelu", spelling, X).facts.options == {"approximate": "tanh"}


def short(x):
    return 0.5 * x * (1.0 + np.tanh(0.7978845608 * (x + 0.044715 * x**3)))


def test_a_constant_counts_with_the_digits_that_its_dtype_holds():
    assert check("gelu", short, {"x": "f32[3,7]"}).facts.options == {"approximate": "tanh"}
    told = check_not("gelu", short, X, "constant").sentence
    assert "needs the factor inside tanh 0.7978845608028654; found 0.7978845608" in told


def torch(x):
    return x * 0.5 * (1.0 + erf(x / math.sqrt(2.0)))


def half_outside(x):
    return 0.5 * (x * (erf(x * 0.7071067811865476) + 1))


def by_distribution(x):
    return x * (0.5 * (1 + erf(x / 2**0.5)))


def half_divided(x):
    return (x * (1 + erf(x * (1 / math.sqrt(2))))) / 2


def erf_distributed(x):
    return 0.5 * x + 0.5 * x * erf(x / 1.4142135623730951)


def erf_half_inside(x):
    return x * (0.5 * erf(x * math.sqrt(0.5)) + 0.5)


@pytest.mark.parametrize(
    "spelling", [torch, half_outside, by_distribution, half_divided, erf_distributed, erf_half_inside]
)
def test_every_spelling_by_erf_is_one_gelu(spelling):
    assert check("gelu", spelling, X).facts.options == {"approximate": "none"}


def quick(x):
    return x / (1 + np.exp(-1.702 * x))


def quick_product(x):
    return x * (1 / (1 + np.exp(x * -1.702)))


def quick_exp(x):
    e = np.exp(1.702 * x)
    return x * (e / (e + 1))


@pytest.mark.parametrize("spelling", [quick, quick_product, quick_exp])
def test_every_spelling_by_the_logistic_function_is_one_gelu(spelling):
    kind = "sigmoid of exp" if spelling is quick_exp else "sigmoid"
    assert check("gelu", spelling, X).facts.options == {"approximate": kind}


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
def test_constants_compare_at_their_dtype(dtype):
    check("gelu", published, {"x": f"{dtype}[3,7]"})


def test_x_may_be_a_sum_or_a_scaled_value():
    check("gelu", lambda x: published(x + np.tanh(x)), X)
    check("gelu", lambda x: published(2.0 * x), X)


def coarse_slope(x):
    return 0.5 * x * (1 + np.tanh(0.7979 * (x + 0.044715 * x**3)))


def coarse_cubic(x):
    return 0.5 * x * (1 + np.tanh(K * (x + 0.0447 * x**3)))


def coarse_root(x):
    return 0.5 * x * (1 + erf(x / 1.414))


@pytest.mark.parametrize("program", [coarse_slope, coarse_cubic, coarse_root])
def test_another_constant_is_refused_and_told(program):
    miss = check_not("gelu", program, X, "constant")
    assert miss is not None
    assert {"expected", "found"} <= set(miss.numbers)


def test_a_square_instead_of_the_cube_is_refused():
    _, pool = searched(lambda x: 0.5 * x * (1 + np.tanh(K * (x + 0.044715 * x**2))), X)
    assert [m for m in pool.matches if m.pattern == "gelu"] == []


@pytest.mark.parametrize(
    "program",
    [
        lambda x: (1 - np.exp(x)) ** 2 * x,
        lambda x: x / (1 + np.exp(-x)) ** 2,
        lambda x: x * x / (1 + np.exp(-x)),
        lambda x: x / np.sqrt(1e-5 + np.exp(x)),
    ],
    ids=["focal loss", "a squared gate", "a gated square", "a root"],
)
def test_other_powers_were_never_meant_as_an_activation(program):
    _, pool = searched(program, {"x": "f64[5,7]"})
    assert [miss.sentence for miss in pool.near_misses] == []
