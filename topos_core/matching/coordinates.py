"""Coordinates through a reshape, axis by axis where axes match, so that what does not depend on an axis stays so."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np


def regrouped(where: Sequence[np.ndarray], shape: Sequence[int], other: Sequence[int]) -> tuple[np.ndarray, ...]:
    """Turns coordinates in `shape` into coordinates of the same elements in `other`."""
    if math.prod(shape) == 0:
        return tuple(np.zeros((), np.int64) for _ in other)
    result: list[np.ndarray] = [np.zeros((), np.int64)] * len(other)
    for mine, theirs in _groups(shape, other):
        if len(mine) == len(theirs) == 1:
            result[theirs[0]] = where[mine[0]]
            continue
        for axis, digit in zip(
            theirs, unflattened(flattened(where, shape, mine), [other[k] for k in theirs]), strict=True
        ):
            result[axis] = digit
    return tuple(result)


def flattened(where: Sequence[np.ndarray], shape: Sequence[int], axes: Sequence[int]) -> np.ndarray:
    """Gives the row-major number of some axes."""
    flat = np.zeros((), np.int64)
    for axis in axes:
        flat = flat * shape[axis] + where[axis]
    return flat


def unflattened(flat: np.ndarray, shape: Sequence[int]) -> tuple[np.ndarray, ...]:
    """Undoes `flattened` over all axes of a shape."""
    digits: list[np.ndarray] = []
    for extent in reversed(shape):
        digits.append(flat % extent if len(digits) + 1 < len(shape) else flat)
        flat = flat // extent
    return tuple(reversed(digits))


def _groups(shape: Sequence[int], other: Sequence[int]) -> Iterator[tuple[list[int], list[int]]]:
    """Splits two shapes of one size into the shortest runs of equal size; extents of 1 are left out."""
    left = [k for k, extent in enumerate(shape) if extent != 1]
    right = [k for k, extent in enumerate(other) if extent != 1]
    while left:
        mine, theirs = [left.pop(0)], [right.pop(0)]
        size, their_size = shape[mine[0]], other[theirs[0]]
        while size != their_size:
            if size < their_size:
                mine.append(left.pop(0))
                size *= shape[mine[-1]]
            else:
                theirs.append(right.pop(0))
                their_size *= other[theirs[-1]]
        yield mine, theirs
