"""Mixed-radix digits with integer coefficients: the arithmetic under views.

A *digit* is one iteration variable `t` in `[0, extent)`. A *form* is `(offset + sum of coefficient * t) / divisor`; a
digit carries its coefficient in every form of its view, so the digits of a view are the columns of a small matrix.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np

from topos_core.matching.tuples import new_tuple


class Digit(NamedTuple):
    """One iteration variable in `[0, extent)` and its coefficient in every form."""

    extent: int
    coefficients: tuple[int, ...]


Digits = tuple[Digit, ...]

NOWHERE: Final = -2
"""The place of a digit that moves along no axis of the base."""


class Progression(NamedTuple):
    """Positions `start + step * k` for k in `[0, count)` along an axis."""

    start: int
    step: int
    length: int


class Run(NamedTuple):
    """One digit of a fitted table: its extent and what one step of it adds to every column."""

    extent: int
    steps: tuple[int, ...]


def merged(digits: Iterable[Digit]) -> Digits:
    """Gives the shortest list of digits that count the same positions: units dropped, neighbours joined where affine."""
    out: list[Digit] = []
    for digit in digits:
        extent, inner = digit
        if extent == 1:
            continue
        if out:
            count, outer = out[-1]
            for c, own in zip(outer, inner, strict=True):
                if c != extent * own:
                    break
            else:
                out[-1] = new_tuple(Digit, (count * extent, inner))
                continue
        out.append(digit)
    return tuple(out)


def split(digit: Digit, inner: int) -> tuple[Digit, Digit]:
    """Splits a digit into (outer, inner) where `inner` divides its extent."""
    extent, coefficients = digit
    outer = new_tuple(Digit, (extent // inner, tuple([c * inner for c in coefficients])))
    return outer, new_tuple(Digit, (inner, coefficients))


def regrouped(digits: Sequence[Digit], extents: Sequence[int]) -> tuple[Digits, ...] | None:
    """Cuts one row of digits into groups of the given extents; None where a cut falls inside a digit unevenly."""
    stack = list(merged(digits))
    groups: list[Digits] = []
    for want in reversed(extents):
        if want == 1:
            groups.append(())
            continue
        if stack and stack[-1][0] == want:
            groups.append((stack.pop(),))
            continue
        group: list[Digit] = []
        have = 1
        while have < want:
            if not stack:
                return None
            digit = stack.pop()
            need = want // have
            if digit.extent > need:
                if want % have or digit.extent % need:
                    return None
                outer, digit = split(digit, need)
                stack.append(outer)
            elif want % (have * digit.extent):
                return None
            group.append(digit)
            have *= digit.extent
        groups.append(tuple(group[::-1]))
    return None if stack else tuple(groups[::-1])


def sliced(digits: Sequence[Digit], positions: Progression) -> tuple[Digits, list[tuple[int, Digit]]] | None:
    """Restricts a mixed-radix axis to a progression.

    Returns:
        The new digits and what was fixed, as (value, digit) pairs that the caller adds to the offsets; None where the
        progression is not mixed-radix over these digits.
    """
    start, step, count = positions
    kept: list[Digit] = []
    fixed: list[tuple[int, Digit]] = []
    row = list(digits)
    while row:
        digit = row.pop()
        inner = digit.extent
        if not row:
            fixed.append((start, digit))
            kept.append(Digit(count, tuple(c * step for c in digit.coefficients)))
            break
        if count == 1 or step % inner == 0:
            fixed.append((start % inner, digit))
            start, step = start // inner, step // inner
        elif start // inner == (start + step * (count - 1)) // inner:
            fixed.append((start % inner, digit))
            kept.append(Digit(count, tuple(c * step for c in digit.coefficients)))
            start, step, count = start // inner, 1, 1
        elif inner % step == 0 and start % inner < step and count % (inner // step) == 0:
            fixed.append((start % inner, digit))
            kept.append(Digit(inner // step, tuple(c * step for c in digit.coefficients)))
            start, step, count = start // inner, 1, count // (inner // step)
        else:
            return None
    return tuple(reversed(kept)), fixed


def fit(columns: Sequence[Sequence[int]]) -> tuple[tuple[Run, ...], tuple[int, ...]] | None:
    """Fits k >= 1 integer columns of equal length n >= 1 to one joint mixed-radix table. Costs the table's length.

    Returns:
        The runs, most significant first, and every column's first entry; None where no table fits.
    """
    first = tuple(int(column[0]) for column in columns)
    table = np.stack([np.asarray(column, np.int64) for column in columns], axis=1)
    table = table - table[0]
    runs: list[Run] = []
    n = len(table)
    while n > 1:
        step = table[1] - table[0]
        breaks = (table[1:] - table[:-1] != step).any(axis=1)
        run = int(np.argmax(breaks)) + 1 if breaks.any() else n
        if n % run:
            return None
        blocks = table.reshape(n // run, run, -1)
        if not (blocks - blocks[:, :1] == np.arange(run)[None, :, None] * step).all():
            return None
        runs.append(Run(run, tuple(int(s) for s in step)))
        table = blocks[:, 0]
        n //= run
    return tuple(reversed(runs)), first


def radix(position: np.ndarray, extents: Sequence[int]) -> list[np.ndarray]:
    """Splits positions into their digits of the given extents, most significant first."""
    out: list[np.ndarray] = []
    for extent in reversed(extents):
        out.append(position % extent)
        position = position // extent
    return out[::-1]


@lru_cache(1024)
def lone(coefficients: tuple[int, ...]) -> int:
    """Gives the place of the only coefficient, which is 1; -1 where there are several or another one, `NOWHERE` where there is none."""
    zeros = coefficients.count(0)
    if zeros == len(coefficients):
        return NOWHERE
    return coefficients.index(1) if zeros == len(coefficients) - 1 and 1 in coefficients else -1


def span(offset: int, digits: Iterable[Digit], form: int) -> tuple[int, int]:
    """Gives the least and greatest numerator of a form over all digits."""
    low = high = offset
    for extent, coefficients in digits:
        reach = coefficients[form] * (extent - 1)
        if reach < 0:
            low += reach
        else:
            high += reach
    return low, high


def size(digits: Iterable[Digit]) -> int:
    """Counts the positions that digits enumerate."""
    return math.prod(digit.extent for digit in digits)
