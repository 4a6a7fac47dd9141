"""Joint views: two operands side by side over shared digits."""

from __future__ import annotations

from collections.abc import Sequence

from topos_core.matching.affine import Digit, Digits, merged, split
from topos_core.matching.form import JOINT, Form
from topos_core.matching.tuples import new_tuple
from topos_core.matching.view import View


def elementwise_product(a: View, b: View) -> Form | None:
    """Joins two views of one shape, digit by digit; None where their digits have no common refinement."""
    rows = []
    for left, right in zip(a.axes, b.axes, strict=True):
        row = shared_digits(left, right)
        if row is None:
            return None
        rows.append(row)
    return _joined(a, b, rows, None)


def matrix_product(a: View, b: View) -> Form | None:
    """Joins `[..., m, k]` and `[..., k, n]`, reduced over k; None where their digits have no common refinement."""
    rows = []
    for left, right in zip(a.axes[:-2], b.axes[:-2], strict=True):
        row = shared_digits(left, right)
        if row is None:
            return None
        rows.append(row)
    inner = shared_digits(a.axes[-1], b.axes[-2])
    if inner is None:
        return None
    rows.append([(digit.extent, digit.coefficients, None) for digit in a.axes[-2]])
    rows.append([(digit.extent, None, digit.coefficients) for digit in b.axes[-1]])
    return _joined(a, b, rows, inner)


Pair = tuple[int, tuple[int, ...] | None, tuple[int, ...] | None]  # extent, coefficients left and right


def shared_digits(left: Digits, right: Digits) -> list[Pair] | None:
    """Splits two rows of digits of one extent until they agree, least significant first."""
    a, b, row = list(left), list(right), list[Pair]()
    while a and b:
        x, y = a.pop(), b.pop()
        if x.extent > y.extent:
            if x.extent % y.extent:
                return None
            outer, x = split(x, y.extent)
            a.append(outer)
        elif y.extent > x.extent:
            if y.extent % x.extent:
                return None
            outer, y = split(y, x.extent)
            b.append(outer)
        row.append((x.extent, x.coefficients, y.coefficients))
    return None if a or b else row[::-1]


def _joined(a: View, b: View, rows: Sequence[Sequence[Pair]], inner: Sequence[Pair] | None) -> Form:
    """Puts two views side by side: the smaller base first, index forms before bounds. `inner` is reduced."""
    swap = b.base < a.base
    first, second = (b, a) if swap else (a, b)
    m, n = len(first.base_shape), len(second.base_shape)
    zeros = ((0,) * len(first.offsets), (0,) * len(second.offsets))

    def side_by_side(x: tuple[int, ...], y: tuple[int, ...]) -> tuple[int, ...]:
        return x[:m] + y[:n] + x[m:] + y[n:]

    def digits(row: Sequence[Pair]) -> Digits:
        out = []
        for extent, left, right in row:
            one, two = (right, left) if swap else (left, right)
            column = side_by_side(zeros[0] if one is None else one, zeros[1] if two is None else two)
            out.append(new_tuple(Digit, (extent, column)))
        return merged(out)

    joint = new_tuple(
        View,
        (
            JOINT,
            first.base_shape + second.base_shape,
            tuple([digits(row) for row in rows]),
            side_by_side(first.offsets, second.offsets),
            side_by_side(first.divisors, second.divisors),
            first.bounds + second.bounds,
        ),
    )
    return new_tuple(
        Form,
        (
            joint,
            digits(inner or ()),
            None if inner is None else "sum",
            (first.base, second.base),
            (m, n),
            (len(first.bounds), len(second.bounds)),
        ),
    )
