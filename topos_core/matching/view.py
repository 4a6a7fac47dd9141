"""Views: the index map of a chain of movement ops, in one normal form.

A view says where each element of a value comes from: per axis of the value a mixed-radix number of digits, per axis of
one *base* value an affine form of those digits, and bounds outside of which a fill is read instead (padding). Movement
that does not fit becomes a new base of its own, which is always sound. Nothing here costs an extent.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import chain
from typing import Final, NamedTuple

import numpy as np

from topos_core.matching.affine import Digit, Digits, merged, size, span
from topos_core.matching.tuples import new_tuple
from topos_core.tape.tape import Tape

_all: Final = chain.from_iterable


class Bound(NamedTuple):
    """A condition on one form: `0 <= form < limit` and `form % modulus == 0`, else `fill` is read.

    `fill` is a Python number (NaN is always `math.nan`). A modulus above 1 stands for zeros between elements.
    """

    limit: int
    modulus: int
    fill: float | int | bool


class View(NamedTuple):
    """An index map from a value's coordinates to one base value's coordinates, or to a fill.

    A NamedTuple because matching builds several per movement op.

    Args:
        base: The value that is read.
        base_shape: Its shape.
        axes: Per axis of the value its digits, most significant first; an axis of extent 1 has none.
        offsets, divisors: One each per form. Form k is the index into base axis k; after those comes one form per
            bound. A form is `(offset + sum of coefficient * digit) / divisor`, exact wherever the bounds hold.
        bounds: In the order in which they were made, innermost first. Where several fail, the last of them decides.
    """

    base: int
    base_shape: tuple[int, ...]
    axes: tuple[Digits, ...]
    offsets: tuple[int, ...]
    divisors: tuple[int, ...]
    bounds: tuple[Bound, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Gives the shape of the viewed value."""
        return tuple(size(axis) for axis in self.axes)

    @property
    def digits(self) -> Digits:
        """Lists all digits, axis by axis."""
        return tuple(_all(self.axes))

    @property
    def is_identity(self) -> bool:
        """Says whether the view is its base, unmoved."""
        return self == identity(self.base, self.base_shape)


def is_whole(view: View) -> bool:
    """Says whether a view reads its base alone: no fill, and no form is divided."""
    _, _, _, _, divisors, bounds = view
    return not bounds and divisors.count(1) == len(divisors)


class Views:
    """The views of every value of a tape, made once, in tape order."""

    def __init__(self, tape: Tape) -> None:
        from topos_core.matching.movement import RULES, moved

        self._ops = tape.ops
        self._views: list[View | None] = []
        for op in tape.ops:
            self._views.append(moved(tape, op, self.of) if op[0] in RULES else None)

    def of(self, value: int) -> View:
        """Gives a value's view; the value itself is the base where it is no movement or does not fit."""
        view = self._views[value]
        if view is None:
            view = self._views[value] = identity(value, self._ops[value].type.shape)
        return view


def identity(value: int, shape: tuple[int, ...]) -> View:
    """Gives the view of a value on itself."""
    return new_tuple(View, (value, shape, *_unmoved(shape), ()))


@lru_cache(4096)
def _unmoved(shape: tuple[int, ...]) -> tuple[tuple[Digits, ...], tuple[int, ...], tuple[int, ...]]:
    """Gives axes, offsets and divisors of an identity; a tape has few shapes and many values."""
    rank = len(shape)
    axes: list[Digits] = []
    for k, extent in enumerate(shape):
        column = [0] * rank
        column[k] = 1
        axes.append((Digit(extent, tuple(column)),) if extent != 1 else ())
    return tuple(axes), (0,) * rank, (1,) * rank


def pruned(view: View) -> View:
    """Drops bounds that always hold and joins those on one form, where every fill is the same.

    Views keep such bounds, so that shifted slices of one padded value stay alike until they are compared.
    """
    if not view.bounds:
        return view
    rank, digits, bounds = len(view.base_shape), view.digits, view.bounds
    offsets, divisors = view.offsets, view.divisors
    one_fill = len(bounds) == 1 or len({repr(bound.fill) for bound in bounds}) == 1
    rows: list[tuple[int, int, int, Bound]] = []  # form, offset, divisor, bound
    place: dict[tuple[int, ...], int] = {}
    for form, bound in enumerate(bounds, rank):
        offset, divisor = offsets[form], divisors[form]
        low, high = span(offset, digits, form)
        if bound.modulus == 1 and low >= 0 and high < bound.limit * divisor:
            continue
        if one_fill and divisor == 1:
            column = tuple([coefficients[form] for _, coefficients in digits])
            at = place.setdefault(column, len(rows))
            if at < len(rows):
                joint = _joint_bound(rows[at][1], rows[at][3], offset, bound)
                if joint is not None:
                    rows[at] = (form, joint[0], 1, joint[1])
                    continue
        rows.append((form, offset, divisor, bound))
    if len(rows) == len(bounds):
        return new_tuple(View, (*view[:2], tuple([merged(axis) for axis in view.axes]), *view[3:]))
    forms = [*range(rank), *(row[0] for row in rows)]
    axes = tuple(
        [merged([new_tuple(Digit, (extent, tuple([c[f] for f in forms]))) for extent, c in axis]) for axis in view.axes]
    )
    return new_tuple(
        View,
        (
            *view[:2],
            axes,
            (*offsets[:rank], *[row[1] for row in rows]),
            (*divisors[:rank], *[row[2] for row in rows]),
            tuple([row[3] for row in rows]),
        ),
    )


def _joint_bound(a: int, first: Bound, b: int, second: Bound) -> tuple[int, Bound] | None:
    """Joins two bounds on one form with offsets `a` and `b`; None where a sieve and an interval do not nest."""
    floor = max(-a, -b)
    ceiling = max(floor, min(first.limit - a, second.limit - b))
    if first.modulus == second.modulus == 1:
        return -floor, Bound(ceiling - floor, 1, first.fill)
    for offset, bound, other in ((a, first, second), (b, second, first)):
        if other.modulus == 1 and floor == -offset and ceiling == bound.limit - offset:
            return offset, bound
    return None


def read(view: View, base: np.ndarray) -> np.ndarray:
    """Evaluates a view: gathers its elements out of the base's array."""
    digits = view.digits
    shape = tuple(digit.extent for digit in digits)
    grid = [np.arange(e).reshape([-1 if i == k else 1 for i in range(len(shape))]) for k, e in enumerate(shape)]

    def numerator(form: int) -> np.ndarray:
        total = np.full((1,) * len(shape), view.offsets[form], np.int64)
        for digit, position in zip(digits, grid, strict=True):
            if digit.coefficients[form]:
                total = total + digit.coefficients[form] * position
        return total

    rank = len(view.base_shape)
    index = []
    for k, extent in enumerate(view.base_shape):
        index.append(np.clip(numerator(k) // view.divisors[k], 0, extent - 1))
    out = np.broadcast_to(base[tuple(index)] if rank else base, shape)
    for k, bound in enumerate(view.bounds):
        form, divisor = numerator(rank + k), view.divisors[rank + k]
        good = (form >= 0) & (form < bound.limit * divisor) & (form % (bound.modulus * divisor) == 0)
        out = np.where(good, out, np.asarray(bound.fill, base.dtype))
    return out.reshape(view.shape)


def is_overlapping(view: View) -> bool:
    """Says whether some element of the base may be read at several places along one axis, as windows do."""
    for form in range(len(view.base_shape)):
        reach = 0
        for step, extent in sorted((abs(d.coefficients[form]), d.extent) for d in view.digits if d.coefficients[form]):
            if step <= reach:
                return True
            reach += step * (extent - 1)
    return False
