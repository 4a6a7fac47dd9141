"""How a value lies: which digits of a match each of its axes consists of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from topos_core.matching.affine import Digits
from topos_core.matching.attempt import Attempt
from topos_core.matching.core import Keys
from topos_core.matching.func import Func, Map
from topos_core.matching.view import View


class Part(NamedTuple):
    """A stretch of one axis: its extent, the digit of the match that it is part of, and its weight there."""

    extent: int
    digit: int
    weight: int


Rows = tuple[tuple[Part, ...], ...]
"""Per axis of a value its parts, most significant first."""


def rows_of(keys: Keys, attempt: Attempt, value: int, func: Func, map_: Map) -> Rows | None:
    """Tells how the axes of a value consist of the digits of a match, where it holds every element exactly once."""
    if keys.windows.get(value) == func.number:
        view = keys.clean(value)
    elif keys.funcs[value] is func:
        view = keys.views[value]
    else:
        return None
    if view.bounds or view.divisors.count(1) != len(view.divisors):
        return None
    parts = _aligned(view, map_, attempt)
    if parts is None:
        return None
    at, out = 0, []
    for axis in view.axes:
        if len(axis) == 1:
            out.append(tuple(parts[at]))
        else:
            out.append(tuple([part for row in parts[at : at + len(axis)] for part in row]))
        at += len(axis)
    return tuple(out)


def _aligned(view: View, map_: Map, attempt: Attempt) -> list[list[Part]] | None:
    """Gives the parts of each of a view's digits: per form, both sides are the same mixed-radix number."""
    digits = view.digits
    plain = _bare(digits, map_, view, attempt)
    if plain is not None:
        return plain
    parts: list[list[Part]] = [[] for _ in digits]
    used: set[int] = set()
    for k, one in enumerate(map_):
        offset, terms = (0, ((one, 1),)) if isinstance(one, int) else one
        if offset != view.offsets[k]:
            return None
        own = sorted(((d.coefficients[k], i) for i, d in enumerate(digits) if d.coefficients[k]), reverse=True)
        other = sorted(((c, attempt.root_of(d)) for d, c in terms), reverse=True)
        if any(i in used for _, i in own) or any(c < 0 for c, _ in (*own, *other)):
            return None
        used.update(i for _, i in own)
        if not _zipped(own, other, view, attempt, parts):
            return None
    if len(used) != len(digits):
        return None  # a repeated axis
    shown = [part for row in parts for part in row]
    sizes: dict[int, int] = {}
    for part in shown:
        sizes[part.digit] = sizes.get(part.digit, 1) * part.extent
    if any(size != attempt.extents[digit] for digit, size in sizes.items()):
        return None
    return parts


def _bare(digits: Digits, map_: Map, view: View, attempt: Attempt) -> list[list[Part]] | None:
    """The common case: every digit of the value is one digit of the function, and that one of the match."""
    if len(digits) != len(map_) or any(view.offsets):
        return None
    parts: list[list[Part]] = []
    alias, extents, last = attempt.alias, attempt.extents, len(map_) - 1
    shown: set[int] = set()
    for extent, coefficients in digits:
        if coefficients.count(0) != last or 1 not in coefficients:
            return None
        one = map_[coefficients.index(1)]
        if type(one) is not int:
            return None
        while one in alias:
            one = alias[one]
        if extents[one] != extent or one in shown:
            return None
        shown.add(one)
        parts.append([Part(extent, one, 1)])
    return parts


def _zipped(
    own: list[tuple[int, int]], other: list[tuple[int, int]], view: View, attempt: Attempt, parts: list[list[Part]]
) -> bool:
    """Cuts two mixed-radix numbers that must be equal into common stretches, least significant first.

    Digits that overlap (a sliding window) are no mixed-radix number, and nothing tells them apart.
    """
    digits = view.digits
    least = 1
    left = [(digits[i].extent, c, i) for c, i in own]
    right = [(attempt.extents[d], c, d, 1) for c, d in other]
    while left and right:
        extent, weight, index = left.pop()
        size, coefficient, digit, below = right.pop()
        if weight != coefficient or weight < least:
            return False
        step = min(extent, size)
        if extent % step or size % step:
            return False
        parts[index].insert(0, Part(step, digit, below))
        least = weight * step
        if extent > step:
            left.append((extent // step, weight * step, index))
        if size > step:
            right.append((size // step, coefficient * step, digit, below * step))
    return not left and not right


def order_of(rows: Sequence[Rows], digits: Iterable[int]) -> dict[int, int] | None:
    """Ranks digits so that every value lies in their order, as far as it shows them; None where two values disagree."""
    ranked: list[int] = []
    for one in rows:
        mine: list[int] = []
        below = 1
        for part in (part for row in one for part in row):
            if mine and mine[-1] == part.digit:
                if part.weight * part.extent != below:
                    return None
            elif part.digit in mine:
                return None
            else:
                mine.append(part.digit)
            below = part.weight
        common = [digit for digit in ranked if digit in mine]
        if common != [digit for digit in mine if digit in ranked]:
            return None
        ranked += [digit for digit in mine if digit not in ranked]
    ranked += [digit for digit in digits if digit not in ranked]
    return {digit: place for place, digit in enumerate(ranked)}
