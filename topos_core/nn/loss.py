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
    if target.dtype.kind not in "iu" and target.shape != logits.shape:
        raise refusal(
            f"cross_entropy: target {described(target)} does not fit {described(logits)}; probabilities have its shape",
            logits,
            target,
        )
    logs = log_softmax(logits, axis=axis % logits.ndim)
    if target.dtype.kind in "iu":
        return _of_classes("cross_entropy", logs, target, reduction, axis)
    return _reduced(-(target * logs).sum(axis=axis % logits.ndim), reduction)


def nll_loss(logs: Array, target: Array, reduction: str = "mean", axis: int = -1) -> Array:
    """Gives minus the log probability of the target class, from log probabilities as `log_softmax` gives them.

    Args:
        logs: f32[..., classes], or with the classes at `axis`.
        target: Class numbers, shaped as `logs` without `axis`.
        reduction: "mean", "sum" or "none", over the examples.
        axis: Where the classes lie.

    Raises:
        RecordingError: Shapes do not fit, the target is no whole number, or the reduction is something else.
    """
    if target.dtype.kind not in "iu":
        raise refusal(f"nll_loss: target {described(target)} is no class number; write cross_entropy", logs, target)
    return _of_classes("nll_loss", logs, target, reduction, axis)


def _of_classes(name: str, logs: Array, target: Array, reduction: str, axis: int) -> Array:
    at = axis % logs.ndim
    kept = logs.shape[:at] + logs.shape[at + 1 :]
    if target.shape != kept:
        raise refusal(
            f"{name}: target {described(target)} does not fit {described(logs)}; it is {list(kept)}", logs, target
        )
    classes = np.arange(logs.shape[at]).reshape(*(1,) * at, -1, *(1,) * (logs.ndim - at - 1))
    picked = np.where(np.expand_dims(target, at) == classes, logs, 0)
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
