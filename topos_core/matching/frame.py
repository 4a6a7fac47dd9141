"""A common frame: the digits over which several views of one shape can be read together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from topos_core.matching.affine import NOWHERE, Digit, Digits, lone, merged
from topos_core.matching.func import Form, Func, Map, form
from topos_core.matching.tuples import new_tuple
from topos_core.matching.view import View


class Frame(NamedTuple):
    """Digits that several views share.

    Args:
        axes: Per axis the frame's digits, most significant first.
        extents: Per digit.
        maps: Per view one form per axis of its base.
    """

    axes: list[list[int]]
    extents: list[int]
    maps: list[Map]


def framed(views: Sequence[View], rows: Sequence[Sequence[Digits]] | None = None) -> Frame | None:
    """Gives the coarsest digits that all views can be read in; None where one radix cuts through another.

    `rows` replaces the views' axes (aligned for a contraction); an axis without digits is broadcast.
    """
    rows = [view.axes for view in views] if rows is None else rows
    bare = _bare(views, rows)
    if bare is not None:
        return bare
    axes: list[list[int]] = []
    extents: list[int] = []
    terms: list[list[list[tuple[int, int]]]] = [[[] for _ in view.base_shape] for view in views]
    for columns in zip(*rows, strict=True):
        first = len(extents)
        size = 0
        for column in columns:
            if column:
                if len(column) > 1 or (size and column[0][0] != size):
                    break
                size = column[0][0]
        else:
            if not size:
                axes.append([])
                continue
            extents.append(size)
            axes.append([first])
            for column, out in zip(columns, terms, strict=True):
                if column:
                    for pairs, coefficient in zip(out, column[0][1], strict=False):
                        if coefficient:
                            pairs.append((first, coefficient))
            continue
        sizes = _refined(columns)
        if sizes is None:
            return None
        extents += sizes
        axes.append(list(range(first, first + len(sizes))))
        for column, out in zip(columns, terms, strict=True):
            _spread(column, sizes, first, out)
    maps: list[Map] = []
    for view, out in zip(views, terms, strict=True):
        offsets = view.offsets
        if any(offsets):
            maps.append(tuple([form(offset, pairs) for offset, pairs in zip(offsets, out, strict=False)]))
        else:
            maps.append(
                tuple([pairs[0][0] if len(pairs) == 1 and pairs[0][1] == 1 else form(0, pairs) for pairs in out])
            )
    return new_tuple(Frame, (axes, extents, maps))


_UNREAD: Final[Form] = form(0, ())


def _bare(views: Sequence[View], rows: Sequence[Sequence[Digits]]) -> Frame | None:
    """The common case: an axis is one digit at most, and no base axis is read by several, in steps or from an offset."""
    maps: list[list[Form]] = []
    for view in views:
        if any(view.offsets):
            return None
        maps.append([_UNREAD] * len(view.base_shape))
    axes: list[list[int]] = []
    extents: list[int] = []
    for columns in zip(*rows, strict=True):
        size, digit = 0, len(extents)
        for column, map_ in zip(columns, maps, strict=True):
            if not column:
                continue
            extent, coefficients = column[0]
            if len(column) > 1 or (size and extent != size):
                return None
            size = extent
            place = lone(coefficients)
            if place >= 0 and map_[place] is _UNREAD:
                map_[place] = digit
            elif place != NOWHERE:
                return None
        if size:
            extents.append(size)
            axes.append([digit])
        else:
            axes.append([])
    return new_tuple(Frame, (axes, extents, [tuple(map_) for map_ in maps]))


def view_over(
    func: Func, places: dict[int, tuple[int, int]], axes: Sequence[Sequence[int]], frame: Frame, base: int
) -> View:
    """Gives the view of a value whose axes are digits of a frame on a function made in it."""
    rank = len(func.shape)
    extents = frame.extents
    rows: list[Digits] = []
    for axis in axes:
        row = []
        for digit in axis:
            place = places.get(digit)
            column = [0] * rank
            if place is not None:
                column[place[0]] = place[1]
            row.append(new_tuple(Digit, (extents[digit], tuple(column))))
        rows.append(tuple(row) if len(row) < 2 else merged(row))
    return new_tuple(View, (base, func.shape, tuple(rows), (0,) * rank, (1,) * rank, ()))


def view_by_map(func: Func, map_: Map, axes: Sequence[Sequence[int]], frame: Frame, base: int) -> View:
    """Gives the view of a value that uses a function by a map over a frame's digits."""
    offsets = [0 if isinstance(one, int) else one[0] for one in map_]
    terms: list[dict[int, int]] = [{one: 1} if isinstance(one, int) else dict(one[1]) for one in map_]
    rows: list[Digits] = []
    for axis in axes:
        rows.append(merged(new_tuple(Digit, (frame.extents[d], tuple(t.get(d, 0) for t in terms))) for d in axis))
    rank = len(func.shape)
    return new_tuple(View, (base, func.shape, tuple(rows), tuple(offsets), (1,) * rank, ()))


def recast(view: View, func: Func, outer: Sequence[Form], base: int) -> View:
    """Gives the view on `func` of a value that reads another function by `view`, one form per digit of `func` over that
    function's digits."""
    if tuple(outer) == tuple(range(len(view.base_shape))):
        return new_tuple(View, (base, func.shape, *view[2:]))
    parts = [(0, ((one, 1),)) if isinstance(one, int) else one for one in outer]
    offsets = tuple(offset + sum(c * view.offsets[d] for d, c in terms) for offset, terms in parts)
    rows = tuple(
        merged(
            new_tuple(
                Digit, (digit.extent, tuple(sum(c * digit.coefficients[d] for d, c in terms) for _, terms in parts))
            )
            for digit in row
        )
        for row in view.axes
    )
    return new_tuple(View, (base, func.shape, rows, offsets, (1,) * len(outer), ()))


def outward(places: dict[int, tuple[int, int]], count: int) -> list[Form]:
    """Turns the places of a frame's digits into one form per digit of the function."""
    terms: list[list[tuple[int, int]]] = [[] for _ in range(count)]
    for digit, (index, weight) in places.items():
        if index < count:
            terms[index].append((digit, weight))
    return [form(0, pairs) for pairs in terms]


def _refined(columns: Sequence[Digits]) -> list[int] | None:
    """Gives the extents of the common refinement of rows of digits that count equally far (empty rows aside)."""
    real = [column for column in columns if column]
    if not real:
        return []
    sizes = [digit.extent for digit in real[0]]
    if all(len(column) == len(sizes) and [d.extent for d in column] == sizes for column in real[1:]):
        return sizes
    stacks = [[digit.extent for digit in column] for column in real]
    out: list[int] = []
    while stacks[0]:
        if not all(stacks):
            return None
        step = min(stack[-1] for stack in stacks)
        for stack in stacks:
            have = stack.pop()
            if have != step:
                if have % step:
                    return None
                stack.append(have // step)
        out.append(step)
    return None if any(stacks) else out[::-1]


def _spread(column: Digits, sizes: Sequence[int], first: int, out: list[list[tuple[int, int]]]) -> None:
    """Adds the terms of one row of digits, split into the refinement's, to every form."""
    at = len(sizes)
    for extent, coefficients in reversed(column):
        have = 1
        while have < extent:
            at -= 1
            for k, pairs in enumerate(out):
                if coefficients[k]:
                    pairs.append((first + at, coefficients[k] * have))
            have *= sizes[at]
