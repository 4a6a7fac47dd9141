"""Activations, elementwise."""

from __future__ import annotations

import math

import numpy as np

from topos_core.nn.arguments import Array, refusal
from topos_core.recording.elementary import erf


def relu(x: Array) -> Array:
    """Gives max(x, 0)."""
    return np.maximum(x, 0)


def relu6(x: Array) -> Array:
    """Gives min(max(x, 0), 6)."""
    return np.minimum(np.maximum(x, 0), 6)


def leaky_relu(x: Array, negative_slope: float = 0.01) -> Array:
    """Gives x above 0 and negative_slope * x below."""
    return np.where(x > 0, x, x * negative_slope)


def elu(x: Array, alpha: float = 1.0) -> Array:
    """Gives x above 0 and alpha * (exp(x) - 1) below."""
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def sigmoid(x: Array) -> Array:
    """Gives 1 / (1 + exp(-x))."""
    return 1 / (1 + np.exp(-x))


def tanh(x: Array) -> Array:
    """Gives the hyperbolic tangent."""
    return np.tanh(x)


def silu(x: Array) -> Array:
    """Gives x * sigmoid(x)."""
    return x * sigmoid(x)


def hardswish(x: Array) -> Array:
    """Gives x * relu6(x + 3) / 6."""
    return x * relu6(x + 3) / 6


def softplus(x: Array) -> Array:
    """Gives log(1 + exp(x)), without overflow."""
    return np.maximum(x, 0) + np.log1p(np.exp(-abs(x)))


def gelu(x: Array, approximate: str = "none") -> Array:
    """Gives x times the normal distribution's cumulative function.

    Args:
        x: Any shape.
        approximate: "none" by erf, "tanh" or "sigmoid" by these functions (Hendrycks and Gimpel 2016, arXiv:1606.08415).

    Raises:
        RecordingError: `approximate` is something else.
    """
    if approximate == "none":
        return 0.5 * x * (1 + erf(x * math.sqrt(0.5)))
    if approximate == "tanh":
        return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * (x * x * x))))
    if approximate == "sigmoid":
        return x * sigmoid(1.702 * x)
    raise refusal(f"gelu(approximate={approximate!r}): write 'none', 'tanh' or 'sigmoid'", x)


def softmax(x: Array, axis: int = -1) -> Array:
    """Gives exp(x) over its sum along an axis, shifted by the maximum."""
    powers = np.exp(x - x.max(axis=axis, keepdims=True))
    return powers / powers.sum(axis=axis, keepdims=True)


def log_softmax(x: Array, axis: int = -1) -> Array:
    """Gives the logarithm of softmax without computing it."""
    shifted = x - x.max(axis=axis, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=axis, keepdims=True))
