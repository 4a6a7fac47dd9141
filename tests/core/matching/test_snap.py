"""Constants mean what was meant: spellings of one number agree, different numbers do not."""

from __future__ import annotations

import math

import numpy as np
import pytest

from topos_core.matching.field import Element, multiply, ratio, root, whole
from topos_core.matching.snap import snap


def rounded(number: float, dtype: str) -> float:
    return float({"f16": np.float16, "f32": np.float32, "f64": np.float64}[dtype](number))


def lanes(element: Element) -> tuple[int, int]:
    assert element.p is not None
    assert element.q is not None
    return int(element.p), int(element.q)


@pytest.mark.parametrize("dtype", ["f16", "f32", "f64"])
@pytest.mark.parametrize(
    ("number", "meant"),
    [
        (1 / 6, ratio(1, 6)),
        (-0.5, ratio(-1, 2)),
        (3.0, whole(3)),
        (1 / math.sqrt(2), root(ratio(1, 2))),
        (math.sqrt(6), root(ratio(6, 1))),
    ],
)
def test_a_rounded_number_is_given_back(number, meant, dtype):
    found = snap(rounded(number, dtype), dtype)
    assert found.exact
    assert lanes(found.element) == lanes(meant)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("number", [1e-5, 1e-6, 1e-12, 0.044715, 1.702, 1e-3, 1 / 50176, 1 / 100352, -1e9, 3.5e-4])
def test_decimals_and_reciprocals_are_exact(number, dtype):
    found = snap(rounded(number, dtype), dtype)
    size = abs(number)
    meant = ratio(1, round(1 / size)) if size < 1 and float(f"{1 / size:.12g}").is_integer() else None
    assert found.exact
    if meant is not None:
        assert lanes(found.element) == lanes(meant)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_products_of_irrational_constants_stay_products(dtype):
    slope, cubic = math.sqrt(2 / math.pi), 0.044715
    together = snap(rounded(slope * cubic, dtype), dtype)
    apart = multiply(snap(rounded(slope, dtype), dtype).element, snap(rounded(cubic, dtype), dtype).element)
    assert lanes(together.element) == lanes(apart)
    assert together.exact


@pytest.mark.parametrize(
    ("a", "b"), [(1e-5, 1.1e-5), (1 / 6, 1 / 5), (0.7979, math.sqrt(2 / math.pi)), (1.414, math.sqrt(2)), (6.0, 5.0)]
)
def test_different_numbers_stay_different(a, b):
    assert lanes(snap(rounded(a, "f32"), "f32").element) != lanes(snap(rounded(b, "f32"), "f32").element)


def test_a_random_number_is_no_exact_constant():
    assert not snap(0.7348261194, "f64").exact
    assert snap(math.nan, "f32") is None
    assert snap(-math.inf, "f32").element.sign == -1
