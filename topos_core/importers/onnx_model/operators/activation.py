"""Activations."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from topos_core import nn
from topos_core.importers.onnx_model.node import Node, Translate
from topos_core.recording import elementwise
from topos_core.recording.value import Value


def _plain(function: Callable[[Value], Any]) -> Translate:
    return lambda node: function(node.x())


def _leaky_relu(node: Node) -> Any:
    return nn.leaky_relu(node.x(), node.attribute("alpha", 0.01))


def _prelu(node: Node) -> Any:
    x = node.x()
    return np.where(x > 0, x, x * node.x(1))


def _elu(node: Node) -> Any:
    return nn.elu(node.x(), node.attribute("alpha", 1.0))


def _selu(node: Node) -> Any:
    alpha, gamma = (
        node.attribute("alpha", 1.67326319217681884765625),
        node.attribute("gamma", 1.05070102214813232421875),
    )
    return gamma * nn.elu(node.x(), alpha)


def _celu(node: Node) -> Any:
    alpha, x = node.attribute("alpha", 1.0), node.x()
    return np.maximum(x, 0) + np.minimum(alpha * np.expm1(np.minimum(x, 0) / alpha), 0)


def _thresholded(node: Node) -> Any:
    x = node.x()
    return np.where(x > node.attribute("alpha", 1.0), x, 0)


def _hard_sigmoid(node: Node) -> Any:
    alpha, beta = node.attribute("alpha", 0.2), node.attribute("beta", 0.5)
    return elementwise.clip(alpha * node.x() + beta, 0, 1)


def _hard_swish(x: Value) -> Any:
    return nn.hardswish(x)


def _shrink(node: Node) -> Any:
    x, bias, limit = node.x(), node.attribute("bias", 0.0), node.attribute("lambd", 0.5)
    below = elementwise.cast(x + bias, x.type.dtype)
    above = elementwise.cast(x - bias, x.type.dtype)
    return elementwise.select(x < -limit, below, elementwise.select(x > limit, above, 0))


def _gelu(node: Node) -> Any:
    return nn.gelu(node.x(), approximate=node.attribute("approximate", "none"))


def _fast_gelu(node: Node) -> Any:
    x = node.x() + node.x(1) if node.has(1) else node.x()
    return nn.gelu(x, approximate="tanh")


def _bias_gelu(node: Node) -> Any:
    return nn.gelu(node.x() + node.x(1))


def _quick_gelu(node: Node) -> Any:
    x = node.x()
    return x * nn.sigmoid(node.attribute("alpha", 1.702) * x)


def _swish(node: Node) -> Any:
    x, alpha = node.x(), node.attribute("alpha", 1.0)
    return nn.silu(x) if alpha == 1.0 else x * nn.sigmoid(alpha * x)


def _mish(x: Value) -> Any:
    return x * np.tanh(nn.softplus(x))


def _softsign(x: Value) -> Any:
    return x / (1 + abs(x))


def _over_axis(function: Callable[..., Any]) -> Translate:
    """Before opset 13 the axes from `axis` on count as one."""

    def translate(node: Node) -> Any:
        x = node.x()
        axis = node.axis(node.attribute("axis", -1 if node.opset >= 13 else 1), max(x.ndim, 1))
        if node.opset >= 13 or axis == x.ndim - 1:
            return function(x, axis=axis)
        flat = x.reshape(math.prod(x.shape[:axis]), math.prod(x.shape[axis:]))
        return function(flat, axis=1).reshape(x.shape)

    return translate


def _hardmax(x: Value, axis: int) -> Any:
    column = tuple(-1 if at == axis else 1 for at in range(x.ndim))
    places = np.arange(x.shape[axis]).reshape(column)
    found = np.expand_dims(x.argmax(axis), axis)
    return elementwise.cast(found == places, x.type.dtype)


OPERATORS: Final[Mapping[str, Translate]] = {
    "Relu": _plain(nn.relu), "LeakyRelu": _leaky_relu, "PRelu": _prelu, "Elu": _elu, "Selu": _selu, "Celu": _celu,
    "ThresholdedRelu": _thresholded, "Sigmoid": _plain(nn.sigmoid), "HardSigmoid": _hard_sigmoid,
    "HardSwish": _plain(_hard_swish), "Softplus": _plain(nn.softplus), "Softsign": _plain(_softsign),
    "Shrink": _shrink, "Gelu": _gelu, "Swish": _swish, "Mish": _plain(_mish), "Softmax": _over_axis(nn.softmax),
    "LogSoftmax": _over_axis(nn.log_softmax), "Hardmax": _over_axis(_hardmax),
    "com.microsoft:Gelu": _gelu, "com.microsoft:FastGelu": _fast_gelu, "com.microsoft:BiasGelu": _bias_gelu,
    "com.microsoft:QuickGelu": _quick_gelu,
}  # fmt: skip
