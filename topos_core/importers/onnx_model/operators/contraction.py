"""Matrix products."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from topos_core.importers.onnx_model.node import Node, Translate
from topos_core.recording import elementwise, movement
from topos_core.recording.value import Value


def _matmul(node: Node) -> Any:
    return node.x(0) @ node.x(1)


def _gemm(node: Node) -> Any:
    a, b = node.x(0), node.x(1)
    a = a.T if node.attribute("transA", 0) else a
    b = b.T if node.attribute("transB", 0) else b
    y = _scaled(a @ b, node.attribute("alpha", 1.0))
    c = node.optional(2)
    return y if c is None else y + _scaled(c, node.attribute("beta", 1.0))


def _scaled(x: Value, factor: float) -> Any:
    return x if factor == 1.0 else elementwise.cast(x * factor, x.type.dtype)


def _einsum(node: Node) -> Any:
    return np.einsum(node.attribute("equation"), *(node.x(at) for at in range(len(node))))


def shifted(node: Node, at: int, zero_point: int, column: tuple[int, ...] | None = None) -> Any:
    """Gives an integer operand minus its zero point, in i32."""
    x = elementwise.cast(node.x(at), "i32")
    zero = node.optional(zero_point)
    if zero is None:
        return x
    zero = elementwise.cast(zero, "i32")
    if zero.ndim == 1 and zero.size == 1:
        zero = movement.reshape(zero, ())
    return x - (movement.reshape(zero, column) if column and zero.ndim == 1 else zero)


def _matmul_integer(node: Node) -> Any:
    rows = node.held[2] if node.has(2) else None
    column: Any = (-1, 1) if rows is not None and getattr(rows, "ndim", 0) == 1 else None
    return shifted(node, 0, 2, column) @ shifted(node, 1, 3)


OPERATORS: Final[Mapping[str, Translate]] = {
    "MatMul": _matmul, "Gemm": _gemm, "Einsum": _einsum, "MatMulInteger": _matmul_integer,
}  # fmt: skip
