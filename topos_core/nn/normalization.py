"""Normalization, in two passes: the mean first, then the mean of squared distances."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from topos_core.nn.arguments import Array, described, refusal


def batch_norm(
    x: Array,
    running_mean: Array | None = None,
    running_var: Array | None = None,
    scale: Array | None = None,
    shift: Array | None = None,
    training: bool = False,
    eps: float = 1e-5,
    axis: int = 1,
) -> Any:
    """Normalizes every feature of `axis`: by running statistics, or while training by the batch's own.

    Args:
        x: Any rank.
        running_mean, running_var: f32[features]; needed unless training.
        scale, shift: f32[features].
        training: Whether to give (y, mean, variance) from the batch's statistics instead of y.
        eps: Added to the variance, under the root.
        axis: The feature axis.

    Raises:
        RecordingError: Statistics are missing, or do not fit.
    """
    if training:
        return batch_norm_training(x, scale, shift, eps, axis)
    if running_mean is None or running_var is None:
        raise refusal("batch_norm without training=True needs running_mean and running_var", x)
    return batch_norm_inference(x, running_mean, running_var, scale, shift, eps, axis)


def batch_norm_training(
    x: Array, scale: Array | None = None, shift: Array | None = None, eps: float = 1e-5, axis: int = 1
) -> tuple[Array, Array, Array]:
    """Gives (y, mean, variance): y normalized by the batch's mean and biased variance, both f32[features]."""
    at = axis % x.ndim
    axes = tuple(k for k in range(x.ndim) if k != at)
    column = tuple(-1 if k == at else 1 for k in range(x.ndim))
    _check(x, at, scale=scale, shift=shift)
    mean = x.mean(axis=axes)
    centred = x - mean.reshape(column)
    variance = (centred * centred).mean(axis=axes)
    y = centred / np.sqrt(variance + eps).reshape(column)
    return _affine(y, scale, shift, column), mean, variance


def batch_norm_inference(
    x: Array,
    mean: Array,
    variance: Array,
    scale: Array | None = None,
    shift: Array | None = None,
    eps: float = 1e-5,
    axis: int = 1,
) -> Array:
    """Gives (x - mean) / sqrt(variance + eps) * scale + shift; every argument but x is f32[features]."""
    at = axis % x.ndim
    column = tuple(-1 if k == at else 1 for k in range(x.ndim))
    _check(x, at, mean=mean, variance=variance, scale=scale, shift=shift)
    y = (x - mean.reshape(column)) / np.sqrt(variance + eps).reshape(column)
    return _affine(y, scale, shift, column)


def layer_norm(
    x: Array, scale: Array | None = None, shift: Array | None = None, eps: float = 1e-5, axis: Any = -1
) -> Array:
    """Normalizes along the last axis, or along `axis`; scale and shift broadcast against x."""
    centred = x - x.mean(axis=axis, keepdims=True)
    y = centred / np.sqrt((centred * centred).mean(axis=axis, keepdims=True) + eps)
    return _affine(y, scale, shift, None)


def rms_norm(x: Array, scale: Array | None = None, eps: float = 1e-6, axis: Any = -1) -> Array:
    """Divides by the root of the mean square along the last axis, or along `axis`; scale broadcasts against x."""
    y = x / np.sqrt((x * x).mean(axis=axis, keepdims=True) + eps)
    return _affine(y, scale, None, None)


def group_norm(
    x: Array, num_groups: int, scale: Array | None = None, shift: Array | None = None, eps: float = 1e-5
) -> Array:
    """Normalizes [batch, channels, *spatial] over each group of channels and all positions; scale, shift: f32[channels].

    Raises:
        RecordingError: The channels do not divide into the groups.
    """
    channels = x.shape[1]
    if channels % num_groups:
        raise refusal(f"group_norm: {channels} channels of {described(x)} do not divide into {num_groups} groups", x)
    grouped = x.reshape(x.shape[0], num_groups, channels // num_groups * math.prod(x.shape[2:]))
    y = layer_norm(grouped, eps=eps).reshape(x.shape)
    column = (channels, *(1,) * (x.ndim - 2))
    return _affine(y, scale, shift, column)


def instance_norm(x: Array, scale: Array | None = None, shift: Array | None = None, eps: float = 1e-5) -> Array:
    """Normalizes [batch, channels, *spatial] over the positions of each channel; scale, shift: f32[channels]."""
    y = layer_norm(x, eps=eps, axis=tuple(range(2, x.ndim)))
    return _affine(y, scale, shift, (x.shape[1], *(1,) * (x.ndim - 2)))


def _affine(y: Array, scale: Array | None, shift: Array | None, shape: tuple[int, ...] | None) -> Array:
    if scale is not None:
        y = y * (scale if shape is None else scale.reshape(shape))
    if shift is not None:
        y = y + (shift if shape is None else shift.reshape(shape))
    return y


def _check(x: Array, axis: int, **vectors: Array | None) -> None:
    for name, vector in vectors.items():
        if vector is not None and vector.shape != (x.shape[axis],):
            raise refusal(
                f"batch_norm: {name} {described(vector)} does not fit axis {axis} of {described(x)}; it has {x.shape[axis]} numbers",
                x,
                vector,
            )
