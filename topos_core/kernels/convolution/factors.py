"""Bias and batch norm as one factor and one summand per output channel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from topos_core.errors import InternalError
from topos_core.matching.facts import EpilogueFacts


def fold_vectors(bindings: Mapping[str, np.ndarray], facts: EpilogueFacts) -> tuple[np.ndarray, np.ndarray]:
    """Gives the f64 factor and summand per output channel of bias and batch norm."""
    channels = facts.convolution.out_channels

    def vector(name: str, absent: float) -> np.ndarray:
        if name not in bindings:
            return np.full(channels, absent)
        return bindings[name].astype(np.float64).reshape(channels)

    shift = vector("bias", 0.0)
    if facts.norm is None:
        return _stepped(
            np.ones(channels), shift, [vector(f"step{k}", 0.0) for k in range(len(facts.steps))], facts.steps
        )
    with np.errstate(all="ignore"):
        factor = vector("bn_scale", 1.0) / np.sqrt(vector("bn_variance", 1.0) + facts.norm)
        return factor, (shift - vector("bn_mean", 0.0)) * factor + vector("bn_shift", 0.0)


def _stepped(
    factor: np.ndarray, shift: np.ndarray, vectors: Sequence[np.ndarray], steps: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Folds one step per vector into the factor and the summand."""
    with np.errstate(all="ignore"):
        for step, vector in zip(steps, vectors, strict=True):
            match step:
                case "add":
                    shift = shift + vector
                case "sub":
                    shift = shift - vector
                case "mul":
                    factor, shift = factor * vector, shift * vector
                case "div":
                    factor, shift = factor / vector, shift / vector
                case _:
                    raise InternalError(f"an epilogue has a step {step}")
    return factor, shift
