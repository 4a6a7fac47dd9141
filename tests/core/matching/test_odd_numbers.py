"""Numbers that have no reciprocal, no root or no float64 stop no plan."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.core.patterns.check import agrees, searched


def _sum_from_zero(x: Any) -> Any:
    return sum(x * k for k in range(3))


def _nothing_of_a_variance(x: Any) -> Any:
    return (x - x.mean(0)) / np.sqrt(x.var(0) * 0.0 + 1e-5)


def _root_of_nothing(x: Any) -> Any:
    return np.sqrt(x * 0.0 + 1e-6) * x


def _quotient_by_the_least_number(x: Any) -> Any:
    return x / 5e-324 + (x * 1e-310) ** -1


def _power_beyond_range(x: Any) -> Any:
    return (x * 1e200) ** 2 + (x * 1e-300) ** -3


def _root_of_a_negative_multiple(x: Any) -> Any:
    return np.sqrt(x * -2.0) + (x * -3.0) ** 0.5


def _factor_too_small_to_square(x: Any) -> Any:
    powers = np.exp((x - x.max(-1, keepdims=True)) * 1e-200)
    return powers / powers.sum(-1, keepdims=True) + 0.5 * x * (1 + np.tanh(1e-200 * (x + 1e-250 * x**3)))


@pytest.mark.parametrize(
    "program",
    [
        _sum_from_zero, _nothing_of_a_variance, _root_of_nothing, _quotient_by_the_least_number, _power_beyond_range,
        _root_of_a_negative_multiple, _factor_too_small_to_square,
    ],
)  # fmt: skip
def test_a_program_with_odd_numbers_is_searched(program):
    tape, pool = searched(program, {"x": "f64[6,4]"})
    for match in pool.matches:
        agrees(tape, match)
