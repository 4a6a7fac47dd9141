"""Arithmetic, comparison, logic and casts. Operands have one dtype; a scalar literal may stand beside an array."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from topos_core import nn
from topos_core.importers.jax_jaxpr.equation import Equation, Translate, Unsupported, number_of
from topos_core.recording import elementwise, movement
from topos_core.recording.elementary import erf, rsqrt
from topos_core.recording.value import Value
from topos_core.tape.type import FLOATS, INTEGERS, UNSIGNED, dtype_name


def _unary(function: Callable[[Any], Any]) -> Translate:
    return lambda equation: function(equation.x)


def _binary(ufunc: np.ufunc) -> Translate:
    return lambda equation: elementwise.apply(ufunc, equation.operands)


def _spread(equation: Equation) -> tuple[Value, ...]:
    return tuple(movement.spread(each, equation.result.shape) for each in equation.operands)


def _largest(equation: Equation) -> Value:
    """JAX starts its maxima at -inf; the maximum of that and x is x, NaN and signed zeros included."""
    for at in (0, 1):
        number = equation.literals[at]
        other = equation.operands[1 - at]
        if number is not None and np.ndim(number) == 0 and other.type == equation.result:
            worst = -math.inf if equation.name == "max" else math.inf
            if other.type.dtype in FLOATS and float(number) == worst:
                return other
    return elementwise.apply(np.maximum if equation.name == "max" else np.minimum, equation.operands)


def _divide(equation: Equation) -> Value:
    return equation.recorder.record("div", _spread(equation))


def _remainder(equation: Equation) -> Value:
    """The sign is the dividend's, as in C."""
    a, b = _spread(equation)
    if a.type.dtype in UNSIGNED:
        return elementwise.apply(np.remainder, (a, b))
    if a.type.dtype in INTEGERS:  # without absolute values, which the lowest number has not
        floored = elementwise.apply(np.remainder, (a, b))
        apart = elementwise.apply(np.not_equal, (floored < 0, a < 0))
        moves = elementwise.apply(np.logical_and, (floored != 0, apart))
        return elementwise.select(moves, floored - b, floored)
    rest = elementwise.apply(np.remainder, (abs(a), abs(b)))
    return elementwise.select(a < 0, -rest, rest)


def _power(equation: Equation) -> Value:
    base, exponent = equation.operands
    if exponent.type.dtype != base.type.dtype:
        exponent = elementwise.cast(exponent, base.type.dtype)
    number = equation.literals[1]
    if number is not None and np.ndim(number) == 0 and base.type.dtype in FLOATS:
        return elementwise.power(base, float(number))
    return elementwise.apply(np.power, (base, exponent))


def _integer_power(equation: Equation) -> Value:
    x, exponent = equation.x, int(equation.params["y"])
    if exponent == 3:
        return x * x * x
    return elementwise.power(x, exponent)


def _choice(equation: Equation) -> Value:
    which, *cases = equation.operands
    if which.type.dtype != "bool" or len(cases) != 2:
        raise Unsupported("it chooses among more than two values")
    known = number_of(which)
    if known is not None:
        return movement.spread(cases[int(known)], equation.result.shape)
    return elementwise.select(which, cases[1], cases[0])


def _cast(equation: Equation) -> Value:
    dtype = dtype_name(np.dtype(equation.params["new_dtype"]))
    if dtype is None:
        raise Unsupported(f"it casts to {equation.params['new_dtype']}, which topos does not have")
    return elementwise.cast(equation.x, dtype)


def _clamp(equation: Equation) -> Value:
    low, x, high = equation.operands
    return elementwise.apply(np.minimum, (elementwise.apply(np.maximum, (x, low)), high))


def _round(equation: Equation) -> Value:
    x = equation.x
    if int(equation.params["rounding_method"]) == 1:
        return elementwise.apply(np.rint, (x,))
    return np.sign(x) * np.floor(abs(x) + 0.5)  # type: ignore[return-value]


def _tangent(x: Value) -> Any:
    return np.sin(x) / np.cos(x)


def _asinh(x: Value) -> Any:
    size = abs(x)
    return np.sign(x) * np.log1p(size + size * size / (1 + np.sqrt(size * size + 1)))


def _cube_root(x: Value) -> Any:
    return np.sign(x) * abs(x) ** (1 / 3)


def _same(equation: Equation) -> list[Value]:
    return list(equation.operands)


def _not(x: Value) -> Any:
    return elementwise.apply(np.logical_not if x.type.dtype == "bool" else np.invert, (x,))


PRIMITIVES: Final[Mapping[str, Translate]] = {
    "add": _binary(np.add), "add_any": _binary(np.add), "sub": _binary(np.subtract), "mul": _binary(np.multiply),
    "div": _divide, "rem": _remainder, "pow": _power, "integer_pow": _integer_power, "max": _largest, "min": _largest,
    "neg": _unary(lambda x: -x), "abs": _unary(abs), "sign": _unary(np.sign), "exp": _unary(np.exp),
    "exp2": _unary(np.exp2), "log": _unary(np.log), "log1p": _unary(np.log1p), "expm1": _unary(np.expm1),
    "sqrt": _unary(np.sqrt), "rsqrt": _unary(rsqrt), "tanh": _unary(np.tanh), "logistic": _unary(nn.sigmoid),
    "sin": _unary(np.sin), "cos": _unary(np.cos), "tan": _unary(_tangent), "asinh": _unary(_asinh),
    "sinh": _unary(lambda x: (np.expm1(x) - np.expm1(-x)) / 2), "cosh": _unary(lambda x: (np.exp(x) + np.exp(-x)) / 2),
    "acosh": _unary(lambda x: np.log(x + np.sqrt(x * x - 1))), "atanh": _unary(lambda x: np.log1p(2 * x / (1 - x)) / 2),
    "erf": _unary(erf), "erfc": _unary(lambda x: 1 - erf(x)), "square": _unary(lambda x: x * x), "cbrt": _unary(_cube_root),
    "floor": _unary(np.floor), "ceil": _unary(np.ceil), "round": _round, "is_finite": _unary(np.isfinite),
    "and": _binary(np.bitwise_and), "or": _binary(np.bitwise_or), "xor": _binary(np.bitwise_xor), "not": _unary(_not),
    "eq": _binary(np.equal), "ne": _binary(np.not_equal), "lt": _binary(np.less), "le": _binary(np.less_equal),
    "gt": _binary(np.greater), "ge": _binary(np.greater_equal), "select_n": _choice, "convert_element_type": _cast,
    "clamp": _clamp, "stop_gradient": _same, "copy": _same, "copy_p": _same, "optimization_barrier": _same,
    "sharding_constraint": _same, "name": _same, "pvary": _same,
}  # fmt: skip
