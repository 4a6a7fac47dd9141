"""Bias and batch norm as one factor and one summand per output channel, or step by step where those cannot stand for them.

`sums * scale + shift` is what was recorded for every value of the sums as long as both are finite and the shift is far from the
largest number. A factor that is infinite or overflows gives NaN beside a summand of the other sign; beside a large one a product
overflows that would not be large in the end; and where all factors are too small for a usual number, little is left of their
digits. Then the sums are stored alone, and the recorded steps are taken one by one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from topos_core.errors import InternalError
from topos_core.kernels.folding import stand
from topos_core.matching.facts import EpilogueFacts

Steps = tuple[tuple[str, np.ndarray], ...]
"""What is done to sums one after the other: `add`, `sub`, `mul` or `div`, and one value per output channel."""
_NORM: Final = (("sub", "bn_mean"), ("div", "bn_variance"), ("mul", "bn_scale"), ("add", "bn_shift"))


class Factors(NamedTuple):
    """What follows a convolution's sums, per output channel, in the dtype that is computed in.

    Args:
        scale, shift: Of the sums, while they are in registers.
        steps: What is done to the stored sums afterwards, scale and shift being 1 and 0; None where nothing is.
    """

    scale: np.ndarray
    shift: np.ndarray
    steps: Steps | None = None


def unchanged(channels: int, dtype: np.dtype) -> Factors:
    """Gives the factors that leave sums as they are."""
    return Factors(np.ones(channels, dtype), np.zeros(channels, dtype))


def fold(bindings: Mapping[str, np.ndarray], facts: EpilogueFacts, dtype: np.dtype) -> Factors:
    """Folds bias and batch norm in f64 and rounds once, where that stands for them."""
    channels = facts.convolution.out_channels
    with np.errstate(all="ignore"):
        steps = _steps(bindings, facts)
        if not steps:
            return unchanged(channels, dtype)
        folded = np.empty((2, channels))
        folded[0], folded[1] = _folded(steps)
        factors = folded.astype(dtype)
        if stand(folded, factors, lambda: _zero(steps, channels)):
            return Factors(factors[0], factors[1])
        return unchanged(channels, dtype)._replace(
            steps=tuple([(name, vector.astype(dtype)) for name, vector in steps])
        )


def _steps(bindings: Mapping[str, np.ndarray], facts: EpilogueFacts) -> Steps:
    """Lists what was recorded, in f64."""
    found = []
    for step, name in (("add", "bias"), *_NORM, *((step, f"step{k}") for k, step in enumerate(facts.steps))):
        vector = bindings.get(name)
        if vector is not None:
            wide = vector.astype(np.float64).reshape(-1)
            found.append((step, np.sqrt(wide + (facts.norm or 0.0)) if name == "bn_variance" else wide))
    return tuple(found)


def _folded(steps: Steps) -> tuple[np.ndarray | float, np.ndarray | float]:
    """Folds steps to a factor and a summand."""
    factor: np.ndarray | float = 1.0
    summand: np.ndarray | float = 0.0
    for step, vector in steps:
        match step:
            case "add":
                summand = summand + vector
            case "sub":
                summand = summand - vector
            case "mul":
                factor, summand = factor * vector, summand * vector
            case "div":
                factor, summand = factor / vector, summand / vector
            case _:
                raise InternalError(f"an epilogue has a step {step}")
    return factor, summand


def _zero(steps: Steps, channels: int) -> np.ndarray:
    """Tells which factors a step makes 0."""
    zero = np.zeros(channels, bool)
    for step, vector in steps:
        if step in ("mul", "div"):
            zero |= vector == 0.0 if step == "mul" else np.isinf(vector)
    return zero


def stages(steps: Sequence[tuple[str, np.ndarray]], channels: int, dtype: np.dtype) -> np.ndarray:
    """Gives steps as `(x + a) * b / c`, several times: [channels, times, 3] with a, b and c; what a step does not do is -0 and 1."""
    places = {"add": 0, "sub": 0, "mul": 1, "div": 2}
    rows: list[np.ndarray] = []
    last = len(places)
    for step, vector in steps:
        if places[step] <= last:
            rows.append(np.tile(np.array([-0.0, 1.0, 1.0], dtype), (channels, 1)))
        last = places[step]
        rows[-1][:, last] = -vector if step == "sub" else vector
    return np.ascontiguousarray(np.stack(rows, 1))
