"""Convolutions of every rank, forwards and backwards."""

from __future__ import annotations

from typing import Any, Final

from topos_core import nn
from topos_core.importers.torch_export.call import Call, Table
from topos_core.recording.value import Value


def _each(given: Any, rank: int) -> Any:
    """torch writes one number for all axes as a list of one."""
    if isinstance(given, (list, tuple)):
        return tuple(given) * rank if len(given) == 1 else tuple(given)
    return given


def _convolution(
    call: Call, x: Value, weight: Value, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
    groups: int = 1,
) -> Any:  # fmt: skip
    rank = weight.ndim - 2
    parts = (_each(stride, rank), _each(padding, rank), _each(dilation, rank))
    return nn.convolution(call.cast(x), call.cast(weight), call.cast(bias), *parts, groups)


def _transposed(
    call: Call, x: Value, weight: Value, bias: Any = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
    groups: int = 1, dilation: Any = 1,
) -> Any:  # fmt: skip
    rank = weight.ndim - 2
    parts = (_each(stride, rank), _each(padding, rank), _each(output_padding, rank))
    return nn.convolution_transposed(
        call.cast(x), call.cast(weight), call.cast(bias), *parts, groups, _each(dilation, rank)
    )


def _either(
    call: Call, x: Value, weight: Value, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool,
    output_padding: Any, groups: int,
) -> Any:  # fmt: skip
    if transposed:
        return _transposed(call, x, weight, bias, stride, padding, output_padding, groups, dilation)
    return _convolution(call, x, weight, bias, stride, padding, dilation, groups)


TABLE: Final[Table] = {
    **dict.fromkeys(("conv1d", "conv2d", "conv3d"), _convolution),
    **dict.fromkeys(("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"), _transposed),
    "convolution": _either,
}
