"""Sigmoids that no power of e overflows in: what is chosen by comparison, or taken out of a logarithm, is one function again.

Each rule keeps NaN and infinities where they are recorded: it holds for every number of its branch, and for NaN.
"""

from __future__ import annotations

import math

from topos_core.matching.polynomial import (
    Atom,
    Monomial,
    Polynomial,
    applied,
    constant_of,
    equal,
    number,
    product,
    reciprocal,
    scaled,
    summed,
)


def same_by_sign(left: Polynomial, right: Polynomial, first: Polynomial, second: Polynomial) -> Polynomial | None:
    """Reads `first if left > right else second`, or `>=`, where one side is 0 and both branches are one function.

    In a branch the tested value has one sign: |x| is x or -x, and `exp(x) / (1 + exp(x))` does not overflow for x <= 0.
    """
    tested, sign = (left, 1.0) if right == () else (right, -1.0)
    if (left and right) or len(tested) != 1 or constant_of(tested) is not None:
        return None
    a, b = _in_branch(first, tested, sign), _in_branch(second, tested, -sign)
    return a if equal(a, b) else None


def same_where_equal(left: Polynomial, right: Polynomial, first: Polynomial, second: Polynomial) -> Polynomial | None:
    """Reads `first if left == right else second`, as `logaddexp` chooses, where both are one function.

    One side is a number, so that no two infinities are equal, and `log1p(exp(-|left - right|))` is log(2) where they are.
    """
    if constant_of(left) is None and constant_of(right) is None:
        return None
    apart = applied("abs", summed(left, scaled(right, -1.0)))
    spread = applied("log1p", applied("exp", scaled(apart, -1.0)))
    rest = tuple(term for term in second if term[0] != spread[0][0])
    if len(rest) != len(second) - 1 or (spread[0][0], 1.0) not in second:
        return None
    return second if equal(summed(rest, number(math.log(2.0))), first) else None


def power_of_logarithm(argument: Polynomial) -> Polynomial | None:
    """Reads `exp` of `-log(p)`, `-log1p(p)` or minus a softplus as a reciprocal; p is made of powers of e and positive numbers."""
    if len(argument) == 2:
        return _power_of_softplus(argument)
    if len(argument) != 1 or argument[0][1] != -1.0 or argument[0][0][0] != 0 or len(argument[0][0][1]) != 1:
        return None
    function, inner = argument[0][0][1][0][:2]
    if function not in ("log", "log1p") or not all(
        c > 0 and power == 0 and all(atom[0] == "exp" for atom in atoms) for (power, atoms), c in inner
    ):
        return None
    return reciprocal(inner if function == "log" else summed(number(1.0), inner))


def _power_of_softplus(argument: Polynomial) -> Polynomial | None:
    """Reads `exp(-(max(q, 0) + log1p(exp(-|q|))))`, or with `min(-q, 0)` added, as `1 / (1 + exp(q))`."""
    for (power, atoms), c in argument:
        if power or len(atoms) != 1 or atoms[0][0] not in ("maximum", "minimum") or () not in atoms[0][1:]:
            continue
        (q,) = [part for part in atoms[0][1:] if part] or [()]
        spread = applied("log1p", applied("exp", scaled(applied("abs", q), -1.0)))
        if c == (-1.0 if atoms[0][0] == "maximum" else 1.0) and (spread[0][0], -1.0) in argument:
            return reciprocal(summed(number(1.0), applied("exp", scaled(q, -c))))
    return None


def _in_branch(whole: Polynomial, tested: Polynomial, sign: float) -> Polynomial:
    """Writes a branch in which the tested value is not on the other side of 0."""
    return tuple(sorted(((_as_logistic(m, tested, sign), c) for m, c in _unsigned(whole, tested, sign)), key=repr))


def _unsigned(whole: Polynomial, tested: Polynomial, sign: float) -> Polynomial:
    """Writes |x| as x or -x below powers of e; elsewhere it is left, since |-0| is 0."""
    found: Polynomial = ()
    for (power, atoms), c in whole:
        term: Polynomial = (((power, ()), c),)
        for atom in atoms:
            term = product(term, _unsigned_atom(atom, tested, sign))
        found = summed(found, term)
    return found


def _unsigned_atom(atom: Atom, tested: Polynomial, sign: float) -> Polynomial:
    match atom:
        case ("reciprocal", inner):
            return reciprocal(_unsigned(inner, tested, sign))
        case ("exp", inner):
            size = applied("abs", tested)[0][0]
            rest = tuple(term for term in inner if term[0] != size)
            factor = sum(c for monomial, c in inner if monomial == size)
            return applied("exp", summed(rest, scaled(tested, sign * factor)) if len(rest) < len(inner) else inner)
        case _:
            return (((0, (atom,)), 1.0),)


def _as_logistic(monomial: Monomial, tested: Polynomial, sign: float) -> Monomial:
    """Writes `exp(a) / (1 + exp(a))` as `1 / (1 + exp(-a))`, where a is the tested value times what makes it at most 0."""
    power, atoms = monomial
    for atom in atoms:
        if atom[0] != "exp" or len(atom[1]) != 1 or atom[1][0][0] != tested[0][0]:
            continue
        ((_, factor),) = atom[1]
        quotient = reciprocal(summed(number(1.0), (((0, (atom,)), 1.0),)))[0][0][1][0]
        if factor * tested[0][1] * sign < 0 and quotient in atoms:
            other = reciprocal(summed(number(1.0), applied("exp", scaled(atom[1], -1.0))))[0][0][1][0]
            rest = list(atoms)
            rest.remove(atom)
            rest.remove(quotient)
            return power, tuple(sorted((*rest, other), key=repr))
    return monomial
