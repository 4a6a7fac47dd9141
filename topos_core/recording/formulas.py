"""Ufuncs that are no ops: each spelled as the ordinary ops that a person would write.

`//` of floats follows NumPy's own algorithm, `(a - a % b) / b` rounded, because `floor(a / b)` is off by one where the
quotient rounds up (`1 // 0.1` is 9). Where the divisor is an infinity of the other sign the result is NaN, NumPy's is -1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

import numpy as np

from topos_core.recording import constant, contraction, elementwise
from topos_core.recording.promotion import is_weak, loop_of
from topos_core.recording.recorder import recorder_of
from topos_core.recording.value import Value
from topos_core.tape.type import FLOATS, INTEGERS


def fresh(x: Any) -> Value:
    """Gives another handle of the same value: what a copy is to a NumPy array."""
    value = x if isinstance(x, Value) else constant.lift(recorder_of(x), x)
    return Value(value.recorder, value.index, value.type)


def nonzero(x: Any) -> Value:
    """Gives `x != 0` as a bool value; a bool value is its own answer."""
    if isinstance(x, Value) and x.type.dtype == "bool":
        return x
    return elementwise.apply(np.not_equal, (x, 0))


def square(x: Any) -> Value:
    """Multiplies by itself."""
    return elementwise.apply(np.multiply, (x, x))


def reciprocal(x: Any) -> Value:
    """Divides 1 by it; integers drop the fraction, as in NumPy."""
    if isinstance(x, Value) and x.type.dtype in INTEGERS:
        return x.recorder.record("div", (constant.splat(x.recorder, 1, x.type.dtype, x.type.shape), x))
    return elementwise.apply(np.divide, (1, x))


def floor_divide(a: Any, b: Any) -> Value:
    """Divides and rounds down."""
    recorder = recorder_of(a, b)
    a, b = constant.operand(recorder, a), constant.operand(recorder, b)
    rest = elementwise.apply(np.remainder, (a, b))
    dtype, shape = rest.type
    left, right = (constant.lift_as(recorder, x, dtype, shape) for x in (a, b))
    quotient = recorder.record("div", (recorder.record("sub", (left, rest)), right))
    if dtype in INTEGERS:
        return quotient
    whole = recorder.record("round", (quotient,))
    if np.ndim(b) == 0 and not isinstance(b, Value) and b != 0:
        return whole
    return elementwise.select(right == 0, left / right, whole)


def _logical(name: str) -> Callable[[Any, Any], Value]:
    def formula(a: Any, b: Any) -> Value:
        recorder = recorder_of(a, b)
        masks = [nonzero(x) if isinstance(x, Value) else np.not_equal(constant.operand(recorder, x), 0) for x in (a, b)]
        return _same_shape(name, masks[0], masks[1], "bool")

    return formula


def _bitwise(name: str, ufunc: np.ufunc) -> Callable[[Any, Any], Value]:
    def formula(a: Any, b: Any) -> Value:
        return elementwise.direct(name, ufunc, (a, b))

    return formula


def _same_shape(name: str, a: Any, b: Any, dtype: str) -> Value:
    recorder = recorder_of(a, b)
    shape = np.broadcast_shapes(np.shape(a), np.shape(b))
    return recorder.record(name, tuple(constant.lift_as(recorder, x, dtype, shape) for x in (a, b)))


def logical_not(x: Any) -> Value:
    """Gives `x == 0`."""
    if x.type.dtype == "bool":
        return x.recorder.record("logical_not", (x,))  # type: ignore[no-any-return]
    return elementwise.apply(np.equal, (x, 0))


def invert(x: Any) -> Value:
    """Flips every bit of an integer, or the truth of a bool."""
    if x.type.dtype == "bool":
        return x.recorder.record("logical_not", (x,))  # type: ignore[no-any-return]
    if x.type.dtype in FLOATS:
        raise x.recorder.error(f"~{x.type}: floats have no bits to flip; compare first, or use np.logical_not")
    ones = -1 if x.type.dtype.startswith("i") else int(np.iinfo(x.dtype).max)
    return elementwise.direct("xor", np.bitwise_xor, (x, ones))


def _shift(towards_high: bool) -> Callable[[Any, Any], Value]:
    def formula(x: Any, bits: Any) -> Value:
        recorder = recorder_of(x, bits)
        if not isinstance(bits, (int, np.integer)) or not 0 <= bits < 63:
            raise recorder.error(
                "a shift by anything but an integer from 0 to 62 is not recorded; write x * 2**n or x // 2**n"
            )
        factor = 1 << int(bits)
        return elementwise.apply(np.multiply, (x, factor)) if towards_high else floor_divide(x, factor)

    return formula


def isnan(x: Any) -> Value:
    """Gives `x != x`."""
    if x.type.dtype not in FLOATS:
        return constant.splat(x.recorder, False, "bool", x.type.shape)
    return elementwise.apply(np.not_equal, (x, x))


def isinf(x: Any) -> Value:
    """Gives `abs(x) == inf`."""
    if x.type.dtype not in FLOATS:
        return constant.splat(x.recorder, False, "bool", x.type.shape)
    return elementwise.apply(np.equal, (abs(x), math.inf))


def isfinite(x: Any) -> Value:
    """Gives `abs(x) < inf`."""
    if x.type.dtype not in FLOATS:
        return constant.splat(x.recorder, True, "bool", x.type.shape)
    return elementwise.apply(np.less, (abs(x), math.inf))


def _ignoring_nan(ufunc: np.ufunc) -> Callable[[Any, Any], Value]:
    def formula(a: Any, b: Any) -> Value:
        result = elementwise.apply(ufunc, (a, b))
        for x, other in ((a, b), (b, a)):
            if isinstance(x, Value) and x.type.dtype in FLOATS:
                result = elementwise.select(isnan(x), other, result)
            elif not isinstance(x, Value) and np.isnan(x).any():
                result = elementwise.select(np.isnan(x), other, result)
        return result

    return formula


def _scaled(ufunc: np.ufunc, outer: np.ufunc, factor: float) -> Callable[[Any], Value]:
    """`outer(ufunc(x), factor)` in the dtype that NumPy computes the original in."""

    def formula(x: Any) -> Value:
        return elementwise.apply(outer, (elementwise.apply(ufunc, (x,)), factor))

    return formula


def exp2(x: Any) -> Value:
    """Gives `2.0 ** x`."""
    return elementwise.apply(np.power, (2.0, _floating(x)))


def trunc(x: Any) -> Value:
    """Rounds towards 0."""
    if x.type.dtype not in FLOATS:
        return fresh(x)
    return elementwise.select(x < 0, np.ceil(x), np.floor(x))


def logaddexp(a: Any, b: Any) -> Value:
    """Gives log(exp(a) + exp(b)); equal infinities give themselves."""
    top = elementwise.apply(np.maximum, (a, b))
    apart = elementwise.apply(np.subtract, (a, b))
    spread = elementwise.apply(np.log1p, (np.exp(-abs(apart)),))
    return elementwise.select(elementwise.apply(np.equal, (a, b)), top + math.log(2.0), top + spread)


def degrees(x: Any) -> Value:
    """Turns radians into degrees."""
    return elementwise.apply(np.multiply, (_floating(x), 180.0 / math.pi))


def radians(x: Any) -> Value:
    """Turns degrees into radians."""
    return elementwise.apply(np.multiply, (_floating(x), math.pi / 180.0))


def expit(x: Any) -> Value:
    """Gives the logistic function 1 / (1 + exp(-x))."""
    return elementwise.apply(np.divide, (1.0, 1.0 + np.exp(-x)))


def xlogy(x: Any, y: Any) -> Value:
    """Gives x * log(y), and 0 where x is 0 and y is a number."""
    product = elementwise.apply(
        np.multiply, (x, elementwise.apply(np.log, (y,)) if isinstance(y, Value) else np.log(y))
    )
    mask = elementwise.apply(np.equal, (x, 0)) if isinstance(x, Value) else np.equal(x, 0)
    if isinstance(y, Value):
        mask = np.logical_and(mask, y == y)
    return elementwise.select(mask, 0.0, product)


def _floating(x: Any) -> Any:
    """Casts integers as NumPy's floating ufuncs do."""
    if isinstance(x, Value) and x.type.dtype not in FLOATS:
        return elementwise.cast(x, loop_of(np.exp, (x.type.dtype,))[0])
    return float(x) if is_weak(x) else x


def formula_of(ufunc: np.ufunc) -> Callable[..., Value] | None:
    """Gives the formula of one of NumPy's ufuncs."""
    return _formulas().get(ufunc)


@cache
def _formulas() -> Mapping[np.ufunc, Callable[..., Value]]:
    numpys: dict[np.ufunc, Callable[..., Value]] = {
        np.square: square, np.reciprocal: reciprocal, np.positive: fresh, np.conjugate: fresh,
        np.floor_divide: floor_divide, np.logical_and: _logical("and"), np.logical_or: _logical("or"),
        np.logical_xor: _logical("xor"), np.logical_not: logical_not, np.bitwise_and: _bitwise("and", np.bitwise_and),
        np.bitwise_or: _bitwise("or", np.bitwise_or), np.bitwise_xor: _bitwise("xor", np.bitwise_xor),
        np.invert: invert, np.left_shift: _shift(True), np.right_shift: _shift(False),
        np.isnan: isnan, np.isinf: isinf, np.isfinite: isfinite, np.fmax: _ignoring_nan(np.maximum),
        np.fmin: _ignoring_nan(np.minimum), np.exp2: exp2, np.trunc: trunc, np.logaddexp: logaddexp,
        np.log2: _scaled(np.log, np.divide, math.log(2.0)), np.log10: _scaled(np.log, np.divide, math.log(10.0)),
        np.degrees: degrees, np.rad2deg: degrees, np.radians: radians, np.deg2rad: radians,
        np.matmul: contraction.matmul, np.vecdot: contraction.vecdot,
    }  # fmt: skip
    for name, formula in (("matvec", contraction.matvec), ("vecmat", contraction.vecmat)):  # NumPy 2.2 and later
        if hasattr(np, name):
            numpys[getattr(np, name)] = formula
    return numpys


FOREIGN: Final[Mapping[str, Callable[..., Value]]] = {"expit": expit, "xlogy": xlogy}
