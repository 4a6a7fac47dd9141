"""Numbers that a try passes on without looking at them, as expressions: worked out for other functions, step by step as a
try would."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from topos_core.matching.func import Func
from topos_core.matching.symbol import Coefficient, Symbol, power_of, quotient


class Passed(Symbol):
    """A coefficient of the program, or what a try made of several: an expression, worked out for each function anew."""

    __slots__ = ("step",)

    def __init__(self, *step: Any) -> None:
        super().__init__()
        self.step = step

    def __mul__(self, other: Coefficient) -> Passed:
        return Passed("mul", self, other)

    def __rmul__(self, other: Coefficient) -> Passed:
        return Passed("mul", other, self)

    def __truediv__(self, other: Coefficient) -> Passed:
        return Passed("div", self, other)

    def __rtruediv__(self, other: Coefficient) -> Passed:
        return Passed("div", other, self)

    def __pow__(self, power: float) -> Passed:
        return Passed("pow", self, power)

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = None  # type: ignore[assignment]


def worked_out(number: Any, order: Sequence[Func]) -> Any:
    """Gives what a number is for other functions."""
    if type(number) is not Passed:
        return number
    step = number.step
    what = step[0]
    if what == "kid":
        return order[step[1]].kids[step[2]].weight
    if what == "constant":
        return order[step[1]].constant
    if what == "written":
        return order[step[1]].written[step[2]].weight
    a, b = worked_out(step[1], order), worked_out(step[2], order)
    if what == "mul":
        return a * b
    return quotient(a, b) if what == "div" else power_of(a, b)


class Trail:
    """What a try has read, as (what was asked, what it was), and whether that tells all that it does."""

    __slots__ = ("is_kept", "readings")

    def __init__(self) -> None:
        self.is_kept = True
        self.readings: list[tuple[Any, Any]] = []


class Stride(int):
    """A coefficient of a digit that is a product of extents, or what a try made of several: it is passed on, and compared.

    How those that were met compare is part of what was read; where one was made, how it compares is read when it is asked.
    """

    made: int | tuple[bool, int, int]
    """Its place among those that were met, or whether it is a sum (else a product), and of what."""
    trail: Trail

    def __mul__(self, other: int) -> int:
        if other == 0:
            return 0
        return self if other == 1 else self._mixed(False, other, int(self) * int(other))

    __rmul__ = __mul__

    def __add__(self, other: int) -> int:
        return self if other == 0 else self._mixed(True, other, int(self) + int(other))

    __radd__ = __add__

    def _mixed(self, is_sum: bool, other: int, number: int) -> int:
        if other < 1:
            self.trail.is_kept = False  # nothing is known of how it compares with one
        mixed = Stride(number)
        mixed.made, mixed.trail = (is_sum, self, other), self.trail
        return mixed

    def _compared(self, other: object, is_less: bool) -> bool:
        if not isinstance(other, int):
            return False
        result = int(self) < int(other) if is_less else int(self) == int(other)
        if other > 1 and (type(self.made) is tuple or type(getattr(other, "made", ())) is tuple):
            self.trail.readings.append(((is_less, self, other), result))
        return result

    def __eq__(self, other: object) -> bool:
        return self._compared(other, False)

    def __ne__(self, other: object) -> bool:
        return not self._compared(other, False)

    def __lt__(self, other: int) -> bool:
        return self._compared(other, True)

    __hash__ = int.__hash__


def length(stride: Any, coefficients: Sequence[int]) -> int:
    """Gives what a coefficient is for other functions."""
    if type(stride) is not Stride:
        return int(stride)
    made: Any = stride.made
    if type(made) is not tuple:
        return coefficients[int(made)]
    is_sum, a, b = made
    return (
        length(a, coefficients) + length(b, coefficients)
        if is_sum
        else length(a, coefficients) * length(b, coefficients)
    )


def is_passed_on(number: Any) -> bool:
    """Says whether a try does nothing with a coefficient but pass it on: zero, one and what is not finite are asked about."""
    return isinstance(number, float) and number not in (0.0, 1.0, -1.0) and math.isfinite(number)
