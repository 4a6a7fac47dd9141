"""When a folded factor stands for the factors that it is made of."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


def is_usual(factors: np.ndarray) -> bool:
    """Tells whether factors in the dtype that is computed in are finite, and the largest of them is a normal number.

    Errors count by the largest result, so that the others may have lost digits.
    """
    limits = np.finfo(factors.dtype)
    return bool(limits.tiny <= np.abs(factors).max(initial=0.0) <= limits.max)  # NaN is in no range


def is_small(summands: np.ndarray) -> bool:
    """Tells whether summands, in the dtype that is computed in, bring no product back that has overflowed beside them."""
    limits = np.finfo(summands.dtype)
    return bool(np.abs(summands).max(initial=0.0) <= limits.max * limits.eps)


def stands(folded: np.ndarray, rounded: np.ndarray, zero: Callable[[], np.ndarray]) -> bool:
    """Tells whether factors that were folded in f64 and rounded give what their parts give one after the other.

    They do not where one is infinite, where it overflowed, or where all are so small that their digits are lost. Not all are
    lost where rounding kept them, or where `zero` tells that a part makes them 0.
    """
    if is_usual(rounded):
        return True
    if not np.isfinite(rounded).all():
        return False
    kept = (rounded == folded) & (folded != 0.0) if rounded.dtype != folded.dtype else np.zeros(len(folded), bool)
    return bool((zero() | kept).all())
