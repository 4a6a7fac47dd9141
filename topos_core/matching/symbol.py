"""Coefficients that are not known yet: monomials over named symbols.

A template is traced before anybody knows its epsilon, its extents or the factor that a value carries in a program, so its
coefficients are monomials such as `epsilon * n / x^2`. Whatever adds unlike monomials is no template.
"""

from __future__ import annotations

from collections.abc import Mapping

from topos_core.errors import InternalError

Exponents = tuple[tuple[str, float], ...]


class Symbol:
    """`factor * product of name^exponent`; behaves like a positive number where a sign is asked for."""

    __slots__ = ("exponents", "factor")

    def __init__(self, factor: float = 1.0, exponents: Exponents = ()) -> None:
        self.factor = factor
        self.exponents = exponents

    @staticmethod
    def of(number: Coefficient) -> Symbol:
        """Gives a number as a monomial."""
        return number if isinstance(number, Symbol) else Symbol(float(number))

    @staticmethod
    def named(name: str) -> Symbol:
        """Gives the monomial of one symbol."""
        return Symbol(1.0, ((name, 1.0),))

    def __mul__(self, other: Coefficient) -> Symbol:
        other = Symbol.of(other)
        if not other.exponents:
            return Symbol(self.factor * other.factor, self.exponents)
        if not self.exponents:
            return Symbol(self.factor * other.factor, other.exponents)
        total = dict(self.exponents)
        for name, exponent in other.exponents:
            total[name] = total.get(name, 0.0) + exponent
        return Symbol(self.factor * other.factor, _sorted(total))

    __rmul__ = __mul__

    def __pow__(self, power: float) -> Symbol:
        return Symbol(self.factor**power, tuple((name, exponent * power) for name, exponent in self.exponents))

    def __truediv__(self, other: Coefficient) -> Symbol:
        return self * Symbol.of(other) ** -1

    def __rtruediv__(self, other: Coefficient) -> Symbol:
        return Symbol.of(other) * self**-1

    def __neg__(self) -> Symbol:
        return Symbol(-self.factor, self.exponents)

    def __add__(self, other: Coefficient) -> Symbol:
        other = Symbol.of(other)
        if other.factor == 0:
            return self
        if self.factor == 0:
            return other
        if self.exponents != other.exponents:
            raise InternalError(f"a template adds unlike symbols: {self} and {other}; give each its own term")
        return Symbol(self.factor + other.factor, self.exponents)

    __radd__ = __add__

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (Symbol, int, float)):
            return NotImplemented
        other = Symbol.of(other)
        return self.factor == other.factor and self.exponents == other.exponents

    def __hash__(self) -> int:
        return hash((self.factor, self.exponents))

    def __gt__(self, other: float) -> bool:
        return self.factor > other

    def __lt__(self, other: float) -> bool:
        return self.factor < other

    def __repr__(self) -> str:
        parts = [f"{self.factor:.9g}"] if self.factor != 1 or not self.exponents else []
        return " * ".join(parts + [name if e == 1 else f"{name}^{e:g}" for name, e in self.exponents])

    def reduced(self, known: Mapping[str, float]) -> tuple[float, list[tuple[str, float]]]:
        """Puts in what is known; gives the number in front and what is left."""
        factor, left = self.factor, []
        for name, exponent in self.exponents:
            value = known.get(name)
            if value is None:
                left.append((name, exponent))
            else:
                factor *= real_power(value, exponent)
        return factor, left


Coefficient = float | Symbol


def real_power(base: float, exponent: float) -> float:
    """Raises to a power; NaN where no real number is meant (a root of a negative number, a division by zero)."""
    try:
        result = base**exponent
    except (ZeroDivisionError, OverflowError):
        return float("nan")
    return result if isinstance(result, float) else float("nan")


def _sorted(total: dict[str, float]) -> Exponents:
    return tuple(sorted((name, exponent) for name, exponent in total.items() if exponent))
