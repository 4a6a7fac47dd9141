"""What is wrong with offsets that lie on no grid: told in the axes of the value that was sliced."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise, product
from typing import NamedTuple

from topos_core.matching.view import View


class Fault(NamedTuple):
    """Why slices are on no grid: `found` in words, and the slice (by its place in the list) that shows it."""

    found: str
    place: int


def slides(views: Sequence[View], ranks: Sequence[int]) -> bool:
    """Says whether slices that differ along an axis also run along it: single elements picked here and there do not."""
    digits = views[0].digits
    return any(
        len({view.offsets[form] for view in views}) > 1 and any(digit.coefficients[form] for digit in digits)
        for form in range(sum(ranks))
    )


def place(views: Sequence[View], ranks: Sequence[int], k: int) -> str:
    """Tells where one of the slices lies, in the axes of the value that is sliced with more than single elements."""
    first = 0
    for rank in ranks:
        forms = [f for f in range(first, first + rank) if len({view.offsets[f] for view in views}) > 1]
        if any(digit.coefficients[f] for digit in views[0].digits for f in forms):
            break
        first += rank
    return f"offset {_told(tuple(views[k].offsets[f] for f in forms))}, {_along([f - first for f in forms])}"


def fault(views: Sequence[View], ranks: Sequence[int]) -> Fault:
    """Compares slices of the same values; `ranks` are the index forms of each operand, one after the other."""
    first = 0
    offsets = []
    for rank in ranks:
        forms = [f for f in range(first, first + rank) if len({view.offsets[f] for view in views}) > 1]
        offsets.append([tuple(view.offsets[f] for f in forms) for view in views])
        named = [f - first for f in forms]
        broken = _hole(offsets[-1], named)
        if broken is not None:
            return broken
        first += rank
    read = list(zip(*offsets, strict=True))
    twice = [both for both, count in Counter(read).items() if count > 1]
    if twice:
        shown = _told(next(offset for offset in twice[0] if offset))
        return Fault(
            f"a slice that stands twice, at offset {shown}", max(k for k, both in enumerate(read) if both == twice[0])
        )
    if len(offsets) == 2:
        return Fault("slices whose order is not that of the kernel's elements", 0)
    return Fault(f"{len(views)} offsets that no strides and counts give", 0)


def _hole(offsets: Sequence[tuple[int, ...]], axes: Sequence[int]) -> Fault | None:
    """Finds a slice that stands twice and one that is missing, or one that leaves the even steps of its axis."""
    if not axes:
        return None
    values = [sorted({offset[k] for offset in offsets}) for k in range(len(axes))]
    along = _along(axes)
    for axis, row in zip(axes, values, strict=True):
        steps = Counter(b - a for a, b in pairwise(row))
        if len(steps) > 1:
            usual = steps.most_common(1)[0][0]
            at = next(b for a, b in pairwise(row) if b - a != usual)
            place = next(k for k, offset in enumerate(offsets) if offset[axes.index(axis)] == at)
            return Fault(f"offset {at} along axis {axis}, where the others are {usual} apart", place)
    seen = Counter(offsets)
    twice = [offset for offset, count in seen.items() if count > 1]
    missing = sorted(set(product(*values)) - set(offsets))
    if twice and missing:
        place = max(k for k, offset in enumerate(offsets) if offset == twice[0])
        return Fault(f"offset {_told(twice[0])} twice and {_told(missing[0])} never, {along}", place)
    if missing:
        return Fault(f"no offset {_told(missing[0])}, {along}", 0)
    return None


def _along(axes: Sequence[int]) -> str:
    return f"along ax{'i' if len(axes) == 1 else 'e'}s {', '.join(map(str, axes))}"


def _told(offset: tuple[int, ...]) -> str:
    return str(offset[0]) if len(offset) == 1 else str(offset)
