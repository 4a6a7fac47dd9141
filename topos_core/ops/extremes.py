"""Maximum and minimum, elementwise and over axes: NaN wins, -0 < +0.

NumPy gives either zero where -0 meets +0. Only a wrong zero is repaired, and whether there is one is asked of the bits
first: -0 is the one pattern with nothing but the sign, read as a signed integer the lowest of all.
"""

from __future__ import annotations

import numpy as np

from topos_core.ops.pieces import pieces_of
from topos_core.tape.type import is_float


def greater(a: np.ndarray, b: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """Gives the elementwise maximum; NumPy's is wrong only where it gives -0 and an operand is +0. `out` is no operand."""
    chosen = np.asarray(np.maximum(a, b, out=out))
    doubtful = _negative_zeros(chosen)
    if doubtful is not None:
        chosen[doubtful & (_bits(a) == 0) | doubtful & (_bits(b) == 0)] = 0.0
    return chosen


def lesser(a: np.ndarray, b: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """Gives the elementwise minimum; NumPy's is wrong only where it gives +0 and an operand is -0. `out` is no operand."""
    chosen = np.asarray(np.minimum(a, b, out=out))
    for operand in (a, b):
        negative = _negative_zeros(operand)
        if negative is not None:
            chosen[negative & (chosen == 0)] = -0.0
    return chosen


def greatest(x: np.ndarray, axes: tuple[int, ...], out: np.ndarray | None = None) -> np.ndarray:
    """Gives the maximum over axes."""
    chosen = np.asarray(np.maximum.reduce(x, axes, out=out))
    doubtful = _negative_zeros(chosen) if axes else None
    if doubtful is not None:
        # all elements are at most a zero here, so +0, which is 0 as an integer, is the greatest pattern
        chosen[doubtful & (np.maximum.reduce(_bits(x), axes) == 0)] = 0.0
    return chosen


def least(x: np.ndarray, axes: tuple[int, ...], out: np.ndarray | None = None) -> np.ndarray:
    """Gives the minimum over axes."""
    chosen = np.asarray(np.minimum.reduce(x, axes, out=out))
    if axes and any(_negative_zeros(piece) is not None for piece in pieces_of(x)):
        # where the minimum is a zero no element lies below, so a negative pattern can only be -0
        chosen[(chosen == 0) & (np.minimum.reduce(_bits(x), axes) < 0)] = -0.0
    return chosen


def _negative_zeros(x: np.ndarray) -> np.ndarray | None:
    """Marks -0; None where there is none, or no such thing."""
    if not is_float(x.dtype):
        return None
    if x.size and not any(x.strides):  # a splat: one element tells
        first = x.reshape(-1)[:1] if x.ndim == 0 else x[(slice(0, 1),) * x.ndim]
        if not (_bits(first) == _lowest(x)).any():
            return None
    found = np.asarray(_bits(x) == _lowest(x))
    return found if found.any() else None


def _bits(x: np.ndarray) -> np.ndarray:
    return x.view(f"i{x.dtype.itemsize}")


def _lowest(x: np.ndarray) -> int:
    return -(1 << (8 * x.dtype.itemsize - 1))
