"""Numbers: the equations of a try, one unknown after the other.

A hole may carry a factor only if some value of the program carries it: otherwise a scale absorbs `sqrt(n / (n - 1))` and
a sample variance "is" a layer norm. Counts are known from the digits. What stays free is taken as the program computes it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from copy import copy
from typing import Final, NamedTuple

from topos_core.matching.attempt import Attempt, Equation
from topos_core.matching.core import FACTOR, Keys
from topos_core.matching.func import Func
from topos_core.matching.ideal import tolerance
from topos_core.matching.symbol import Symbol, real_power
from topos_core.matching.template import COUNT

_READ_AT_MOST: Final = 200
_CLOSE: Final = 1e-9


class NumberFault(NamedTuple):
    """Two numbers that differ: what they are, n where they differ as n and n - 1 do, and the hole that they stand in front of."""

    what: str
    expected: float
    found: float
    divisor: int | None
    hole: str = ""


def solved(attempt: Attempt, keys: Keys, root: int) -> bool:
    """Solves the equations of a try; the failure tells the numbers as the program has them."""
    if _solve(attempt, keys, root, plain=False):
        return True
    if all(len(factors_of(keys, func.number)) == 1 for func, _ in attempt.bound.values()):
        return False  # no hole has a choice of factors
    kept, attempt.failure = attempt.failure, None
    done = _solve(attempt, keys, root, plain=True)  # in terms of the values as written
    if not done and attempt.failure is None:
        attempt.failure = kept
    return done


def solved_as_written(attempt: Attempt, keys: Keys, root: int) -> Attempt | None:
    """Gives a try that holds with its raw holes bound as the program scales them; None where they are bound so anyway."""
    if not attempt.template.term.raw:
        return None
    if not any(len(factors_of(keys, attempt.bound[hole][0].number)) > 1 for hole in _raw(attempt)):
        return None
    nearer = copy(attempt)
    nearer.failure = None
    if not _solve(nearer, keys, root, plain=False, written=True) or nearer.known == attempt.known:
        return None
    return nearer


def misplaced(attempt: Attempt, keys: Keys, root: int) -> NumberFault | None:
    """Finds the one hole that, with another number in front of its value, makes all equations of a failed try hold.

    Which equation cannot hold is chance: what is solved before takes a sign or a number in. Only what is told is asked for this.
    """
    kept = attempt.failure, attempt.known
    try:
        optional = attempt.template.term.optional  # first: one of them is more easily taken for what it is not
        for hole in sorted(attempt.template.factors, key=lambda one: one not in optional):
            if _solve(attempt, keys, root, plain=True, freed=hole):
                factor = attempt.known[attempt.template.factors[hole]]
                number = _in_front(factor, factors_of(keys, attempt.bound[hole][0].number))
                if number != 1 and divisor_fault(number, attempt.known) is None:
                    return NumberFault(f"the factor of {hole}", 1.0, number, None, hole)
    finally:
        attempt.failure, attempt.known = kept
    return None


def close(a: float, b: float, relative: float) -> bool:
    """Says whether two coefficients are one."""
    return a == b or (math.isfinite(a) and math.isfinite(b) and abs(a - b) <= relative * max(abs(a), abs(b)))


def holds_factor(factor: float, factors: tuple[float, ...], relative: float) -> bool:
    """Says whether some value of the program carries a factor: else a scale would take in whatever is left over."""
    return any(close(factor, one, relative) for one in factors)


def factors_of(keys: Keys, number: int) -> tuple[float, ...]:
    """Lists the coefficients with which a function occurs on the tape."""
    known = keys.factors.get(number)
    if known is None:
        coefficients = dict.fromkeys([keys.coefficients[value] for value in keys.made.get(number, ())])
        known = keys.factors[number] = tuple([c for c in coefficients if isinstance(c, float)]) or (1.0,)
    return known


def divisor_fault(ratio: float, known: Mapping[str, float]) -> int | None:
    """Gives n where a ratio is that of n to n - 1, or a root or square of it: the commonest numeric look-alike."""
    if not ratio > 0:
        return None
    for name, count in known.items():
        if not name.startswith(COUNT) or count <= 1:
            continue
        wanted = count / (count - 1)
        for one in (ratio, 1 / ratio):
            for power in (0.5, 1.0, 2.0):
                if abs(real_power(one, power) - wanted) < 1e-3 * (wanted - 1):
                    return int(count)
    return None


def _solve(
    attempt: Attempt, keys: Keys, root: int, plain: bool, freed: str | None = None, written: bool = False
) -> bool:
    """Solves the equations; the hole that is `freed` may carry any factor, in terms of values as written.

    Where equations leave a factor open, `written` takes raw holes as the program scales them too.
    """
    template = attempt.template
    known = _counted(attempt)
    relative = tolerance(keys.tape.ops[root].type.dtype)
    possible: dict[str, tuple[float, ...]] = {}
    for hole, name in template.factors.items():
        factors = possible[hole] = factors_of(keys, attempt.bound[hole][0].number)
        if (plain or len(factors) == 1) and hole != freed:
            known[name] = _unscaled(factors)
    left: list[tuple[Symbol, float, Equation]] = []  # what must be one: a monomial times a number
    for equation in attempt.equations:
        found, expected = equation.found, equation.expected
        one = found if type(found) is float else found.factor  # type: ignore[union-attr]
        other = expected if type(expected) is float else expected.factor  # type: ignore[union-attr]
        if one == 0 or other == 0:
            left.append((Symbol(1.0 if one == other else -math.inf), 1.0, equation))
        elif one == other and math.isinf(one) and not Symbol.of(expected).names:
            continue
        elif type(found) is float and type(expected) is Symbol:
            left.append((expected.inverse, found, equation))
        else:
            left.append((Symbol.of(found / expected), 1.0, equation))
    while left:
        moved, rest = False, []
        for ratio, times, equation in left:
            number, open_ = ratio.reduced(known, times)
            if not open_:
                if number == 1.0 or (math.isnan(number) and _same_infinity(equation, known)):
                    continue
                if not _holds(number, relative, known):
                    return _unequal(attempt, equation, number, known)
            elif len(open_) == 1 and open_[0][1]:
                name, exponent, odd = open_[0]
                magnitude = _magnitude(number, exponent)
                if (not magnitude > 0 and not (odd and exponent in (1.0, -1.0))) or (number < 0 and not odd):
                    attempt.fail("constant", NumberFault(equation.what, math.nan, number, None), None, equation.func)
                    return False
                if odd:
                    known[name] = -magnitude if number < 0 else magnitude
                else:
                    known[name] = _either_sign(magnitude, possible.get(name.removeprefix(FACTOR), ()), relative)
                moved = True
            else:
                rest.append((ratio, times, equation))
        left = rest
        if moved:
            continue
        if not left:
            break
        free = sorted(
            {name for ratio, _, _ in left for name in ratio.names if name not in known and name.startswith(FACTOR)}
        )
        if not free:
            break
        hole = free[0].removeprefix(FACTOR)
        if hole not in template.term.raw:
            known[free[0]] = _as_computed(attempt, keys, root, hole)
        elif written:
            known[free[0]] = _as_scaled(attempt, keys, root, hole)
        else:
            known[free[0]] = _unscaled(possible[hole])
    if left:
        attempt.fail("underdetermined", left[0][0] * left[0][1], None, attempt.top)
        return False
    for hole, factors in possible.items():
        factor = known.setdefault(template.factors[hole], 1.0)
        if hole != freed and factor != factors[0] and not holds_factor(factor, factors, relative):
            number = _in_front(factor, factors)
            fault = NumberFault(f"the factor of {hole}", 1.0, number, divisor_fault(number, known), hole)
            attempt.fail("constant", fault, None, attempt.bound[hole][0])
            return False
    for wanted, sign, func in attempt.signs:
        number, open_ = Symbol.of(wanted).reduced(known)
        if open_ or not number * sign > 0:
            holes = sorted(hole for hole in template.holes if FACTOR + hole in Symbol.of(wanted).names)
            attempt.fail("sign", holes, number, func)
            return False
    attempt.known = known
    return True


def _counted(attempt: Attempt) -> dict[str, float]:
    """Gives how many positions there are along each label, by the names under which equations know them."""
    known: dict[str, float] = {}
    counts, extents = attempt.template.counts, attempt.extents
    for label, digits in attempt.labels.items():
        if len(digits) == 1:
            known[counts[label]] = float(extents[digits[0]])
            continue
        count = 1
        for digit in digits:
            count *= extents[digit]
        known[counts[label]] = float(count)
    return known


def wrong_numbers(attempt: Attempt, keys: Keys, root: int) -> int:
    """Counts the numbers of a try that are others than its template has, in terms of the values as written."""
    known, relative = _counted(attempt), tolerance(keys.tape.ops[root].type.dtype)
    for hole, name in attempt.template.factors.items():
        if hole in attempt.bound:
            known[name] = _unscaled(factors_of(keys, attempt.bound[hole][0].number))
    wrong = 0
    for equation in attempt.equations:
        (found, open_), (expected, other) = (
            Symbol.of(side).reduced(known) for side in (equation.found, equation.expected)
        )
        wrong += not open_ and not other and not close(found, expected, relative)
    return wrong


def _unscaled(factors: tuple[float, ...]) -> float:
    """Gives the factor of a value as it was computed first: what is scaled comes after it."""
    return 1.0 if 1.0 in factors else factors[0]


def _holds(number: float, relative: float, known: Mapping[str, float]) -> bool:
    """Says whether a ratio is one: within rounding, unless it is exactly that of n to n - 1."""
    if math.isnan(number) or not close(number, 1.0, relative):
        return False
    return close(number, 1.0, _CLOSE) or divisor_fault(number, known) is None


def _same_infinity(equation: Equation, known: Mapping[str, float]) -> bool:
    found, expected = (Symbol.of(side).reduced(known)[0] for side in (equation.found, equation.expected))
    return math.isinf(found) and found == expected


def _magnitude(number: float, exponent: float) -> float:
    """Solves `|number| * magnitude^exponent == 1`; NaN where nothing does."""
    return real_power(abs(number), -1 / exponent)


def _either_sign(magnitude: float, factors: tuple[float, ...], relative: float) -> float:
    """Gives the root of a square the sign with which a value of that magnitude exists; positive where both do, or none."""
    signs = {math.copysign(1.0, one) for one in factors if close(abs(one), magnitude, relative)}
    return -magnitude if signs == {-1.0} else magnitude


def _unequal(attempt: Attempt, equation: Equation, ratio: float, known: Mapping[str, float]) -> bool:
    found = Symbol.of(equation.found).reduced(known)[0]
    expected, open_ = Symbol.of(equation.expected).reduced(known)
    if open_ and ratio:
        expected = found / ratio if found else math.nan
    fault = NumberFault(equation.what, expected, found, divisor_fault(ratio, known))
    attempt.fail("constant", fault, None, equation.func)
    return False


def _in_front(factor: float, factors: tuple[float, ...]) -> float:
    """Gives the number in front of the value that carries nearly such a factor."""
    own = min(factors, key=lambda one: abs(abs(one) - abs(factor)))
    return factor / own if own else factor


def _as_computed(attempt: Attempt, keys: Keys, root: int, hole: str) -> float:
    """Gives the factor of the value that the program computes with, where equations leave it open.

    A layer norm is the same of x, with some epsilon, and of 2x, with four times that: people mean the value as written.
    It is a multiple of the bound function that some op reads which is no such multiple itself; 1 if there is a choice.
    """
    read = _read(attempt, keys, root, attempt.bound[hole][0])
    return 1.0 if not read or 1.0 in read else read[0]


def _as_scaled(attempt: Attempt, keys: Keys, root: int, hole: str) -> float:
    """Gives the factor with which the program computes with the value of a raw hole; holes of one value share its readings."""
    func = attempt.bound[hole][0]
    read = sorted(_read(attempt, keys, root, func), key=lambda factor: factor == 1.0)
    place = [one for one in _raw(attempt) if attempt.bound[one][0] is func].index(hole)
    return read[place] if place < len(read) else 1.0


def _raw(attempt: Attempt) -> list[str]:
    """Lists the holes of a try that are bound without their factor where there is a choice."""
    return [hole for hole in attempt.template.factors if hole in attempt.template.term.raw]


def _read(attempt: Attempt, keys: Keys, root: int, func: Func) -> list[float]:
    """Lists the factors of the multiples of a function that ops below a root read which are no multiples themselves."""
    ops = keys.tape.ops
    todo, seen, read = [root], {root}, []
    while todo and len(seen) < _READ_AT_MOST:
        value = max(todo)
        todo.remove(value)
        for operand in ops[value].operands:
            mine = keys.funcs[operand] is func
            if mine and keys.funcs[value] is not func:
                read.append(keys.coefficients[operand])
            if operand not in seen and not (mine and not keys.is_movement(operand) and keys.coefficients[operand] == 1):
                seen.add(operand)
                todo.append(operand)
    return [factor for factor in read if isinstance(factor, float)]
