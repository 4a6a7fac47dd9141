"""Coefficients that are not known yet: monomials over named symbols.

A template is traced before anybody knows its epsilon, its extents or the factor that a value carries in a program, so its
coefficients are monomials such as `epsilon * n / x^2`. Whatever adds unlike monomials is no template.

A factor may be negative, and the root of a square is no negative number: `x * (x^2)^(-1/2)` is the sign of x. A monomial
therefore keeps, beside the exponent of `|x|`, whether the sign of x is a factor.
"""

from __future__ import annotations

from collections.abc import Mapping

from topos_core.errors import InternalError

Exponents = tuple[tuple[str, float], ...]
Open = tuple[str, float, bool]
"""What is not known: a name, the exponent of its magnitude, and whether its sign is a factor."""


class Symbol:
    """`factor * product of |name|^exponent * product of sign(name)`; behaves like a positive number where one is asked for."""

    __slots__ = ("_inverse", "exponents", "factor", "signs")

    def __init__(self, factor: float = 1.0, exponents: Exponents = (), signs: frozenset[str] = frozenset()) -> None:
        self.factor = factor
        self.exponents = exponents
        self.signs = signs
        self._inverse: Symbol | None = None

    @staticmethod
    def of(number: Coefficient) -> Symbol:
        """Gives a number as a monomial."""
        return number if isinstance(number, Symbol) else Symbol(float(number))

    @staticmethod
    def named(name: str) -> Symbol:
        """Gives the monomial of one symbol."""
        return Symbol(1.0, ((name, 1.0),), frozenset((name,)))

    def __mul__(self, other: Coefficient) -> Symbol:
        if not isinstance(other, Symbol):
            return Symbol(self.factor * other, self.exponents, self.signs)
        if not other.exponents and not other.signs:
            return Symbol(self.factor * other.factor, self.exponents, self.signs)
        if not self.exponents and not self.signs:
            return Symbol(self.factor * other.factor, other.exponents, other.signs)
        total = dict(self.exponents)
        for name, exponent in other.exponents:
            total[name] = total.get(name, 0.0) + exponent
        return Symbol(self.factor * other.factor, _sorted(total), self.signs ^ other.signs)

    __rmul__ = __mul__

    def __pow__(self, power: float) -> Symbol:
        raised = tuple((name, exponent * power) for name, exponent in self.exponents)
        return Symbol(self.factor**power, raised, self.signs if power % 2 == 1 else frozenset())

    @property
    def inverse(self) -> Symbol:
        """Gives its reciprocal, made once: a template's coefficients divide at every try."""
        if self._inverse is None:
            self._inverse = self**-1
        return self._inverse

    def __truediv__(self, other: Coefficient) -> Symbol:
        if not isinstance(other, Symbol):
            return Symbol(self.factor * other**-1, self.exponents, self.signs)
        return self * other.inverse

    def __rtruediv__(self, other: Coefficient) -> Symbol:
        return self.inverse * other

    def __neg__(self) -> Symbol:
        return Symbol(-self.factor, self.exponents, self.signs)

    def __add__(self, other: Coefficient) -> Symbol:
        other = Symbol.of(other)
        if other.factor == 0:
            return self
        if self.factor == 0:
            return other
        if (self.exponents, self.signs) != (other.exponents, other.signs):
            raise InternalError(f"a template adds unlike symbols: {self} and {other}; give each its own term")
        return Symbol(self.factor + other.factor, self.exponents, self.signs)

    __radd__ = __add__

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (Symbol, int, float)):
            return NotImplemented
        other = Symbol.of(other)
        return (self.factor, self.exponents, self.signs) == (other.factor, other.exponents, other.signs)

    def __hash__(self) -> int:
        return hash((self.factor, self.exponents, self.signs))

    def __gt__(self, other: float) -> bool:
        return self.factor > other

    def __lt__(self, other: float) -> bool:
        return self.factor < other

    def __repr__(self) -> str:
        parts = [f"{self.factor:.9g}"] if self.factor != 1 or not (self.exponents or self.signs) else []
        for name, exponent in self.exponents:
            shown = name if (name in self.signs) == (exponent % 2 == 1) else f"|{name}|"
            parts.append(shown if exponent == 1 else f"{shown}^{exponent:g}")
        plain = {name for name, exponent in self.exponents if exponent % 2 == 1}
        return " * ".join(parts + [f"sign({name})" for name in sorted(self.signs - plain)])

    @property
    def names(self) -> frozenset[str]:
        """Collects the symbols in it."""
        return self.signs.union(name for name, _ in self.exponents)

    def reduced(self, known: Mapping[str, float], times: float = 1.0) -> tuple[float, list[Open]]:
        """Puts in what is known, times a number; gives the number in front and what is left."""
        factor, signs = self.factor * times, self.signs
        left: list[Open] = []
        if not self.exponents and not signs:
            return factor, left
        for name, exponent in self.exponents:
            value = known.get(name)
            if value is None:
                left.append((name, exponent, name in signs))
            elif value != 1.0:
                factor *= abs(value) if exponent == 1.0 else real_power(abs(value), exponent)
        lone = []
        for name in signs:
            value = known.get(name)
            if value is None:
                lone.append(name)
            elif value < 0:
                factor = -factor
        if lone:
            powers = {name for name, _ in self.exponents}
            left += [(name, 0.0, True) for name in sorted(lone) if name not in powers]
        return factor, left


Coefficient = float | Symbol


def real_power(base: float, exponent: float) -> float:
    """Raises to a power; NaN where no real number is meant (a root of a negative number, a division by zero)."""
    try:
        result = base**exponent
    except (ZeroDivisionError, OverflowError):
        return float("nan")
    return result if isinstance(result, float) else float("nan")


def quotient(dividend: Coefficient, divisor: Coefficient) -> Coefficient:
    """Divides; NaN, which equals nothing, where the divisor is zero (`x * 0` keeps its coefficient)."""
    return dividend / divisor if divisor != 0 else float("nan")


def power_of(base: Coefficient, exponent: float) -> Coefficient:
    """Raises a number or a symbol to a power; NaN as in `real_power`."""
    return real_power(base, exponent) if isinstance(base, float) else base**exponent


def _sorted(total: dict[str, float]) -> Exponents:
    return tuple(sorted((name, exponent) for name, exponent in total.items() if exponent))
