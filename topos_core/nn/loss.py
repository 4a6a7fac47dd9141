"""Losses."""

from __future__ import annotations

import numpy as np

from topos_core.nn.activation import log_softmax
from topos_core.nn.arguments import Array, described, refusal


def cross_entropy(logits: Array, target: Array, reduction: str = "mean", axis: int = -1) -> Array:
    """Gives the negative log probability of the target class.

    Args:
        logits: f32[..., classes], or with the classes at `axis`.
        target: Class numbers, shaped as the logits without `axis`; or probabilities, shaped as the logits.
        reduction: "mean", "sum" or "none", over the examples.
        axis: Where the classes lie.

    Raises:
        RecordingError: Shapes do not fit, or the reduction is something else.
    """
    at = axis % logits.ndim
    logs = log_softmax(logits, axis=at)
    if target.dtype.kind in "iu":
        kept = logits.shape[:at] + logits.shape[at + 1 :]
        if target.shape != kept:
            raise refusal(
                f"cross_entropy: target {described(target)} does not fit {described(logits)}; it is {list(kept)}",
                logits,
                target,
            )
        classes = np.arange(logits.shape[at]).reshape(*(1,) * at, -1, *(1,) * (logits.ndim - at - 1))
        picked = np.where(np.expand_dims(target, at) == classes, logs, 0)
    elif target.shape == logits.shape:
        picked = target * logs
    else:
        raise refusal(
            f"cross_entropy: target {described(target)} does not fit {described(logits)}; probabilities have its shape",
            logits,
            target,
        )
    return _reduced(-picked.sum(axis=at), reduction)


def mse_loss(x: Array, target: Array, reduction: str = "mean") -> Array:
    """Gives the squared distance; reduction "mean", "sum" or "none"."""
    distance = x - target
    return _reduced(distance * distance, reduction)


def _reduced(loss: Array, reduction: str) -> Array:
    if reduction == "none":
        return loss
    if reduction == "mean":
        return loss.mean()
    if reduction == "sum":
        return loss.sum()
    raise refusal(f"reduction={reduction!r}: write 'mean', 'sum' or 'none'", loss)
