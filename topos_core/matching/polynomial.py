"""Elementwise expressions of one value as polynomials: sums of monomials in the value and in applied functions.

Operand order, distribution and the place of scales do not matter. Coefficients are compared within two units of f32. NaN,
infinities and zeros are kept: what cancels (`x - x / 2`) or vanishes (`0 * x`) equals nothing else, and -0 is no number here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

TOLERANCE: Final = 2.5e-7
"""Two units of f32: constants are written with few digits and rounded at their dtype."""

UNIFORM: Final = 64
"""Elements up to which an array is looked at, whether it is one number."""

Atom = tuple[Any, ...]  # (function, polynomial, ...)
Monomial = tuple[int, tuple[Atom, ...]]  # power of the value, applied functions
Polynomial = tuple[tuple[Monomial, float], ...]

ONE: Final[Monomial] = (0, ())
VALUE: Final[Polynomial] = (((1, ()), 1.0),)
_ODD: Final = frozenset(("tanh", "erf"))


def read_number(array: np.ndarray) -> Polynomial | None:
    """Reads a constant that is one number all over; -0 is none, since a sum of monomials has one zero."""
    if array.ndim == 0:
        value = float(array)
        if value != value:
            return None
    elif not 0 < array.size <= UNIFORM or not bool((array == array.flat[0]).all()):
        return None
    else:
        value = float(array.flat[0])
    return None if value == 0 and math.copysign(1.0, value) < 0 else number(value)


def number(value: float) -> Polynomial:
    """Writes a number."""
    return (((0, ()), value),) if value else ()


def constant_of(p: Polynomial) -> float | None:
    """Gives the number that a polynomial is; None where it is none."""
    if not p:
        return 0.0
    return p[0][1] if len(p) == 1 and p[0][0] == (0, ()) else None


def _collected(terms: Mapping[Monomial, float]) -> Polynomial:
    """Orders terms; one that has come to 0 stays, since 0 times an infinity is NaN, and only a number's may go."""
    return tuple(sorted(((m, c) for m, c in terms.items() if c or m != ONE), key=repr))


def _added(terms: dict[Monomial, float], monomial: Monomial, coefficient: float) -> None:
    """Adds a term; two of unlike signs, which give NaN for an infinity, come to NaN, and that equals no coefficient."""
    known = terms.get(monomial)
    if known is not None and monomial != ONE and not known * coefficient > 0:
        terms[monomial] = math.nan
    else:
        terms[monomial] = (known or 0.0) + coefficient


def summed(a: Polynomial, b: Polynomial) -> Polynomial:
    """Gives a + b."""
    terms = dict(a)
    for monomial, coefficient in b:
        _added(terms, monomial, coefficient)
    return _collected(terms)


def scaled(a: Polynomial, factor: float) -> Polynomial:
    """Gives a times a number."""
    return _collected({m: c * factor for m, c in a})


def product(a: Polynomial, b: Polynomial) -> Polynomial:
    """Gives a * b."""
    terms: dict[Monomial, float] = {}
    for (power, atoms), x in a:
        for (other, more), y in b:
            _added(terms, (power + other, tuple(sorted((*atoms, *more), key=repr))), x * y)
    if (a and not b) or (b and not a):  # the number 0 as a factor
        return scaled(a or b, 0.0)
    return _collected(terms)


def reciprocal(a: Polynomial) -> Polynomial:
    """Gives 1 / a."""
    value = constant_of(a)
    return number(1 / value) if value else applied("reciprocal", a)


def applied(function: str, argument: Polynomial) -> Polynomial:
    """Writes an applied function; what is odd or even is applied to the argument whose first coefficient is positive."""
    if function in (*_ODD, "abs") and argument and argument[0][1] < 0:
        positive = applied(function, scaled(argument, -1.0))
        return scaled(positive, -1.0) if function in _ODD else positive
    return (((0, ((function, argument),)), 1.0),)


def extreme(name: str, a: Polynomial, b: Polynomial) -> Polynomial:
    """Writes the `maximum` or the `minimum` of two polynomials."""
    return (((0, ((name, *sorted((a, b), key=repr)),)), 1.0),)


def larger(kind: str, a: Polynomial, b: Polynomial) -> Polynomial:
    """Writes `a if a > b else b` (`gt`), or with `>=` (`ge`): a NaN in either gives b.

    With a number for a it is the maximum, but for a zero: `0 > x` keeps -0.
    """
    value = constant_of(a)
    if value is not None and (value or kind == "ge"):
        return extreme("maximum", a, b)
    return (((0, ((kind, a, b),)), 1.0),)


def equal(a: Any, b: Any) -> bool:
    """Compares polynomials in which numbers may differ by rounding."""
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(equal(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=TOLERANCE)
    return bool(a == b)


def outline(polynomial: Polynomial) -> tuple[Any, ...]:
    """Gives the powers and the applied functions of a polynomial's terms: equal where the polynomials are."""
    return tuple([(power, *[atom[0] for atom in atoms]) for (power, atoms), _ in polynomial])
