"""The steps behind a convolution as they are recorded, over its stored sums: for when no factor can stand for them."""

from __future__ import annotations

from typing import Final, Literal

import numpy as np

from topos_core.kernels.convolution.activations import Ending
from topos_core.kernels.convolution.factors import Steps
from topos_core.matching.formula import ACTIVATIONS, STEPS

PIECE: Final = 1024
"""Elements that are finished at a time, so that what the steps make on the way takes a few KB, however large the result is."""


def finish(sums: np.ndarray, residual: np.ndarray | None, steps: Steps, ending: Ending) -> None:
    """Takes the steps, adds the residual and activates, in place.

    Args:
        sums: [batch, groups, rows, positions...], in any strides.
        residual: In the same axes and dtype.
        steps: Values per output channel: groups * rows.
        ending: What follows them.
    """
    of_channels = (1, *sums.shape[1:3], *(1,) * (sums.ndim - 3))
    operands = [sums, *(vector.reshape(of_channels) for _, vector in steps)]
    if residual is not None:
        operands.append(residual)
    activate = ACTIVATIONS[ending.activation]
    uses: list[list[Literal["readwrite", "readonly"]]] = [
        ["readwrite" if operand is sums else "readonly"] for operand in operands
    ]
    pieces = np.nditer(operands, ["external_loop", "buffered"], uses, buffersize=PIECE)
    with pieces, np.errstate(all="ignore"):
        for values, *given in pieces:
            for (step, _), vector in zip(steps, given, strict=False):
                STEPS[step](values, vector, out=values)
            if ending.residual_last:
                values[...] = activate(values)
            if residual is not None:
                np.add(values, given[-1], out=values)
            if not ending.residual_last:
                values[...] = activate(values)
