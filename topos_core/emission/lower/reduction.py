"""Reductions: from the reducer's identity, in the dtype of the running value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from topos_core.emission.builder import Builder, Ssa, identity
from topos_core.emission.lower.lowering import Lower
from topos_core.emission.syntax import signature, tensor
from topos_core.tape.op import Op
from topos_core.tape.type import FLOATS, TensorType, numpy_dtype


def _accumulated(reducer: str) -> Lower:
    def lower(builder: Builder, op: Op, operands: Sequence[Ssa]) -> Ssa:
        running: str = op.attributes["accumulate"]
        wide = builder.convert(operands[0], running, "wide")
        word = "" if running == op.type.dtype else "running"
        return builder.convert(builder.reduce(wide, reducer, op.attributes["axes"], word), op.type.dtype)

    return lower


def _extreme(reducer: str) -> Lower:
    def lower(builder: Builder, op: Op, operands: Sequence[Ssa]) -> Ssa:
        (x,) = operands
        return builder.reduce(x, reducer, op.attributes["axes"])

    return lower


def _logsumexp(builder: Builder, op: Op, operands: Sequence[Ssa]) -> Ssa:
    """log(sum(exp(x - m))) + m with m the maximum, or 0 where that is infinite or NaN; f16 and bf16 run in f32."""
    axes, dtype = op.attributes["axes"], operands[0].dtype
    x = builder.convert(operands[0], "f32", "wide") if numpy_dtype(dtype).itemsize == 2 else operands[0]
    top = builder.reduce(x, "maximum", axes, "top")
    finite = builder.call("is_finite", [top], TensorType("bool", top.shape), word="finite")
    shift = builder.select(finite, top, builder.constant(0, top.type, "zero"), "shift")
    kept = [axis for axis in range(len(x.shape)) if axis not in axes]
    around = builder.same("subtract", x, builder.broadcast(shift, x.shape, kept, "shifts"), word="around")
    total = builder.reduce(builder.same("exponential", around, word="powers"), "add", axes, "total")
    narrow = x.dtype != dtype
    result = builder.same("add", builder.same("log", total, word="log"), shift, word="sum" if narrow else "")
    return builder.convert(result, dtype)


def _argmax(builder: Builder, op: Op, operands: Sequence[Ssa]) -> Ssa:
    """Reduces (value, index) pairs: the greater value wins, NaN over all, then the lower index.

    The seed is the lowest value at the highest index, so that any element ties with it and wins.
    """
    (x,) = operands
    axis = op.attributes["axis"]
    index = builder.iota(TensorType("i64", x.shape), axis, "index")
    scalar, place = TensorType(x.dtype, ()), TensorType("i64", ())
    lowest = builder.constant(identity("maximum", x.dtype), scalar, "lowest")
    last = builder.constant(2**63 - 1, place, "last")
    value, name = builder.fresh("value"), builder.fresh("")
    left, right = Ssa(builder.fresh("left"), scalar), Ssa(builder.fresh("right"), scalar)
    left_at, right_at = Ssa(builder.fresh("left_at"), place), Ssa(builder.fresh("right_at"), place)
    arguments = ", ".join(f"{item.name}: {tensor(item.type)}" for item in (left, left_at, right, right_at))
    builder.line(
        f'{value}, {name} = "stablehlo.reduce"({x.name}, {index.name}, {lowest.name}, {last.name}) ({{', place=False
    )
    builder.line(f"^bb0({arguments}):", place=False)
    wins, ties = builder.compare("GT", left, right, "wins"), builder.compare("EQ", left, right, "ties")
    if x.dtype in FLOATS:
        left_nan, right_nan = (
            builder.compare("NE", left, left, "left_nan"),
            builder.compare("NE", right, right, "right_nan"),
        )
        only_left = builder.same(
            "and", left_nan, builder.same("not", right_nan, word="right_number"), word="only_left_nan"
        )
        wins = builder.same("or", wins, only_left, word="wins_or_nan")
        ties = builder.same("or", ties, builder.same("and", left_nan, right_nan, word="both_nan"), word="ties_or_nan")
    earlier = builder.compare("LT", left_at, right_at, "earlier")
    takes = builder.same("or", wins, builder.same("and", ties, earlier, word="first"), word="takes")
    best = builder.select(takes, left, right, "best")
    best_at = builder.select(takes, left_at, right_at, "best_at")
    builder.line(f"stablehlo.return {best.name}, {best_at.name} : {tensor(scalar)}, {tensor(place)}")
    values = TensorType(x.dtype, op.type.shape)
    types = signature([x.type, index.type, scalar, place], op.type).rpartition(" -> ")[0]
    builder.line(f"}}) {{dimensions = array<i64: {axis}>}} : {types} -> ({tensor(values)}, {tensor(op.type)})")
    return Ssa(name, op.type)


def _cumsum(builder: Builder, op: Op, operands: Sequence[Ssa]) -> Ssa:
    """Sums the window of every element and all before it: the axis is padded in front by its extent less one."""
    x, axis, running = operands[0], op.attributes["axis"], op.attributes["accumulate"]
    if x.type.size == 0:
        return x
    wide = builder.convert(x, running, "wide")
    extent, rank = x.shape[axis], len(x.shape)
    sizes = [extent if k == axis else 1 for k in range(rank)]
    padding = [(extent - 1, 0) if k == axis else (0, 0) for k in range(rank)]
    word = "" if running == x.dtype else "running"
    total = builder.reduce_window(wide, "add", x.shape, sizes, [1] * rank, padding=padding, word=word)
    return builder.convert(total, x.dtype)


LOWERINGS: Final[Mapping[str, Lower]] = {
    "sum": _accumulated("add"),
    "prod": _accumulated("multiply"),
    "max": _extreme("maximum"),
    "min": _extreme("minimum"),
    "argmax": _argmax,
    "logsumexp": _logsumexp,
    "cumsum": _cumsum,
}
