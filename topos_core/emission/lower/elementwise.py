"""Elementwise ops; the numeric rules of `topos_core.ops.elementwise` written out where StableHLO leaves them open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from topos_core.emission.builder import Builder, Ssa
from topos_core.emission.lower.lowering import Lower
from topos_core.ops.erf import formula
from topos_core.tape.op import Op
from topos_core.tape.type import FLOATS, INTEGERS, UNSIGNED, numpy_dtype


def write_erf(builder: Builder, x: Ssa, word: str = "erf") -> Ssa:
    """Writes out the formula of `topos_core.ops.erf`; f16 and bf16 are computed in f32 and rounded once."""
    if numpy_dtype(x.dtype).itemsize == 2:
        return builder.convert(write_erf(builder, builder.convert(x, "f32", "wide")), x.dtype, word)
    rule = formula(x.dtype)

    def splat(value: float, word: str) -> Ssa:
        return builder.constant(value, x.type, word)

    def horner(coefficients: Sequence[float], t: Ssa, word: str) -> Ssa:
        value = splat(coefficients[0], f"{word}_c0")
        for k, coefficient in enumerate(coefficients[1:], 1):
            product = builder.same("multiply", value, t, word=f"{word}_m{k}")
            value = builder.same("add", product, splat(coefficient, f"{word}_c{k}"), word=f"{word}_a{k}")
        return value

    square = builder.same("multiply", x, x, word="square")
    series = builder.same("multiply", x, horner(rule.small, square, "small"), word="series")
    near = builder.same("add", x, series, word="near")
    magnitude = builder.same("abs", x, word="magnitude")
    capped = builder.same("minimum", magnitude, splat(rule.saturated, "saturated"), word="capped")
    tail = builder.same("exponential", horner(rule.large, capped, "large"), word="tail")
    upper = builder.same("subtract", splat(1.0, "one"), tail, word="upper")
    negative = builder.compare("LT", x, splat(0.0, "zero"), "negative")
    far = builder.select(negative, builder.same("negate", upper, word="lower"), upper, "far")
    small = builder.compare("LE", magnitude, splat(rule.edge, "edge"), "is_small")
    return builder.select(small, near, far, word)


def _named(name: str, *, bools: str | None = None) -> Lower:
    """An op that StableHLO has under a name of its own; `bools` is the name for bools where that differs."""

    def lower(builder: Builder, op: Op, operands: Sequence[Ssa]) -> Ssa:
        return builder.same(bools if bools is not None and op.type.dtype == "bool" else name, *operands)

    return lower


def _erf(builder: Builder, op: Op, operands: Sequence[Ssa]) -> Ssa:
    return write_erf(builder, operands[0], "")


def _rsqrt(builder: Builder, op: Op, operands: Sequence[Ssa]) -> Ssa:
    """Computes f16 and bf16 in f32 and rounds once."""
    (x,) = operands
    if numpy_dtype(x.dtype).itemsize != 2:
        return builder.same("rsqrt", x)
    return builder.convert(builder.same("rsqrt", builder.convert(x, "f32", "wide"), word="root"), x.dtype)


def _abs(builder: Builder, op: Op, operands: Sequence[Ssa]) -> Ssa:
    return operands[0] if op.type.dtype in UNSIGNED else builder.same("abs", *operands)


def _sign(builder: Builder, op: Op, operands: Sequence[Ssa]) -> Ssa:
    (x,) = operands
    if op.type.dtype in UNSIGNED:
        return builder.same("minimum", x, builder.constant(1, x.type, "one"))
    return builder.same("sign", x)


def _remainder(builder: Builder, op: Op, operands: Sequence[Ssa]) -> Ssa:
    """Moves StableHLO's remainder, which has the dividend's sign, to the divisor's; a zero takes that sign as well."""
    a, b = operands
    if op.type.dtype in UNSIGNED:
        return builder.same("remainder", a, b)
    zero = builder.constant(0, a.type, "zero")
    rest = builder.same("remainder", a, b, word="rest")
    below = builder.compare("LT", b, zero, "divisor_below")
    apart = builder.compare("NE", builder.compare("LT", rest, zero, "rest_below"), below, "signs_differ")
    moves = builder.same("and", builder.compare("NE", rest, zero, "inexact"), apart, word="moves")
    moved = builder.same("add", rest, b, word="moved")
    if op.type.dtype in INTEGERS:
        return builder.select(moves, moved, rest)
    nothing = builder.select(below, builder.constant(-0.0, a.type, "negative_zero"), zero, "nothing")
    nonzero = builder.select(moves, moved, rest, "nonzero")
    return builder.select(builder.compare("EQ", rest, zero, "exact"), nothing, nonzero)


def _compare(builder: Builder, op: Op, operands: Sequence[Ssa]) -> Ssa:
    a, b = operands
    return builder.compare(op.attributes["kind"].upper(), a, b)


def _select(builder: Builder, op: Op, operands: Sequence[Ssa]) -> Ssa:
    condition, a, b = operands
    return builder.select(condition, a, b)


def _cast(builder: Builder, op: Op, operands: Sequence[Ssa]) -> Ssa:
    """Saturates floats out of an integer's range and gives 0 for NaN; StableHLO leaves both to the implementation."""
    (x,) = operands
    target: str = op.type.dtype
    if x.dtype == target:
        return x
    if target == "bool":
        return builder.compare("NE", x, builder.constant(0, x.type, "zero"))
    if x.dtype not in FLOATS or target not in INTEGERS:
        return builder.convert(x, target)
    wide = builder.convert(x, "f32", "wide") if numpy_dtype(x.dtype).itemsize == 2 else x
    limits = np.iinfo(numpy_dtype(target))
    beyond = 2.0 ** (limits.bits - (limits.kind == "i"))
    below = builder.compare("LE", wide, builder.constant(float(limits.min), wide.type, "lowest"), "below")
    above = builder.compare("GE", wide, builder.constant(beyond, wide.type, "beyond"), "above")
    unordered = builder.compare("NE", wide, wide, "unordered")
    outside = builder.same("or", builder.same("or", below, above, word="out_of_range"), unordered, word="outside")
    inside = builder.select(outside, builder.constant(0, wide.type, "zero"), wide, "inside")
    plain = builder.convert(inside, target, "plain")
    capped = builder.select(above, builder.constant(limits.max, op.type, "highest"), plain, "capped")
    return builder.select(below, builder.constant(limits.min, op.type, "floor"), capped)


LOWERINGS: Final[Mapping[str, Lower]] = {
    "neg": _named("negate"),
    "abs": _abs,
    "exp": _named("exponential"),
    "expm1": _named("exponential_minus_one"),
    "log": _named("log"),
    "log1p": _named("log_plus_one"),
    "sqrt": _named("sqrt"),
    "rsqrt": _rsqrt,
    "tanh": _named("tanh"),
    "erf": _erf,
    "sin": _named("sine"),
    "cos": _named("cosine"),
    "floor": _named("floor"),
    "ceil": _named("ceil"),
    "round": _named("round_nearest_even"),
    "sign": _sign,
    "logical_not": _named("not"),
    "add": _named("add", bools="or"),
    "sub": _named("subtract"),
    "mul": _named("multiply", bools="and"),
    "div": _named("divide"),
    "pow": _named("power"),
    "maximum": _named("maximum", bools="or"),
    "minimum": _named("minimum", bools="and"),
    "remainder": _remainder,
    "compare": _compare,
    "and": _named("and"),
    "or": _named("or"),
    "xor": _named("xor"),
    "select": _select,
    "cast": _cast,
}
