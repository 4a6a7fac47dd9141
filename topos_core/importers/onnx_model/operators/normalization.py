"""Normalization."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from topos_core import nn
from topos_core.importers.onnx_model.node import BEFORE_7, Node, Translate, Unsupported
from topos_core.recording import elementwise, repetition
from topos_core.recording.value import Value


def _batch_norm(node: Node) -> Any:
    x, scale, shift, mean, variance = (node.x(at) for at in range(5))
    eps = node.attribute("epsilon", 1e-5)
    if node.attribute("spatial", 1) != 1:
        raise Unsupported("it normalizes each position (spatial=0), as before opset 9")
    if not node.attribute("training_mode", 0):
        if node.trained_before_7:
            raise Unsupported(BEFORE_7)
        if any(node.wants(at) for at in range(1, 5)):
            raise Unsupported("it trains, as before opset 14; convert the model with onnx.version_converter")
        y = nn.batch_norm(x, mean, variance, scale, shift, eps=eps)
        return elementwise.cast(y, x.type.dtype)
    keep = node.attribute("momentum", 0.9)
    y, batch_mean, batch_variance = nn.batch_norm_training(x, scale, shift, eps)
    running = [
        elementwise.cast(before * keep + now * (1 - keep), before.type.dtype)
        for before, now in ((mean, batch_mean), (variance, batch_variance))
    ]
    return y, *running


def _instance_norm(node: Node) -> Any:
    return nn.instance_norm(node.x(0), node.x(1), node.x(2), node.attribute("epsilon", 1e-5))


def _layer_norm(node: Node) -> Any:
    given = node.x(0)
    x = _stashed(node, given)
    axes = tuple(range(node.axis(node.attribute("axis", -1), x.ndim), x.ndim))
    eps = node.attribute("epsilon", 1e-5)
    scale, shift = node.optional(1), node.optional(2)
    axis: Any = axes[0] if len(axes) == 1 else axes
    if x is given and not node.wants(1) and not node.wants(2):
        return nn.layer_norm(x, scale, shift, eps, axis)
    mean = x.mean(axis=axis, keepdims=True)
    centred = x - mean
    root: Any = np.sqrt((centred * centred).mean(axis=axis, keepdims=True) + eps)
    y = elementwise.cast(centred / root, given.type.dtype)
    y = y if scale is None else y * scale
    y = y if shift is None else y + shift
    return [y, mean, 1 / root][: max(len(node.outputs), 1)]


def _rms_norm(node: Node) -> Any:
    given = node.x(0)
    x = _stashed(node, given)
    axes = tuple(range(node.axis(node.attribute("axis", -1), x.ndim), x.ndim))
    y = nn.rms_norm(x, None, node.attribute("epsilon", 1e-5), axes[0] if len(axes) == 1 else axes)
    return elementwise.cast(y, given.type.dtype) * node.x(1)


def _stashed(node: Node, x: Value) -> Any:
    """Halves are normalized in f32 unless the model says otherwise."""
    wide = node.attribute("stash_type", 1) == 1 and x.type.dtype in ("f16", "bf16")
    return elementwise.cast(x, "f32") if wide else x


def _group_norm(node: Node) -> Any:
    given, scale, shift = node.x(0), node.x(1), node.x(2)
    groups, eps = node.attribute("num_groups"), node.attribute("epsilon", 1e-5)
    x = _stashed(node, given)
    channels = x.shape[1]
    if scale.shape == (groups,) != (channels,):  # before opset 21: one number a group
        scale, shift = (repetition.repeat(each, channels // groups) for each in (scale, shift))
    if x is given:
        return nn.group_norm(x, groups, scale, shift, eps)
    column = (channels, *(1,) * (x.ndim - 2))
    y = elementwise.cast(nn.group_norm(x, groups, None, None, eps), given.type.dtype)
    return y * scale.reshape(column) + shift.reshape(column)


def _mean_variance(node: Node) -> Any:
    x = node.x()
    axes = tuple(node.axis(each, x.ndim) for each in node.attribute("axes") or (0, 2, 3))
    mean = x.mean(axis=axes, keepdims=True)
    variance: Any = (x * x).mean(axis=axes, keepdims=True) - mean * mean
    return (x - mean) / (np.sqrt(variance) + 1e-9)


def _skip_layer_norm(node: Node) -> Any:
    """Adds the residual first, then normalizes the last axis (com.microsoft)."""
    if any(node.wants(at) for at in (1, 2)):
        raise Unsupported("it gives mean and deviation too")
    total = node.x(0) + node.x(1)
    if node.has(4):
        total = total + node.x(4)
    y = nn.layer_norm(total, node.x(2), node.optional(3), node.attribute("epsilon", 1e-12))
    return [y, None, None, total] if node.wants(3) else y


OPERATORS: Final[Mapping[str, Translate]] = {
    "BatchNormalization": _batch_norm, "InstanceNormalization": _instance_norm, "LayerNormalization": _layer_norm,
    "RMSNormalization": _rms_norm, "GroupNormalization": _group_norm, "MeanVarianceNormalization": _mean_variance,
    "SimplifiedLayerNormalization": _rms_norm, "com.microsoft:SkipLayerNormalization": _skip_layer_norm,
}  # fmt: skip
