"""Activations by the names of facts: some are limits, the others functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np

from topos_core.kernels.convolution.engine import NO_LIMITS, Epilogue

CLAMPED: Final[Mapping[str, tuple[float, float]]] = {
    "none": NO_LIMITS, "relu": (0.0, np.inf), "relu_unless_negative": (0.0, np.inf), "relu6": (0.0, 6.0),
}  # fmt: skip
"""Activations that limit their value and do nothing else."""


class Ending(NamedTuple):
    """What follows scale and shift, as facts name it: a residual and an activation; `residual_last` puts the latter first."""

    activation: str = "none"
    residual: bool = False
    residual_last: bool = False

    @property
    def epilogue(self) -> Epilogue:
        """Gives it as kernels take it."""
        return epilogue(*self)


def epilogue(activation: str, residual: bool = False, residual_last: bool = False) -> Epilogue:
    """Gives an activation's epilogue."""
    if activation in CLAMPED:
        return Epilogue(CLAMPED[activation], "none", residual, residual_last)
    return Epilogue(NO_LIMITS, activation, residual, residual_last)
