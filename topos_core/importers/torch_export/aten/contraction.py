"""Products: linear layers, matrix products and einsum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from topos_core import nn
from topos_core.importers.torch_export.call import Call, NoFormula, Table
from topos_core.recording.value import Value


def _linear(call: Call, x: Value, weight: Value, bias: Any = None) -> Any:
    x, weight, bias = call.cast(x), call.cast(weight), call.cast(bias)
    if weight.ndim == 1:
        y = x @ weight
        return y if bias is None else y + bias
    return nn.linear(x, weight, bias)


def _product(call: Call, a: Value, b: Value, *rest: Any) -> Any:
    return call.cast(a) @ call.cast(b)


def _added(call: Call, x: Value, a: Value, b: Value, beta: Any = 1, alpha: Any = 1) -> Any:
    """addmm, baddbmm and addmv: beta * x + alpha * (a @ b)."""
    y = call.cast(a) @ call.cast(b)
    y = y if alpha == 1 else y * float(alpha)
    if beta == 0:
        return y
    x = call.cast(x)
    return y + (x if beta == 1 else x * float(beta))


def _einsum(call: Call, equation: str, tensors: Sequence[Value], path: Any = None) -> Any:
    return np.einsum(equation.replace(" ", ""), *[call.cast(each) for each in tensors])


def _outer(call: Call, a: Value, b: Value) -> Any:
    return np.outer(call.cast(a), call.cast(b))


def _tensordot(call: Call, a: Value, b: Value, dims_a: Sequence[int], dims_b: Sequence[int]) -> Any:
    return np.tensordot(call.cast(a), call.cast(b), (tuple(dims_a), tuple(dims_b)))


def _bilinear(call: Call, a: Value, b: Value, weight: Value, bias: Any = None) -> Any:
    if a.ndim != 2:
        raise NoFormula("bilinear over more than one batch axis")
    y = np.einsum("bi,oij,bj->bo", a, weight, b)
    return y if bias is None else y + bias


TABLE: Final[Table] = {
    "linear": _linear, "matmul": _product, "__matmul__": _product, "mm": _product, "bmm": _product, "mv": _product,
    "dot": _product, "vdot": _product, "inner": lambda call, a, b: np.inner(call.cast(a), call.cast(b)),
    "addmm": _added, "baddbmm": _added, "addmv": _added, "einsum": _einsum, "outer": _outer, "ger": _outer,
    "tensordot": _tensordot, "bilinear": _bilinear,
}  # fmt: skip
