"""Losses."""

from __future__ import annotations

from typing import Any, Final

from topos_core import nn
from topos_core.importers.torch_export.call import Call, NoFormula, Table
from topos_core.recording import lookup
from topos_core.recording.value import Value

_REDUCTIONS: Final = ("none", "mean", "sum")


def _cross_entropy(
    call: Call, logits: Value, target: Value, weight: Any = None, reduction: int = 1, ignored: int = -100,
    smoothing: float = 0.0,
) -> Any:  # fmt: skip
    if weight is not None or smoothing:
        raise NoFormula("class weights or label smoothing")
    axis = 1 if logits.ndim > 1 else 0
    if target.dtype.kind in "iu":
        target = _classes(target, logits.type.shape[axis], ignored)
    return nn.cross_entropy(logits, target, _REDUCTIONS[reduction], axis=axis)


def _likelihood(
    call: Call, logs: Value, target: Value, weight: Any = None, reduction: int = 1, ignored: int = -100
) -> Any:
    if weight is not None:
        raise NoFormula("class weights")
    axis = 1 if logs.ndim > 1 else 0
    return nn.nll_loss(logs, _classes(target, logs.type.shape[axis], ignored), _REDUCTIONS[reduction], axis=axis)


def _classes(target: Value, count: int, ignored: int) -> Value:
    """Ignored targets have no formula: the mean is over those that are not ignored, and only data tell how many."""
    if not (_lowest(target) >= 0 > ignored):
        raise NoFormula(f"targets may be {ignored}, which is ignored")
    return lookup.inside(target, count, from_end=False)


def _lowest(target: Value) -> int:
    """Gives the smallest class that can occur: 0 for an input with a range."""
    low, _ = target.recorder.ranges.get(target.index, (-1, 0))
    return low


def _squared(call: Call, x: Value, target: Value, reduction: int = 1) -> Any:
    return nn.mse_loss(x, target, _REDUCTIONS[reduction])


TABLE: Final[Table] = {
    "cross_entropy_loss": _cross_entropy, "mse_loss": _squared, "nll_loss": _likelihood, "nll_loss2d": _likelihood,
    "nll_loss_nd": _likelihood,
}  # fmt: skip
