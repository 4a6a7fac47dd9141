"""Convolution as a person would write it: pad, unfold, permute, reshape, matmul."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from topos_core.nn.arguments import Array, described, paddings, per_axis, refusal
from topos_core.nn.windows import spaced, windows_of


def convolution(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Array:
    """Convolves over every axis but the first two, for any rank.

    Args:
        x: f32[batch, channels, *spatial]; without the batch axis the result has none either.
        weight: f32[out, channels / groups, *window].
        bias: f32[out].
        stride, dilation: One number, or one per spatial axis.
        padding: One number, one per axis, (before, after) per axis, "same" or "valid".
        groups: Into how many independent parts the channels fall.

    Raises:
        RecordingError: Extents do not fit.
    """
    if x.ndim == weight.ndim - 1:
        return convolution(x[None], weight, bias, stride, padding, dilation, groups)[0]
    rank = x.ndim - 2
    _check(x, weight, bias, groups)
    out, inner, window = weight.shape[0], weight.shape[1], weight.shape[2:]
    strides, reaches = per_axis("stride", stride, rank, x), per_axis("dilation", dilation, rank, x)
    sides = paddings(padding, rank, window, strides, reaches, x)
    taps = windows_of(x, window, strides, sides, reaches, 0)
    batch, positions = x.shape[0], taps.shape[2 : 2 + rank]
    rows, columns = batch * math.prod(positions), inner * math.prod(window)
    if groups == 1:
        images = taps.transpose(0, *range(2, 2 + rank), 1, *range(2 + rank, 2 + 2 * rank)).reshape(rows, columns)
        kernel = weight.transpose(*range(1, 2 + rank), 0).reshape(columns, out)
        y = images @ kernel
        if bias is not None:
            y = y + bias
        return y.reshape(batch, *positions, out).transpose(0, 1 + rank, *range(1, 1 + rank))
    taps = taps.reshape(batch, groups, inner, *positions, *window)
    order = (1, 0, *range(3, 3 + rank), 2, *range(3 + rank, 3 + 2 * rank))
    images = taps.transpose(order).reshape(groups, rows, columns)
    kernel = weight.reshape(groups, out // groups, columns).transpose(0, 2, 1)
    y = images @ kernel
    if bias is not None:
        y = y + bias.reshape(groups, 1, out // groups)
    y = y.reshape(groups, batch, *positions, out // groups)
    return y.transpose(1, 0, 2 + rank, *range(2, 2 + rank)).reshape(batch, out, *positions)


def convolution_transposed(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Array:
    """Runs a convolution backwards: zeros between the elements, then a convolution with the turned kernel.

    Args:
        x: f32[batch, channels, *spatial].
        weight: f32[channels, out / groups, *window].
        bias: f32[out].
        stride: Distance of the elements in the result.
        padding: What the forward convolution padded; here it crops.
        output_padding: Extra elements at the end of each axis.
        groups, dilation: As in `convolution`.

    Raises:
        RecordingError: Extents do not fit.
    """
    if x.ndim == weight.ndim - 1:
        return convolution_transposed(x[None], weight, bias, stride, padding, output_padding, groups, dilation)[0]
    rank = x.ndim - 2
    if weight.ndim != x.ndim or weight.shape[0] != x.shape[1] or x.shape[1] % groups:
        raise refusal(
            f"transposed convolution: weight {described(weight)} does not fit {described(x)} with groups={groups};"
            " it is [channels, out / groups, *window]",
            x,
            weight,
        )
    channels, part, window = weight.shape[0], weight.shape[1], weight.shape[2:]
    strides, reaches = per_axis("stride", stride, rank, x), per_axis("dilation", dilation, rank, x)
    extra = per_axis("output_padding", output_padding, rank, x)
    sides = paddings(padding, rank, window, (1,) * rank, reaches, x)
    edge = [reach * (extent - 1) for extent, reach in zip(window, reaches, strict=True)]
    low = (0, 0, *(e - before for e, (before, _) in zip(edge, sides, strict=True)))
    high = (0, 0, *(e - after + more for e, (_, after), more in zip(edge, sides, extra, strict=True)))
    wide = spaced(x, low, high, (0, 0, *(step - 1 for step in strides)))
    kernel = np.flip(weight, tuple(range(2, 2 + rank)))
    kernel = kernel.reshape(groups, channels // groups, part, *window).swapaxes(1, 2)
    kernel = kernel.reshape(groups * part, channels // groups, *window)
    return convolution(wide, kernel, bias, 1, 0, reaches, groups)


def conv1d(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Array:
    """Convolves over one axis; see `convolution`."""
    return _ranked(1, x, weight, bias, stride, padding, dilation, groups)


def conv2d(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Array:
    """Convolves over two axes; see `convolution`."""
    return _ranked(2, x, weight, bias, stride, padding, dilation, groups)


def conv3d(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Array:
    """Convolves over three axes; see `convolution`."""
    return _ranked(3, x, weight, bias, stride, padding, dilation, groups)


def conv_transpose1d(
    x: Array, weight: Array, bias: Array | None = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
    groups: int = 1, dilation: Any = 1,
) -> Array:  # fmt: skip
    """Runs a convolution over one axis backwards; see `convolution_transposed`."""
    return _ranked_back(1, x, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose2d(
    x: Array, weight: Array, bias: Array | None = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
    groups: int = 1, dilation: Any = 1,
) -> Array:  # fmt: skip
    """Runs a convolution over two axes backwards; see `convolution_transposed`."""
    return _ranked_back(2, x, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose3d(
    x: Array, weight: Array, bias: Array | None = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
    groups: int = 1, dilation: Any = 1,
) -> Array:  # fmt: skip
    """Runs a convolution over three axes backwards; see `convolution_transposed`."""
    return _ranked_back(3, x, weight, bias, stride, padding, output_padding, groups, dilation)


def _ranked(rank: int, x: Array, weight: Array, *rest: Any) -> Array:
    if weight.ndim != rank + 2:
        raise refusal(
            f"conv{rank}d: weight {described(weight)} has {weight.ndim} axes, {rank + 2} are needed", x, weight
        )
    return convolution(x, weight, *rest)


def _ranked_back(rank: int, x: Array, weight: Array, *rest: Any) -> Array:
    if weight.ndim != rank + 2:
        raise refusal(
            f"conv_transpose{rank}d: weight {described(weight)} has {weight.ndim} axes, {rank + 2} are needed",
            x,
            weight,
        )
    return convolution_transposed(x, weight, *rest)


def _check(x: Array, weight: Array, bias: Array | None, groups: int) -> None:
    if weight.ndim != x.ndim or weight.shape[1] * groups != x.shape[1] or weight.shape[0] % groups:
        raise refusal(
            f"convolution: weight {described(weight)} does not fit {described(x)} with groups={groups};"
            " it is [out, channels / groups, *window]",
            x,
            weight,
        )
    if bias is not None and bias.shape != (weight.shape[0],):
        raise refusal(
            f"convolution: bias {described(bias)} does not fit {weight.shape[0]} channels out; it has one number each",
            x,
            bias,
        )
