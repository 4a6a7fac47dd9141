"""The cast rule: float to integer drops the fraction, saturates, and gives 0 for NaN; anything to bool is `!= 0`."""

from __future__ import annotations

import numpy as np


def cast_array(x: np.ndarray, target: np.dtype) -> np.ndarray:
    """Casts an array; casts that NumPy leaves undefined (out of range, NaN to integer) follow the rule above."""
    if x.dtype == target:
        return x
    if target.kind == "b":
        return np.asarray(x != 0)
    if target.kind not in "iu" or x.dtype.kind in "iub":
        return x.astype(target)
    wide = x.astype(np.float32) if x.dtype.itemsize == 2 else x  # the limits do not fit f16; bf16 lacks integer loops
    limits = np.iinfo(target)
    # the first float beyond the largest integer: exact in every float dtype that reaches it
    beyond = 2.0 ** (target.itemsize * 8 - (target.kind == "i"))
    below = wide <= limits.min
    above = wide >= beyond
    inside = np.where(below | above | np.isnan(wide), wide.dtype.type(0), wide).astype(target)
    return np.where(above, target.type(limits.max), np.where(below, target.type(limits.min), inside))
