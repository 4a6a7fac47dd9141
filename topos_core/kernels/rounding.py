"""How far the rounding of what goes in moves a result: values whose elements move by half a unit in the last place."""

from __future__ import annotations

from typing import Final

import numpy as np

TRIALS: Final = 4
"""The largest movement of so many: the signs are drawn, and one draw may cancel as a sum does."""
HALF_ULP: Final = {"f16": 2.0**-11, "bf16": 2.0**-8, "f32": 2.0**-24, "f64": 2.0**-53}
"""Half a unit in the last place, relative to 1, by dtype."""


def moved(array: np.ndarray, by: float, random: np.random.Generator) -> np.ndarray:
    """Moves every element by a share of it, up or down; integers stay."""
    if not by or array.dtype.kind in "iub":
        return array
    return np.asarray(array * (1 + np.where(random.random(array.shape) < 0.5, -by, by).astype(array.dtype)))
