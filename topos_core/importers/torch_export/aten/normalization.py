"""Norms: batch, layer, group, instance and root mean square."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from topos_core import nn
from topos_core.importers.torch_export.aten.elementwise import half_as_single
from topos_core.importers.torch_export.call import Call, NoFormula, Table
from topos_core.recording.value import Value


def _batch_norm(
    call: Call, x: Value, weight: Any, bias: Any, mean: Any, variance: Any, training: bool, momentum: float, eps: float,
    *rest: Any,
) -> Any:  # fmt: skip
    if not training and mean is not None:
        return nn.batch_norm_inference(x, mean, variance, weight, bias, eps)
    y, found, spread = nn.batch_norm_training(x, weight, bias, eps)
    if mean is not None and variance is not None:
        count = x.size // x.type.shape[1]
        unbiased = spread * (count / max(count - 1, 1))
        call.writes[3] = mean * (1 - momentum) + found * momentum
        call.writes[4] = variance * (1 - momentum) + unbiased * momentum
    return y


def _layer_norm(call: Call, x: Value, shape: Sequence[int], weight: Any = None, bias: Any = None, eps: float = 1e-5,
                *rest: Any) -> Any:  # fmt: skip
    axes = -1 if len(shape) == 1 else tuple(range(x.ndim - len(shape), x.ndim))
    return nn.layer_norm(x, weight, bias, eps, axes)


def _rms_norm(call: Call, x: Value, shape: Sequence[int], weight: Any = None, eps: Any = None) -> Any:
    axes = -1 if len(shape) == 1 else tuple(range(x.ndim - len(shape), x.ndim))
    return nn.rms_norm(x, weight, float(np.finfo(x.dtype).eps) if eps is None else eps, axes)


def _group_norm(call: Call, x: Value, groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5,
                *rest: Any) -> Any:  # fmt: skip
    return nn.group_norm(x, groups, weight, bias, eps)


def _instance_norm(
    call: Call, x: Value, weight: Any, bias: Any, mean: Any, variance: Any, use_input: bool, momentum: float, eps: float,
    *rest: Any,
) -> Any:  # fmt: skip
    if not use_input:
        return nn.batch_norm_inference(x, mean, variance, weight, bias, eps)
    if mean is not None:
        raise NoFormula("it updates running statistics")
    return nn.instance_norm(x, weight, bias, eps)


def _weight_norm(call: Call, v: Any, g: Any, dim: int = 0) -> Any:
    """Scales every slice of v along `dim` to the length g."""
    axes = tuple(axis for axis in range(v.ndim) if axis != dim % v.ndim)
    return v * (g / np.sqrt((v * v).sum(axis=axes, keepdims=True)))


def _batch_norm_of_core(call: Call, x: Value, weight: Any, bias: Any, mean: Any, variance: Any, momentum: float,
                        eps: float) -> Any:  # fmt: skip
    """As a decomposed module has it; the statistics that it gives besides are empty."""
    y = half_as_single(_batch_norm)(call, x, weight, bias, mean, variance, False, momentum, eps)
    return [y, *(None for _ in call.results[1:])]


def _layer_norm_of_core(call: Call, x: Value, shape: Sequence[int], weight: Any, bias: Any, eps: float) -> Any:
    """As a decomposed module has it: with the mean and the reciprocal deviation of every row."""
    axes = tuple(range(x.ndim - len(shape), x.ndim))
    mean = x.mean(axis=axes, keepdims=True)
    spread = ((x - mean) ** 2).mean(axis=axes, keepdims=True)
    return [half_as_single(_layer_norm)(call, x, shape, weight, bias, eps), mean, 1 / np.sqrt(spread + eps)]


TABLE: Final[Table] = {
    "_native_batch_norm_legit_no_training": _batch_norm_of_core,
    "native_layer_norm": _layer_norm_of_core,
    "_weight_norm": _weight_norm,
    "batch_norm": half_as_single(_batch_norm),
    "layer_norm": half_as_single(_layer_norm),
    "rms_norm": half_as_single(_rms_norm),
    "group_norm": half_as_single(_group_norm),
    "instance_norm": half_as_single(_instance_norm),
}
