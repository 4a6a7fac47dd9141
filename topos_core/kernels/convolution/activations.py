"""Activations by the names of facts: some are limits, the others kernels that run in place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from topos_core.kernels.convolution.engine import NO_LIMITS, Epilogue
from topos_core.kernels.library import kernel

CLAMPED: Final[Mapping[str, tuple[float, float]]] = {"none": NO_LIMITS, "relu": (0.0, np.inf), "relu6": (0.0, 6.0)}
"""Activations that limit their value and do nothing else."""


def epilogue(activation: str, dtype: str, residual_last: bool = False) -> Epilogue:
    """Gives an activation's epilogue; `dtype` is f32 or f64."""
    if activation in CLAMPED:
        return Epilogue(CLAMPED[activation], None, residual_last)
    return Epilogue(NO_LIMITS, kernel("activation", dtype, activation), residual_last)
