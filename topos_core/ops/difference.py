"""How far two arrays are apart: absolutely, and relative to the largest magnitude that is expected."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from topos_core.tape.type import is_float


@dataclass(frozen=True, slots=True)
class Difference:
    """The largest differences of two arrays. NaN equals NaN, infinities equal themselves, -0 equals +0.

    `absolute` is infinite where a NaN or an infinity meets something else. `relative` is `absolute` over the largest finite
    magnitude of the expected array. Units in the last place are no measure here: beside 0 any difference is millions of them.
    """

    absolute: float
    relative: float


def difference(got: np.ndarray, expected: np.ndarray) -> Difference:
    """Compares two arrays of one dtype and shape.

    Raises:
        ValueError: Dtypes or shapes differ.
    """
    if got.dtype != expected.dtype or got.shape != expected.shape:
        raise ValueError(f"{got.dtype}{list(got.shape)} cannot be compared with {expected.dtype}{list(expected.shape)}")
    if got.size == 0:
        return Difference(0.0, 0.0)
    if not is_float(got.dtype):
        # exact where 64-bit differences overflow
        apart = np.where(got > expected, got, expected).astype(object) - np.where(got > expected, expected, got).astype(
            object
        )
        largest, scale = int(apart.max()), int(np.abs(expected.astype(object)).max())
        return Difference(float(largest), largest / scale if scale else float(largest > 0))
    a, b = (x.astype(np.float64) for x in (got, expected))
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(all="ignore"):
        distance = np.where(same, 0.0, np.abs(a - b))
    distance[np.isnan(distance)] = np.inf
    absolute = float(distance.max())
    finite = np.abs(b[np.isfinite(b)])
    scale_of = float(finite.max()) if finite.size else 0.0
    relative = absolute / scale_of if scale_of else (0.0 if absolute == 0 else float("inf"))
    return Difference(absolute, relative)
