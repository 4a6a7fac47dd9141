"""Exact numbers for the constants of a program: what was rounded to a dtype is given back as what was meant.

`np.float32(1 / 6)` means one sixth, `1e-5` a decimal, `0.70710677` the root of one half, `0.79788458` the root of 2 / pi.
Two constants become one number only if they round to the same float of a dtype, or nearly, so nothing is confused that
a program can tell apart.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Final, NamedTuple

import numpy as np

from topos_core.matching.field import Element, infinity, multiply, ratio, root, whole
from topos_core.tape.type import numpy_dtype

BITS: Final = {"bf16": 8, "f16": 11, "f32": 24, "f64": 53}
DIGITS: Final = 6
"""A decimal of more digits is a rounded number, of which two spellings may differ."""
_HALF_PI: Final = 20231 * 20231
"""Stands for pi / 2, of which no formula knows more than that it is positive: a square in both fields."""


class Snapped(NamedTuple):
    """A constant as a field element; `exact` says that no other spelling of the same real number is another one."""

    element: Element
    exact: bool


def snap(number: float, dtype: str) -> Snapped | None:
    """Gives the number that a float of a dtype stands for; None for NaN."""
    if math.isnan(number):
        return None
    if math.isinf(number):
        return Snapped(infinity(1 if number > 0 else -1), True)
    if number == int(number) and (abs(number) < 2**24 or dtype not in BITS):
        return Snapped(ratio(int(number), 1), True)
    sign = ratio(-1 if number < 0 else 1, 1)
    found = None
    for narrow in ("f64", "f32", "f16", "bf16"):  # a float64 may hold what was rounded to a narrower dtype before
        if BITS[narrow] <= BITS[dtype] and (found is None or not found.exact) and _holds(narrow, number):
            found = _meant(abs(number), BITS[narrow])
    assert found is not None  # every dtype holds its own numbers
    return Snapped(multiply(sign, found.element), found.exact)


def _meant(number: float, bits: int) -> Snapped:
    for unit, element in _units():
        size = number / unit
        found = _fraction(size, bits)
        for times in (1, 2):
            power = _simplest(size ** (2 * times), bits - 2 * times)
            if found is None and power.numerator * power.denominator < 2 ** (bits // 3 + 2):
                rooted = ratio(power.numerator, power.denominator)
                for _ in range(times):
                    rooted = root(rooted)
                return Snapped(multiply(element, rooted), True)
        if found is None and bits >= BITS["f32"]:
            found = _decimal(size, bits)
        if found is not None:
            return Snapped(multiply(element, ratio(found.numerator, found.denominator)), True)
    nearest = Fraction(f"{number:.{max(bits * 3 // 10, 3)}g}")
    return Snapped(ratio(nearest.numerator, nearest.denominator), False)


def _holds(dtype: str, number: float) -> bool:
    """Says whether a dtype has this very number; by bits alone for bf16."""
    if dtype == "bf16":
        mantissa, _ = math.frexp(number)
        return (mantissa * 2.0 ** BITS[dtype]).is_integer()
    with np.errstate(over="ignore"):
        return float(numpy_dtype(dtype).type(number)) == number


def _units() -> Iterator[tuple[float, Element]]:
    """Gives the irrational numbers of known formulas: constants are tried as multiples of them."""
    yield 1.0, whole(1)
    yield math.sqrt(2 / math.pi), root(ratio(1, _HALF_PI))
    yield math.pi, ratio(2 * _HALF_PI, 1)


def _fraction(size: float, bits: int) -> Fraction | None:
    """Gives a fraction of small terms, or one over an integer; a random number is none."""
    plain = _simplest(size, bits)
    if plain.numerator * plain.denominator < 2 ** (2 * bits // 3):
        return plain
    inverted = round(1 / size)
    if 0 < inverted < 2**bits and abs(inverted * size - 1) < 2.0**-bits:
        return Fraction(1, inverted)
    return None


def _decimal(size: float, bits: int) -> Fraction | None:
    """Gives a decimal of few digits."""
    for digits in range(1, DIGITS + 1):
        short = Fraction(f"{size:.{digits}g}")
        if abs(short - Fraction(size)) * 2 ** (bits - 1) <= abs(short):
            return short
    return None


def _simplest(size: float, bits: int) -> Fraction:
    """Gives the fraction with the smallest denominator within half a unit in the last place."""
    centre = Fraction(size)
    half = centre / 2**bits
    return _between(centre - half, centre + half)


def _between(low: Fraction, high: Fraction) -> Fraction:
    """Walks the continued fractions of both ends for as long as they agree."""
    floor = low.numerator // low.denominator
    if floor == low:
        return Fraction(floor)
    if floor + 1 <= high:
        return Fraction(floor + 1)
    return floor + 1 / _between(1 / (high - floor), 1 / (low - floor))
