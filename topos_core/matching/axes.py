"""Axes of a view: restricting, padding, and joining the digits of one axis, zeros between elements included."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from topos_core.matching.affine import Digit, Digits, Progression, merged, sliced
from topos_core.matching.tuples import new_tuple
from topos_core.matching.view import Bound, View


def padded_axis(view: View, axis: int, low: int, high: int, interior: int, fill: Any) -> View | None:
    """Pads one axis of a view: `low` and `high` may be negative, `interior` fills stand between neighbours."""
    joined = single(view, axis)
    if joined is None:
        return None
    view, digit = joined
    if interior == 0 and low >= 0 and high >= 0 and view.divisors.count(1) == len(view.divisors):
        return _widened(view, axis, digit, low, high, fill) if low or high else view
    reach = (digit.extent - 1) * (interior + 1) + 1
    if low < 0 or high < 0:
        cut_low, cut_high = max(-low, 0), max(-high, 0)
        if interior == 0 and reach - cut_low - cut_high >= 1:
            cropped = sliced_axis(view, axis, Progression(cut_low, 1, reach - cut_low - cut_high))
            assert cropped is not None  # a single digit can always be sliced
            return padded_axis(cropped, axis, max(low, 0), max(high, 0), 0, fill)
    if low == high == interior == 0:
        return view
    extent = low + reach + high
    view, digit = _with_bound(view, axis, digit, Bound(reach, interior + 1, _python(fill)))
    return _substituted(view, axis, digit, -low, ((Digit(extent, ()), 1),), interior + 1)


def _widened(view: View, axis: int, digit: Digit, low: int, high: int, fill: Any) -> View:
    """Pads an axis of one digit by positions before and behind: nothing is cut off, and nothing divided."""
    extent, own = digit
    axes: list[Digits] = []
    for row in view.axes:
        longer = [new_tuple(Digit, (count, (*c, 0))) for count, c in row]
        axes.append(merged(longer) if len(row) > 1 else tuple(longer))
    axes[axis] = (new_tuple(Digit, (low + extent + high, (*own, 1))),)
    offsets = [o - c * low for o, c in zip(view.offsets, own, strict=True)] if low else view.offsets
    bound = new_tuple(Bound, (extent, 1, _python(fill)))
    return new_tuple(
        View,
        (
            view.base, view.base_shape, tuple(axes), (*offsets, -low), (*view.divisors, 1), (*view.bounds, bound),
        ),
    )  # fmt: skip


def single(view: View, axis: int) -> tuple[View, Digit] | None:
    """Makes one digit of an axis; None where it is no affine count.

    Zeros put between elements by padding a unit axis and folding it in (`reshape` of `[h, 1]` padded to `[h, 2]`) are
    read as a division: the inner digit only selects which positions hold data.
    """
    while len(view.axes[axis]) > 1:
        joined = _joined_by_division(view, axis)
        if joined is None:
            return None
        view = joined
    return view, (view.axes[axis][0] if view.axes[axis] else unit(view))


def sliced_axis(view: View, axis: int, positions: Progression) -> View | None:
    """Restricts one axis of a view to a progression of its positions."""
    digits = view.axes[axis] or (unit(view),)
    cut = sliced(digits, positions)
    if cut is None:
        joined = single(view, axis)
        if joined is None:
            return None
        view, digit = joined
        cut = sliced((digit,), positions)
        if cut is None:
            return None
    kept, fixed = cut
    offsets = list(view.offsets)
    for value, digit in fixed:
        if value:
            offsets = [o + value * c for o, c in zip(offsets, digit.coefficients, strict=True)]
    return view._replace(axes=with_axis(view.axes, axis, merged(kept)), offsets=tuple(offsets))


def unit(view: View) -> Digit:
    """Gives the digit that an axis of extent 1 would have."""
    return Digit(1, (0,) * len(view.offsets))


def with_axis(axes: tuple[Digits, ...], axis: int, digits: Digits) -> tuple[Digits, ...]:
    """Puts digits in place of one axis."""
    return (*axes[:axis], digits, *axes[axis + 1 :])


def _joined_by_division(view: View, axis: int) -> View | None:
    """Joins the last two digits of an axis where the inner one only selects, by one bound, which positions hold data."""
    rank = len(view.base_shape)
    *front, outer, inner = view.axes[axis]
    uses = [f for f, c in enumerate(inner.coefficients) if c]
    if len(uses) != 1 or uses[0] < rank or outer.coefficients[uses[0]] or view.divisors[uses[0]] != 1:
        return None
    form, bound = uses[0], view.bounds[uses[0] - rank]
    others = [d for row in view.axes for d in row if d is not inner and d.coefficients[form]]
    held = _only_value(view.offsets[form], inner.coefficients[form], inner.extent, bound)
    if others or held is None:
        return None
    later = any(outer.coefficients[f] for f in range(form + 1, len(view.offsets)))
    if later and len({repr(b.fill) for b in view.bounds}) > 1:
        return None  # a later bound would see a rounded quotient, and its fill would win
    whole = Digit(outer.extent * inner.extent, tuple(0 if f == form else c for f, c in enumerate(outer.coefficients)))
    scale = [inner.extent if c else 1 for c in outer.coefficients]
    offsets = [o * s - held * c for o, s, c in zip(view.offsets, scale, outer.coefficients, strict=True)]
    offsets[form] = -held
    axes = [
        tuple(Digit(d.extent, tuple(c * s for c, s in zip(d.coefficients, scale, strict=True))) for d in row)
        for row in view.axes
    ]
    front = [Digit(d.extent, tuple(c * s for c, s in zip(d.coefficients, scale, strict=True))) for d in front]
    axes[axis] = merged((*front, Digit(whole.extent, (*whole.coefficients[:form], 1, *whole.coefficients[form + 1 :]))))
    bounds = list(view.bounds)
    bounds[form - rank] = Bound((outer.extent - 1) * inner.extent + 1, inner.extent, bound.fill)
    divisors = tuple(q * s for q, s in zip(view.divisors, scale, strict=True))
    return view._replace(axes=tuple(axes), offsets=tuple(offsets), divisors=divisors, bounds=tuple(bounds))


def _only_value(offset: int, coefficient: int, extent: int, bound: Bound) -> int | None:
    """Gives the one digit value at which a bound on `offset + coefficient * digit` holds; None for several or none."""
    if bound.modulus != 1:
        return None
    if coefficient < 0:  # counts from the other end
        value = _only_value(offset + coefficient * (extent - 1), -coefficient, extent, bound)
        return None if value is None else extent - 1 - value
    first = max(0, -(offset // coefficient))
    last = min(extent - 1, (bound.limit - 1 - offset) // coefficient)
    return first if first == last else None


def _with_bound(view: View, axis: int, digit: Digit, bound: Bound) -> tuple[View, Digit]:
    """Adds a form that is the axis's one digit, bounded; gives the view and the digit with its new coefficient."""
    longer = Digit(digit.extent, (*digit.coefficients, 1))
    axes = tuple(
        (longer,) if k == axis else tuple([new_tuple(Digit, (extent, (*c, 0))) for extent, c in row])
        for k, row in enumerate(view.axes)
    )
    view = view._replace(
        axes=axes, offsets=(*view.offsets, 0), divisors=(*view.divisors, 1), bounds=(*view.bounds, bound)
    )
    return view, longer


def _substituted(
    view: View, axis: int, digit: Digit, constant: int, terms: Sequence[tuple[Digit, int]], divisor: int
) -> View:
    """Puts `(constant + sum of factor * term) / divisor` for an axis's one digit.

    The last form is the bound that has just been added on the digit: it bounds the undivided number.
    """
    forms = len(view.offsets)
    axes: list[Sequence[Digit]] = list(view.axes)
    if divisor == 1:
        offsets = [offset + c * constant for offset, c in zip(view.offsets, digit.coefficients, strict=True)]
        divisors = list(view.divisors)
    else:
        scale = [divisor if digit.coefficients[f] and f != forms - 1 else 1 for f in range(forms)]
        offsets = [view.offsets[f] * scale[f] + digit.coefficients[f] * constant for f in range(forms)]
        divisors = [view.divisors[f] * scale[f] for f in range(forms)]
        axes = [
            [Digit(d.extent, tuple(c * s for c, s in zip(d.coefficients, scale, strict=True))) for d in row]
            for row in view.axes
        ]
    axes[axis] = [Digit(term.extent, tuple([factor * c for c in digit.coefficients])) for term, factor in terms]
    for f in range(forms):
        if divisors[f] > 1:
            common = math.gcd(divisors[f], offsets[f], *(d.coefficients[f] for row in axes for d in row))
            if common > 1:
                offsets[f] //= common
                divisors[f] //= common
                axes = [[_divided(d, f, common) for d in row] for row in axes]
    return view._replace(axes=tuple(merged(row) for row in axes), offsets=tuple(offsets), divisors=tuple(divisors))


def _divided(digit: Digit, form: int, common: int) -> Digit:
    c = digit.coefficients
    return Digit(digit.extent, (*c[:form], c[form] // common, *c[form + 1 :]))


def _python(fill: Any) -> float | int | bool:
    value: float | int | bool = fill
    if isinstance(fill, np.floating):
        value = float(fill)
    elif type(fill) not in (float, int, bool):
        value = float(fill) if np.asarray(fill).dtype.kind not in "biu" else np.asarray(fill).item()
    return math.nan if value != value else value
