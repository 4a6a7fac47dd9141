"""When a folded factor stands for the factors that it is made of."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np


def is_usual(factors: np.ndarray) -> bool:
    """Tells whether factors in the dtype that is computed in are finite, and the largest of them is a normal number.

    Errors count by the largest result, so that the others may have lost digits.
    """
    least, most, _ = limits_of(factors.dtype)
    return bool(least <= np.maximum.reduce(np.abs(factors), initial=0.0) <= most)  # NaN is in no range


def stands(folded: np.ndarray, rounded: np.ndarray, zero: Callable[[], np.ndarray]) -> bool:
    """Tells whether factors that were folded in f64 and rounded give what their parts give one after the other.

    They do not where one is infinite, where it overflowed, or where all are so small that their digits are lost. Not all are
    lost where rounding kept them, or where `zero` tells that a part makes them 0.
    """
    return is_usual(rounded) or _is_kept(folded, rounded, zero)


def stand(folded: np.ndarray, rounded: np.ndarray, zero: Callable[[], np.ndarray]) -> bool:
    """Tells the same of factors and what is added to their products, [2, channels].

    A summand may be no larger than a unit of the largest number: it would bring a product back that has overflowed.
    """
    least, most, unit = limits_of(rounded.dtype)
    factor, summand = np.maximum.reduce(np.abs(rounded), 1, initial=0.0).tolist()
    if not summand <= unit:
        return False
    return least <= factor <= most or _is_kept(folded[0], rounded[0], zero)


def _is_kept(folded: np.ndarray, rounded: np.ndarray, zero: Callable[[], np.ndarray]) -> bool:
    """Tells whether rounding lost nothing: f64, in which factors are folded, keeps zeros alone."""
    if not np.isfinite(rounded).all():
        return False
    kept = (rounded == folded) & (folded != 0.0) if rounded.dtype != folded.dtype else np.zeros(len(folded), bool)
    return bool((zero() | kept).all())


@cache
def limits_of(dtype: np.dtype) -> tuple[float, float, float]:
    """Gives the least and the largest normal number of a float, and a unit in the last place of such a large one."""
    limits = np.finfo(dtype)
    return float(limits.tiny), float(limits.max), float(limits.max * limits.eps)
