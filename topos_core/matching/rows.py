"""How a value lies: which digits of a match each of its axes consists of."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import combinations
from math import prod
from typing import NamedTuple

from topos_core.matching.affine import lone
from topos_core.matching.attempt import Attempt
from topos_core.matching.core import Keys
from topos_core.matching.func import Func, Map, digits_of
from topos_core.matching.tuples import new_tuple
from topos_core.matching.view import View, is_whole


class Part(NamedTuple):
    """A stretch of one axis: its extent, the digit of the match that it is part of, and its weight there."""

    extent: int
    digit: int
    weight: int


class Repeated(NamedTuple):
    """What may broadcast: the labels along which a value may repeat its elements, and by axis of it the digits of what reads
    that axis, which go before others that are as long.
    """

    labels: Sequence[str]
    likely: Sequence[Collection[int]]


Rows = tuple[tuple[Part, ...], ...]
"""Per axis of a value its parts, most significant first."""


def rows_of(
    keys: Keys, attempt: Attempt, value: int, func: Func, map_: Map, repeated: Repeated | None = None
) -> Rows | None:
    """Tells how the axes of a value consist of the digits of a match, where it holds every element exactly once.

    Of something that may broadcast the value may repeat its elements along digits of them (a
    mask that was spread before it was computed), and digits may overlap (a table of relative positions): all that counts is
    which element stands at which place.
    """
    if keys.windows and keys.windows.get(value) == func.number:
        view = keys.clean(value)
    elif keys.funcs[value] is func:
        view = keys.views[value]
    else:
        return None
    if not is_whole(view):
        return None
    plain = _bare(view, map_, attempt)
    if plain is not None:
        return plain
    spare: list[int] | None = None
    if repeated is not None:
        shown = {attempt.root_of(digit) for digit in digits_of(map_)}
        spare = [digit for label in repeated.labels for digit in attempt.labels[label] if digit not in shown]
    likely = [] if repeated is None else [repeated.likely[k] for k, axis in enumerate(view.axes) for _ in axis]
    parts = _aligned(view, map_, attempt, spare, likely)
    if parts is None:
        return None
    at, out = 0, []
    for axis in view.axes:
        out.append(tuple([part for row in parts[at : at + len(axis)] for part in row]))
        at += len(axis)
    return tuple(out)


def _bare(view: View, map_: Map, attempt: Attempt) -> Rows | None:
    """The common case: every digit of the value is one digit of the function, and that one of the match."""
    if any(view.offsets):
        return None
    alias, extents = attempt.alias, attempt.extents
    shown: set[int] = set()
    out: list[tuple[Part, ...]] = []
    for axis in view.axes:
        row: tuple[Part, ...] = ()
        for extent, coefficients in axis:
            place = lone(coefficients)
            if place < 0:
                return None
            one = map_[place]
            if type(one) is not int:
                return None
            while one in alias:
                one = alias[one]
            if extents[one] != extent or one in shown:
                return None
            shown.add(one)
            row = (*row, new_tuple(Part, (extent, one, 1)))
        out.append(row)
    return tuple(out) if len(shown) == len(map_) else None


def _aligned(
    view: View, map_: Map, attempt: Attempt, spare: Sequence[int] | None, likely: Sequence[Collection[int]]
) -> list[list[Part]] | None:
    """Gives the parts of each of a view's digits: per form, both sides are the same mixed-radix number."""
    digits = view.digits
    parts: list[list[Part]] = [[] for _ in digits]
    used: set[int] = set()
    for k, one in enumerate(map_):
        offset, terms = (0, ((one, 1),)) if isinstance(one, int) else one
        if offset != view.offsets[k]:
            return None
        own = [(d.coefficients[k], i) for i, d in enumerate(digits) if d.coefficients[k]]
        other = [(c, attempt.root_of(d)) for d, c in terms]
        own.sort(key=_size, reverse=True)
        other.sort(key=_size, reverse=True)
        mine = [i for _, i in own]
        if not used.isdisjoint(mine):
            return None
        used.update(mine)
        zipped = _zipped(own, other, view, attempt, parts)
        if not zipped and (spare is None or not _paired(own, other, view, attempt, parts)):
            return None
    if len(used) != len(digits) and (spare is None or not _spread(view, used, spare, likely, attempt, parts)):
        return None
    sizes: dict[int, int] = {}
    for row in parts:
        for extent, digit, _ in row:
            sizes[digit] = sizes.get(digit, 1) * extent
    extents = attempt.extents
    for digit, size in sizes.items():
        if size != extents[digit]:
            return None
    return parts


def _size(term: tuple[int, int]) -> tuple[int, int]:
    return abs(term[0]), term[1]


def _zipped(
    own: list[tuple[int, int]], other: list[tuple[int, int]], view: View, attempt: Attempt, parts: list[list[Part]]
) -> bool:
    """Cuts two mixed-radix numbers that must be equal into common stretches, least significant first.

    A digit that counts backwards does so on both sides, from one offset. Digits that overlap (a sliding window) are no
    mixed-radix number, and nothing tells them apart.
    """
    digits = view.digits
    least = 1
    left = [(digits[i].extent, c, i) for c, i in own]
    right = [(attempt.extents[d], c, d, 1) for c, d in other]
    while left and right:
        extent, weight, index = left.pop()
        size, coefficient, digit, below = right.pop()
        if weight != coefficient or abs(weight) < least:
            return False
        step = min(extent, size)
        if extent % step or size % step:
            return False
        parts[index].insert(0, new_tuple(Part, (step, digit, below)))
        least = abs(weight) * step
        if extent > step:
            left.append((extent // step, weight * step, index))
        if size > step:
            right.append((size // step, coefficient * step, digit, below * step))
    return not left and not right


def _paired(
    own: list[tuple[int, int]], other: list[tuple[int, int]], view: View, attempt: Attempt, parts: list[list[Part]]
) -> bool:
    """Cuts two sums that must be equal into common stretches, wherever coefficients agree, whether digits overlap or not.

    Stretches with one coefficient and one extent are interchangeable: only their sum is read.
    """
    left = [(c, view.digits[i].extent, i) for c, i in own]
    right = [(c, attempt.extents[d], d, 1) for c, d in other]
    for _, index in own:
        parts[index].clear()
    while left:
        weight, extent, index = left.pop(min(range(len(left)), key=lambda k: abs(left[k][0])))
        same = [one for one in right if one[0] == weight]
        if not same:
            return False
        _, size, digit, below = found = min(same, key=lambda one: (one[1] != extent, one[2]))
        right.remove(found)
        step = min(extent, size)
        if extent % step or size % step:
            return False
        parts[index].insert(0, Part(step, digit, below))
        if extent > step:
            left.append((weight * step, extent // step, index))
        if size > step:
            right.append((weight * step, size // step, digit, below * step))
    return not right


def _spread(
    view: View,
    used: set[int],
    spare: Sequence[int],
    likely: Sequence[Collection[int]],
    attempt: Attempt,
    parts: list[list[Part]],
) -> bool:
    """Gives the digits that a view repeats its elements along to digits of the match that its function does not read."""
    left = list(spare)
    for index, digit in enumerate(view.digits):
        if index in used:
            continue
        read = [one for one in left if one in likely[index]]
        taken = _factors(digit.extent, read, attempt) or _factors(digit.extent, left, attempt)
        if taken is None:
            return False
        left = [one for one in left if one not in taken]
        parts[index] = [Part(attempt.extents[one], one, 1) for one in taken]
    return True


def _factors(extent: int, left: Sequence[int], attempt: Attempt) -> Sequence[int] | None:
    """Chooses the fewest digits with a product of extents, in their order; None where there are none."""
    return next(
        (
            chosen
            for count in range(1, len(left) + 1)
            for chosen in combinations(left, count)
            if prod(attempt.extents[one] for one in chosen) == extent
        ),
        None,
    )


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
