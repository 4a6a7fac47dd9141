"""What a try can read of functions: their local structure, which of them it has met before, and how strides compare."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from itertools import count
from typing import Any, Final

from topos_core.matching.func import Func, Map
from topos_core.matching.passed import is_passed_on

EXACT: Final = frozenset(("product", "reduce"))
"""Kinds whose weights are exponents: part of the structure, since a try compares them."""


class Met:
    """What a try has met so far, in that order: functions, and coefficients of digits in maps."""

    __slots__ = ("coefficients", "order", "places", "sorted")

    def __init__(
        self, order: list[Func], places: dict[Func, int], coefficients: list[int], ascending: list[int]
    ) -> None:
        self.order, self.places, self.coefficients, self.sorted = order, places, coefficients, ascending

    @staticmethod
    def of(top: Func) -> Met:
        """Begins at the top of a try."""
        return Met([top], {top: 0}, [], [])

    def copy(self) -> Met:
        """Gives one that goes on by itself."""
        return Met(self.order.copy(), self.places.copy(), self.coefficients.copy(), self.sorted.copy())

    def reading(self, func: Func) -> tuple[int, ...]:
        """Reads a function: its local structure, where its operands stand among those that were met, and how the
        coefficients in its maps compare with those."""
        out = [func.local]
        order, places = self.order, self.places
        for one in func.links:
            place = places.get(one)
            if place is None:
                place = places[one] = len(order)
                order.append(one)
            out.append(place)
        for coefficient in func.strides:
            at = bisect_left(self.sorted, coefficient)
            if at < len(self.sorted) and self.sorted[at] == coefficient:
                out.append(2 * at + 1)
            else:
                out.append(2 * at)
                self.sorted.insert(at, coefficient)
                self.coefficients.append(coefficient)
        return tuple(out)


class Reach:
    """How far a try has read: the number of the last reading, what was met by then, and what was read next.

    Tries of several templates at one function read the same functions in the same order for a while, and share these.
    """

    __slots__ = ("met", "next", "reading")

    def __init__(self, reading: int, met: Met) -> None:
        self.reading, self.met = reading, met
        self.next: dict[int, Reach] = {}  # by the place of the function that is read


_NUMBERS: Final = count()


class Locals:
    """Numbers for local structures and for readings; equal where a try can tell no difference. No two tables share a number."""

    def __init__(self) -> None:
        self._known: dict[Any, int] = {}
        self._readings: dict[tuple[int, ...], int] = {}

    def read(self, func: Func) -> None:
        """Gives a function the number of its local structure: all that a try can read of it, but for which functions its
        operands are, and numbers."""
        exact = func.kind in EXACT
        row: list[Any] = [func.kind, func.name, told(func.constant, False), len(func.shape), len(func.reduced)]
        links: list[Func] = []
        strides: list[int] = []

        def marked(coefficient: int) -> Any:
            strides.append(coefficient)

        for kids in (func.kids, func.written):
            row.append(len(kids))
            for one, map_, weight in kids:
                links.append(one)
                row += (one.kind, one.name, one.adds_nothing, restrided(map_, marked), told(weight, exact))
        func.links, func.strides = tuple(links), tuple(strides)
        func.local = self._known.setdefault(tuple(row), next(_NUMBERS))

    def first(self, func: Func) -> Reach:
        """Gives what every try at a function reads first: the function itself."""
        if func.first is None:
            if func.local < 0:
                self.read(func)
            met = Met.of(func)
            func.first = self._reach(met, func)
        first: Reach = func.first
        return first

    def after(self, reach: Reach, place: int) -> Reach:
        """Gives how far it is with one more of the functions that were met."""
        following = reach.next.get(place)
        if following is None:
            met = reach.met.copy()
            func = met.order[place]
            if func.local < 0:
                self.read(func)
            following = reach.next[place] = self._reach(met, func)
        return following

    def _reach(self, met: Met, func: Func) -> Reach:
        return Reach(self._readings.setdefault(met.reading(func), next(_NUMBERS)), met)


def extents(func: Func, place: int) -> tuple[int, ...]:
    """Gives the extents of the digits that a function brought into a try: the top its own, others those that they reduce."""
    return func.shape + func.reduced if place == 0 else func.reduced


def told(number: Any, exact: bool) -> Any:
    """Gives what a reading tells of a number: itself where a try may look at it, else that there is one."""
    if exact or number is None or number in (1.0, -1.0):
        return number
    return "number" if is_passed_on(number) else repr(number)


def restrided(map_: Map, put: Callable[[int], Any]) -> Map:
    """Puts something in the place of every coefficient of a digit that is a product of extents, in their order."""
    for one in map_:
        if type(one) is not int:
            break
    else:
        return map_
    out: list[Any] = []
    for one in map_:
        if type(one) is int:
            out.append(one)
        else:
            offset, terms = one  # type: ignore[misc]
            out.append((offset, tuple([(digit, put(c) if c > 1 else c) for digit, c in terms])))
    return tuple(out)
