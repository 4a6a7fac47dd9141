"""Quantized values: scale, round half to even, shift, saturate; and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from topos_core import nn
from topos_core.importers.onnx_model.dtypes import DTYPES
from topos_core.importers.onnx_model.node import Node, Translate, Unsupported
from topos_core.importers.onnx_model.operators.contraction import shifted
from topos_core.importers.onnx_model.operators.windows import geometry
from topos_core.recording import elementwise, movement
from topos_core.recording.value import Value
from topos_core.tape.type import INTEGERS, numpy_dtype


def _quantize(node: Node) -> Any:
    x, scale, zero = node.x(0), node.x(1), node.optional(2)
    _refuse_blocks(node, scale, x)
    dtype = zero.type.dtype if zero is not None else DTYPES.get(node.attribute("output_dtype", 0) or 2)
    column = _column(node, scale, x)
    y = elementwise.cast(x, "f32") / movement.reshape(elementwise.cast(scale, "f32"), column)
    return saturated(y, None if zero is None else movement.reshape(zero, column), dtype)


def saturated(y: Value, zero: Value | None, dtype: str | None) -> Value:
    """Rounds half to even, adds the zero point, and keeps to the dtype's range."""
    if dtype not in INTEGERS:
        raise Unsupported("it quantizes to an element type that topos does not have")
    rounded = elementwise.apply(np.rint, (y,))
    if zero is not None:
        rounded = rounded + elementwise.cast(zero, "f32")
    limits = np.iinfo(numpy_dtype(dtype))
    return elementwise.cast(elementwise.clip(rounded, float(limits.min), float(limits.max)), dtype)


def _dequantize(node: Node) -> Any:
    x, scale, zero = node.x(0), node.x(1), node.optional(2)
    _refuse_blocks(node, scale, x)
    column = _column(node, scale, x)
    wide = elementwise.cast(x, "f32")
    if zero is not None:
        wide = wide - movement.reshape(elementwise.cast(zero, "f32"), column)
    y = wide * movement.reshape(elementwise.cast(scale, "f32"), column)
    return elementwise.cast(y, DTYPES.get(node.attribute("output_dtype", 0), scale.type.dtype))


def _refuse_blocks(node: Node, scale: Value, x: Value) -> None:
    if node.attribute("block_size", 0) or scale.ndim > 1:
        raise Unsupported("it scales blocks of an axis")


def _column(node: Node, scale: Value, x: Value) -> tuple[int, ...]:
    if scale.size == 1:
        return ()
    axis = node.axis(node.attribute("axis", 1), x.ndim)
    return tuple(-1 if at == axis else 1 for at in range(x.ndim))


def _quantize_dynamically(node: Node) -> Any:
    x = node.x()
    low = elementwise.apply(np.minimum, (x.min(), 0))
    high = elementwise.apply(np.maximum, (x.max(), 0))
    scale = (high - low) / 255.0
    zero = saturated(elementwise.clip(-low / scale, 0.0, 255.0), None, "u8")
    return saturated(x / scale, zero, "u8"), scale, zero


def _product(node: Node) -> Any:
    """Multiplies in i32, then scales once."""
    for at in (1, 2, 4, 5):
        if node.x(at).size != 1:
            raise Unsupported("it has a scale for each row or column")
    product = shifted(node, 0, 2) @ shifted(node, 3, 5)
    return _scaled(node, product, 1, 4, 6, 7, ())


def _convolution(node: Node) -> Any:
    x, weight = shifted(node, 0, 2), shifted(node, 3, 5, (-1, *(1,) * (node.x(3).ndim - 1)))
    strides, dilations, sides = geometry(node, weight.shape[2:], x.shape[2:])
    y = nn.convolution(x, weight, node.optional(8), strides, sides, dilations, node.attribute("group", 1))
    return _scaled(node, y, 1, 4, 6, 7, (-1, *(1,) * (x.ndim - 2)))


def _scaled(node: Node, total: Value, a: int, b: int, y: int, zero: int, column: tuple[int, ...]) -> Value:
    scales = [elementwise.cast(node.x(at), "f32") for at in (a, b, y)]
    shaped = [movement.reshape(each, () if each.size == 1 else column) for each in scales]
    factor = shaped[0] * shaped[1] / shaped[2]
    point = node.x(zero)
    return saturated(elementwise.cast(total, "f32") * factor, movement.reshape(point, ()), point.type.dtype)


OPERATORS: Final[Mapping[str, Translate]] = {
    "QuantizeLinear": _quantize, "DequantizeLinear": _dequantize, "DynamicQuantizeLinear": _quantize_dynamically,
    "QLinearMatMul": _product, "QLinearConv": _convolution, "com.microsoft:QuantizeLinear": _quantize,
    "com.microsoft:DequantizeLinear": _dequantize,
}  # fmt: skip
