"""Odd functions as polynomials on pieces of one width, whose coefficients are picked out of a register by the piece's number.

One instruction of AVX-512 picks sixteen of sixteen numbers. A polynomial on a short piece needs few terms, so that smooth
functions take half the arithmetic of one polynomial for all, or of an exponential. Picking out of two registers reads a third
operand, as products do, and the two then wait for each other: 14 cycles instead of 9 for gelu.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.polynomial import chebyshev

from topos_core.kernels.vocabulary.emitter import Emitter

COUNT: Final = 16
"""Pieces: what a register holds."""
MAGIC: Final = 12582912.0
"""Added to a small number, it leaves the nearest integer in the lowest bits."""


class Pieces(NamedTuple):
    """A function from 0 on; piece n is centred at n * width, and the last one is constant and has no end.

    `coefficients` are rows by power, lowest first, with one number a piece.
    """

    width: float
    coefficients: tuple[tuple[float, ...], ...]


@cache
def pieces(function: Callable[[float], float], limit: float, slope: float, degree: int) -> Pieces:
    """Fits an odd function that has this slope at 0 and is as good as constant from `limit` on."""
    width = limit / (COUNT - 1.5)
    fitted = [_fit(function, n * width, width, degree) for n in range(COUNT - 1)]
    # through 0 itself, so that the relative error stays small beside it
    fitted[0] = [0.0, *_fit(lambda x: function(x) / x if x else slope, 0.0, width, degree - 1)]
    fitted.append([function(limit + width), *[0.0] * degree])
    return Pieces(width, tuple(zip(*fitted, strict=True)))


def in_pieces(e: Emitter, x: Any, of: Pieces) -> Any:
    """Emits a function's magnitude at x; NaN may give any number.

    Floats that are not negative have the order of their bits, and whole numbers are compared in half the time.
    """
    builder = e.builder
    bits = builder.and_(builder.bitcast(x, e.integer), e.constant(0x7FFFFFFF, e.integer))
    last = builder.bitcast(e.constant((COUNT - 1) * of.width), e.integer)
    bits = builder.select(builder.icmp_unsigned("<", bits, last), bits, last)
    x = builder.bitcast(bits, e.type)
    shifted = e.fma(x, e.constant(1 / of.width), e.constant(MAGIC))
    rest = e.fma(builder.fsub(shifted, e.constant(MAGIC)), e.constant(-of.width), x)
    number = builder.bitcast(shifted, e.integer)
    *lower, result = (e.picked(row, number) for row in of.coefficients)
    for coefficient in reversed(lower):
        result = e.fma(result, rest, coefficient)
    return result


def _fit(function: Callable[[float], float], center: float, width: float, degree: int) -> list[float]:
    """Interpolates at Chebyshev's points; gives coefficients of the distance to the centre, lowest power first."""
    points = np.cos((np.arange(degree + 1) + 0.5) * math.pi / (degree + 1))
    series = chebyshev.chebfit(points, [function(center + point * width / 2) for point in points], degree)
    powers = np.zeros(degree + 1)
    found = chebyshev.cheb2poly(series)
    powers[: len(found)] = found
    return [float(power) for power in powers / (width / 2) ** np.arange(degree + 1)]
