"""Arithmetic, comparison, selection and activations, element by element."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from topos_core import nn
from topos_core.importers.torch_export.call import Call, NoFormula, Table
from topos_core.recording import constant, elementwise, formulas, movement
from topos_core.recording.elementary import erf, rsqrt
from topos_core.recording.value import Value
from topos_core.tape.type import FLOATS, INTEGERS


def half_as_single(formula: Callable[..., Any]) -> Callable[..., Any]:
    """Computes f16 and bf16 in f32 and rounds once, as torch's kernels do."""

    def widened(call: Call, x: Value, *rest: Any) -> Any:
        if x.type.dtype not in ("f16", "bf16"):
            return formula(call, x, *rest)
        wide = [
            elementwise.cast(e, "f32") if isinstance(e, Value) and e.type.dtype in ("f16", "bf16") else e for e in rest
        ]
        return call.cast(formula(call, elementwise.cast(x, "f32"), *wide))

    return widened


def _unary(function: Callable[[Any], Any]) -> Callable[..., Any]:
    def formula(call: Call, x: Value, *rest: Any) -> Any:
        return function(call.cast(x))

    return formula


def _activation(function: Callable[..., Any]) -> Callable[..., Any]:
    def formula(call: Call, x: Value, *rest: Any) -> Any:
        return function(x, *rest)

    return half_as_single(formula)


def _binary(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """Computes in the result's dtype, to which torch promotes both operands."""

    def formula(call: Call, a: Any, b: Any, *rest: Any) -> Any:
        return function(*_both(call, a, b))

    return formula


def _both(call: Call, a: Any, b: Any) -> tuple[Any, Any]:
    a, b = call.cast(a), call.cast(b)
    if not isinstance(a, Value) and not isinstance(b, Value):
        a = call.value(a)
    return _number(call, a), _number(call, b)


def _number(call: Call, x: Any) -> Any:
    """Brings a Python number into the result's kind: `int_tensor * 2.0` was promoted before."""
    if isinstance(x, bool) or not isinstance(x, (int, float)):
        return x
    if call.dtype in FLOATS:
        return float(x)
    return int(x) if call.dtype in INTEGERS else x


def _scaled(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """`a + alpha * b` and `a - alpha * b`."""

    def formula(call: Call, a: Any, b: Any, alpha: Any = 1) -> Any:
        a, b = _both(call, a, b)
        return function(a, b if alpha == 1 else b * _number(call, alpha))

    return formula


def _rsub(call: Call, x: Any, other: Any, alpha: Any = 1) -> Any:
    x, other = _both(call, x, other)
    return other - (x if alpha == 1 else x * _number(call, alpha))


def _divide(call: Call, a: Any, b: Any, rounding: Any = None) -> Any:
    a, b = _both(call, a, b)
    if rounding is None:
        return a / b
    if rounding == "floor":
        return a // b
    if call.dtype in FLOATS:
        return np.trunc(a / b)
    if isinstance(a, Value) and isinstance(b, int) and b:
        return elementwise.select(a < 0, -((-a) // b), a // b)
    raise NoFormula("an integer division that drops the fraction")


def _compare(ufunc: np.ufunc) -> Callable[..., Any]:
    def formula(call: Call, a: Any, b: Any) -> Any:
        a, b = _common(a, b)
        return elementwise.apply(ufunc, (a, b))

    return formula


def _common(a: Any, b: Any) -> tuple[Any, Any]:
    """Promotes operands of a comparison: floats win over integers, a scalar tensor does not widen within its kind."""
    if not (isinstance(a, Value) and isinstance(b, Value)):
        value, number = (a, b) if isinstance(a, Value) else (b, a)
        if isinstance(value, Value) and isinstance(number, float) and value.type.dtype not in FLOATS:
            value = elementwise.cast(value, "f32")
        if isinstance(value, Value) and value.type.dtype == "bool" and not isinstance(number, bool):
            value = elementwise.cast(value, "i64")
        return (value, b) if isinstance(a, Value) else (a, value)
    first, second = a.type, b.type
    if first.dtype == second.dtype:
        return a, b
    floats = [each for each in (first, second) if each.dtype in FLOATS]
    if len(floats) == 1:
        wide = floats[0].dtype
    elif bool(first.shape) != bool(second.shape):
        wide = (first if first.shape else second).dtype
        wide = wide if wide != "bool" else (second if first.shape else first).dtype
    else:
        wide = elementwise.common(a.recorder, (a, b))
    return elementwise.cast(a, wide), elementwise.cast(b, wide)


def _logical(ufunc: np.ufunc) -> Callable[..., Any]:
    def formula(call: Call, a: Any, b: Any) -> Any:
        masks = [formulas.nonzero(x) if isinstance(x, Value) else bool(x) for x in (a, b)]
        return elementwise.apply(ufunc, (masks[0], masks[1]))

    return formula


def _bitwise(ufunc: np.ufunc) -> Callable[..., Any]:
    def formula(call: Call, a: Any, b: Any) -> Any:
        a, b = call.cast(a), call.cast(b)
        if call.dtype == "bool":
            a, b = (bool(x) if isinstance(x, int) else x for x in (a, b))
        return elementwise.apply(ufunc, (a, b))

    return formula


def _where(call: Call, mask: Value, a: Any, b: Any) -> Any:
    return elementwise.select(mask, call.value(a), call.value(b))


def _masked_fill(call: Call, x: Value, mask: Value, fill: Any) -> Any:
    return elementwise.select(mask, call.value(fill), x)


def _clamp(call: Call, x: Any, low: Any = None, high: Any = None) -> Any:
    x = call.cast(x)
    if low is not None:
        x = np.maximum(x, _number(call, call.cast(low)))
    if high is not None:
        x = np.minimum(x, _number(call, call.cast(high)))
    return x


def _clamp_low(call: Call, x: Value, low: Any) -> Any:
    return _clamp(call, x, low, None)


def _clamp_high(call: Call, x: Value, high: Any) -> Any:
    return _clamp(call, x, None, high)


def _power(call: Call, base: Any, exponent: Any) -> Any:
    base, exponent = call.cast(base), call.cast(exponent)
    if not isinstance(exponent, Value) and call.dtype in FLOATS:
        exponent = int(exponent) if float(exponent).is_integer() else float(exponent)
        if exponent == 3:
            return base * base * base
        if exponent == -0.5:
            return rsqrt(base)
    return base**exponent


def _hardtanh(call: Call, x: Value, low: Any = -1, high: Any = 1) -> Any:
    if (low, high) == (0, 6):
        return nn.relu6(x)
    return np.minimum(np.maximum(x, low), high)


def _hardswish(call: Call, x: Value) -> Any:
    return nn.hardswish(x)


def _hardsigmoid(call: Call, x: Value) -> Any:
    return nn.relu6(x + 3) / 6


def _gelu(call: Call, x: Value, approximate: str = "none") -> Any:
    return nn.gelu(x, approximate)


def _softplus(call: Call, x: Value, beta: Any = 1, threshold: Any = 20) -> Any:
    if beta == 1:
        return nn.softplus(x)
    return nn.softplus(x * float(beta)) / float(beta)


def _elu(call: Call, x: Value, alpha: Any = 1, scale: Any = 1, input_scale: Any = 1) -> Any:
    if input_scale != 1:
        raise NoFormula(f"elu with input_scale={input_scale}")
    y = nn.elu(x, float(alpha))
    return y if scale == 1 else y * float(scale)


def _selu(call: Call, x: Value) -> Any:
    return nn.elu(x, 1.6732632423543772) * 1.0507009873554805


def _celu(call: Call, x: Value, alpha: Any = 1) -> Any:
    return np.maximum(x, 0) + np.minimum(float(alpha) * np.expm1(x / float(alpha)), 0)


def _mish(call: Call, x: Value) -> Any:
    return x * np.tanh(nn.softplus(x))


def _prelu(call: Call, x: Value, weight: Value) -> Any:
    slope = weight.reshape(1, -1, *(1,) * (x.ndim - 2)) if weight.size > 1 else weight.reshape(())
    return np.where(x > 0, x, x * slope)


def _log_sigmoid(call: Call, x: Value) -> Any:
    return -nn.softplus(-x)


def _glu(call: Call, x: Value, dim: int = -1) -> Any:
    first, second = np.split(x, 2, axis=dim)
    return first * nn.sigmoid(second)


def _threshold(call: Call, x: Value, threshold: Any, value: Any) -> Any:
    return np.where(x > threshold, x, call.value(value))


def _addc(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def formula(call: Call, x: Value, a: Value, b: Value, value: Any = 1) -> Any:
        product = function(call.cast(a), call.cast(b))
        return call.cast(x) + (product if value == 1 else product * _number(call, value))

    return formula


def _lerp(call: Call, start: Value, end: Value, weight: Any) -> Any:
    return start + (end - start) * weight


def _dropout(call: Call, x: Value, p: float, train: bool) -> Any:
    if train and p > 0:
        raise NoFormula("a random mask")
    return x


def _round(call: Call, x: Value, decimals: int = 0) -> Any:
    return elementwise.round_to(x, decimals)


def _not(call: Call, x: Value) -> Any:
    return formulas.invert(x)


def _fill(call: Call, x: Value, value: Any) -> Any:
    if isinstance(value, Value):
        return movement.spread(call.cast(value), call.shape)
    return constant.splat(call.recorder, value, call.dtype, call.shape)


def _zero(call: Call, x: Value) -> Any:
    return constant.splat(call.recorder, 0, call.dtype, call.shape)


def _copy(call: Call, x: Value, source: Any, *rest: Any) -> Any:
    return call.cast(source)


def _nan_to_num(call: Call, x: Any, nan: Any = None, high: Any = None, low: Any = None) -> Any:
    limits = np.finfo(x.dtype)
    x = np.where(x == math.inf, float(limits.max) if high is None else high, x)
    x = np.where(x == -math.inf, float(limits.min) if low is None else low, x)
    return np.where(x != x, 0.0 if nan is None else nan, x)


TABLE: Final[Table] = {
    "relu": _unary(nn.relu), "relu6": _unary(nn.relu6), "abs": _unary(np.abs), "neg": _unary(np.negative),
    "negative": _unary(np.negative), "exp": _unary(np.exp), "expm1": _unary(np.expm1), "log": _unary(np.log),
    "log1p": _unary(np.log1p), "log2": _unary(np.log2), "log10": _unary(np.log10), "exp2": _unary(np.exp2),
    "sqrt": _unary(np.sqrt), "rsqrt": _unary(rsqrt), "sin": _unary(np.sin), "cos": _unary(np.cos),
    "tanh": _unary(np.tanh), "erf": _unary(erf), "special_erf": _unary(erf), "floor": _unary(np.floor),
    "ceil": _unary(np.ceil), "trunc": _unary(np.trunc), "fix": _unary(np.trunc), "sign": _unary(np.sign),
    "reciprocal": _unary(np.reciprocal), "square": _unary(np.square), "deg2rad": _unary(np.radians),
    "logical_not": lambda call, x: formulas.logical_not(formulas.nonzero(x)), "bitwise_not": _not,
    "isnan": lambda call, x: formulas.isnan(x), "isinf": lambda call, x: formulas.isinf(x),
    "isfinite": lambda call, x: formulas.isfinite(x), "round": _round, "nan_to_num": _nan_to_num,
    "sigmoid": _activation(nn.sigmoid), "special_expit": _activation(nn.sigmoid), "silu": _activation(nn.silu),
    "leaky_relu": _activation(nn.leaky_relu), "gelu": half_as_single(_gelu), "hardtanh": _hardtanh,
    "hardswish": half_as_single(_hardswish), "hardsigmoid": half_as_single(_hardsigmoid),
    "softplus": half_as_single(_softplus), "elu": half_as_single(_elu), "selu": half_as_single(_selu),
    "celu": half_as_single(_celu), "mish": half_as_single(_mish), "prelu": _prelu, "glu": half_as_single(_glu),
    "log_sigmoid": half_as_single(_log_sigmoid), "threshold": _threshold,
    "add": _scaled(lambda a, b: a + b), "sub": _scaled(lambda a, b: a - b), "rsub": _rsub,
    "subtract": _scaled(lambda a, b: a - b), "mul": _binary(lambda a, b: a * b), "multiply": _binary(lambda a, b: a * b),
    "div": _divide, "divide": _divide, "true_divide": _divide, "floor_divide": _binary(lambda a, b: a // b),
    "remainder": _binary(lambda a, b: a % b), "maximum": _binary(np.maximum), "minimum": _binary(np.minimum),
    "pow": _power, "eq": _compare(np.equal), "ne": _compare(np.not_equal), "not_equal": _compare(np.not_equal),
    "lt": _compare(np.less), "le": _compare(np.less_equal), "gt": _compare(np.greater), "ge": _compare(np.greater_equal),
    "logical_and": _logical(np.logical_and), "logical_or": _logical(np.logical_or), "logical_xor": _logical(np.logical_xor),
    "bitwise_and": _bitwise(np.bitwise_and), "bitwise_or": _bitwise(np.bitwise_or), "bitwise_xor": _bitwise(np.bitwise_xor),
    "__and__": _bitwise(np.bitwise_and), "__or__": _bitwise(np.bitwise_or), "__xor__": _bitwise(np.bitwise_xor),
    "where": _where, "masked_fill": _masked_fill, "clamp": _clamp, "clip": _clamp, "clamp_min": _clamp_low,
    "clamp_max": _clamp_high, "addcmul": _addc(lambda a, b: a * b), "addcdiv": _addc(lambda a, b: a / b), "lerp": _lerp,
    "dropout": _dropout, "feature_dropout": _dropout, "alpha_dropout": _dropout, "feature_alpha_dropout": _dropout,
    "fill": _fill, "zero": _zero, "copy": _copy,
}  # fmt: skip
