"""Arithmetic, comparison, logic and casts, element by element."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any, Final

import numpy as np

from topos_core.importers.onnx_model.dtypes import DTYPES
from topos_core.importers.onnx_model.node import BEFORE_7, Node, Translate, Unsupported
from topos_core.recording import constant, elementwise, lookup, movement
from topos_core.recording.elementary import erf
from topos_core.recording.value import Value
from topos_core.tape.type import FLOATS, UNSIGNED


def _unary(function: Callable[[Any], Any]) -> Translate:
    return lambda node: function(node.x())


def _binary(ufunc: np.ufunc) -> Translate:
    def translate(node: Node) -> Any:
        _refuse_old_broadcast(node)
        return elementwise.apply(ufunc, (node.x(0), node.x(1)))

    return translate


def _folded(ufunc: np.ufunc) -> Translate:
    def translate(node: Node) -> Any:
        return reduce(lambda a, b: elementwise.apply(ufunc, (a, b)), [node.x(at) for at in range(len(node))])

    return translate


def _refuse_old_broadcast(node: Node) -> None:
    if node.attribute("broadcast") or node.attribute("axis") is not None:
        raise Unsupported("it broadcasts by an axis, as before opset 7; convert the model with onnx.version_converter")


def together(*values: Value) -> tuple[Value, ...]:
    """Broadcasts values of one dtype to one shape."""
    shape = np.broadcast_shapes(*(value.shape for value in values))
    return tuple(movement.spread(value, shape) for value in values)


def _divide(node: Node) -> Any:
    """Floats divide; integers drop the fraction."""
    _refuse_old_broadcast(node)
    a, b = together(node.x(0), node.x(1))
    return node.recorder.record("div", (a, b))


def _power(node: Node) -> Any:
    base, held = node.x(0), node.held[1]
    if isinstance(held, np.ndarray) and held.size == 1 and held.ndim <= base.ndim and base.type.dtype in FLOATS:
        return elementwise.power(base, float(held.reshape(-1)[0]))
    return elementwise.cast(elementwise.apply(np.power, (base, node.x(1))), base.type.dtype)


def _modulo(node: Node) -> Any:
    a, b = together(node.x(0), node.x(1))
    if not node.attribute("fmod", 0) or a.type.dtype in UNSIGNED:
        return elementwise.apply(np.remainder, (a, b))
    rest = elementwise.apply(np.remainder, (abs(a), abs(b)))
    return elementwise.select(a < 0, -rest, rest)


def _shift(node: Node) -> Any:
    """Shifts bits by powers of two: from a table, since no op shifts."""
    x, by = together(node.x(0), node.x(1))
    if x.type.dtype not in UNSIGNED:
        raise Unsupported("it shifts signed integers; topos would need an op that shifts")
    bits = x.dtype.itemsize * 8
    powers = constant.table(node.recorder, 2 ** np.arange(bits, dtype=np.uint64), x.type.dtype)
    far = by >= bits
    scale = lookup.gather(powers, elementwise.select(far, 0, elementwise.cast(by, "i64")), 0)
    shifted = x * scale if node.attribute("direction") == "LEFT" else node.recorder.record("div", (x, scale))
    return elementwise.select(far, 0, shifted)


def _mean(node: Node) -> Any:
    return _folded(np.add)(node) / len(node)


def _where(node: Node) -> Any:
    return elementwise.select(node.x(0), node.x(1), node.x(2))


def _clip(node: Node) -> Any:
    x = node.x()
    low, high = (
        node.attribute(name) if node.attribute(name) is not None else node.optional(at)
        for name, at in (("min", 1), ("max", 2))
    )
    return elementwise.clip(x, low, high)


def _cast(node: Node) -> Any:
    return cast_to(node.x(), int(node.attribute("to")))


def _cast_like(node: Node) -> Any:
    return elementwise.cast(node.x(), node.x(1).type.dtype)


def cast_to(x: Value, number: int) -> Any:
    """Casts to an ONNX element type."""
    dtype = DTYPES.get(number)
    if dtype is None:
        raise Unsupported(f"it casts to element type {number}, which topos does not have")
    return elementwise.cast(x, dtype)


def _is_infinite(node: Node) -> Any:
    x = node.x()
    up, down = node.attribute("detect_positive", 1), node.attribute("detect_negative", 1)
    if up and down:
        return elementwise.apply(np.isinf, (x,))
    return (
        x == (math.inf if up else -math.inf) if up or down else elementwise.apply(np.not_equal, (x * 0, x * 0)) & False
    )


def _tangent(x: Value) -> Any:
    return np.sin(x) / np.cos(x)


def _sinh(x: Value) -> Any:
    return (np.expm1(x) - np.expm1(-x)) / 2


def _cosh(x: Value) -> Any:
    return (np.exp(x) + np.exp(-x)) / 2


def _asinh(x: Value) -> Any:
    size = abs(x)
    return np.sign(x) * np.log1p(size + size * size / (1 + np.sqrt(size * size + 1)))


def _acosh(x: Value) -> Any:
    return np.log(x + np.sqrt(x * x - 1))


def _atanh(x: Value) -> Any:
    return np.log1p(2 * x / (1 - x)) / 2


def _identity(node: Node) -> Any:
    return node.x()


def _dropout(node: Node) -> Any:
    if node.trained_before_7:
        raise Unsupported(BEFORE_7)
    training = node.has(2) and bool(node.known(2, "training mode").reshape(-1)[0])
    if training and not (node.has(1) and float(node.known(1, "ratio").reshape(-1)[0]) == 0.0):
        raise Unsupported("it drops at random while training; topos records a mask as an input")
    x = node.x()
    if not node.wants(1):
        return x
    kept = "bool" if node.opset >= 10 else x.type.dtype
    return x, elementwise.cast(constant.splat(x.recorder, True, "bool", x.shape), kept)


OPERATORS: Final[Mapping[str, Translate]] = {
    "Add": _binary(np.add), "Sub": _binary(np.subtract), "Mul": _binary(np.multiply), "Div": _divide, "Pow": _power,
    "Mod": _modulo, "Max": _folded(np.maximum), "Min": _folded(np.minimum), "Sum": _folded(np.add), "Mean": _mean,
    "And": _binary(np.logical_and), "Or": _binary(np.logical_or), "Xor": _binary(np.logical_xor),
    "Equal": _binary(np.equal), "Less": _binary(np.less), "Greater": _binary(np.greater),
    "LessOrEqual": _binary(np.less_equal), "GreaterOrEqual": _binary(np.greater_equal),
    "BitwiseAnd": _binary(np.bitwise_and), "BitwiseOr": _binary(np.bitwise_or), "BitwiseXor": _binary(np.bitwise_xor),
    "BitwiseNot": _unary(np.invert), "BitShift": _shift, "Not": _unary(np.logical_not),
    "Abs": _unary(abs), "Neg": _unary(lambda x: -x), "Exp": _unary(np.exp), "Log": _unary(np.log),
    "Sqrt": _unary(np.sqrt), "Tanh": _unary(np.tanh), "Sin": _unary(np.sin), "Cos": _unary(np.cos),
    "Floor": _unary(np.floor), "Ceil": _unary(np.ceil), "Round": _unary(np.rint), "Sign": _unary(np.sign),
    "Erf": _unary(erf), "Reciprocal": _unary(lambda x: 1 / x), "IsNaN": _unary(np.isnan), "IsInf": _is_infinite,
    "Tan": _unary(_tangent), "Sinh": _unary(_sinh), "Cosh": _unary(_cosh), "Asinh": _unary(_asinh),
    "Acosh": _unary(_acosh), "Atanh": _unary(_atanh), "Where": _where, "Clip": _clip, "Cast": _cast,
    "CastLike": _cast_like, "Identity": _identity, "Dropout": _dropout,
}  # fmt: skip
