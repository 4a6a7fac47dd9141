"""Movement. `unfold` has no StableHLO op: short windows become slices side by side, long ones a gather."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from topos_core.emission.builder import Builder, Ssa
from topos_core.emission.lower.lowering import Lower
from topos_core.emission.syntax import signature
from topos_core.tape.op import Op
from topos_core.tape.type import TensorType

SIDE_BY_SIDE: Final = 16
"""The largest window that is written as slices: compilers fuse slices, but a line a tap must stay readable."""


def _reshape(builder: Builder, op: Op, operands: Sequence[Ssa]) -> Ssa:
    return builder.reshape(operands[0], op.type.shape)


def _broadcast(builder: Builder, op: Op, operands: Sequence[Ssa]) -> Ssa:
    lead = len(op.type.shape) - len(operands[0].shape)
    return builder.broadcast(operands[0], op.type.shape, range(lead, len(op.type.shape)))


def _permute(builder: Builder, op: Op, operands: Sequence[Ssa]) -> Ssa:
    return builder.transpose(operands[0], op.attributes["order"])


def _pad(builder: Builder, op: Op, operands: Sequence[Ssa]) -> Ssa:
    attributes = op.attributes
    return builder.pad(operands[0], attributes["fill"], attributes["low"], attributes["high"], attributes["interior"])


def _slice(builder: Builder, op: Op, operands: Sequence[Ssa]) -> Ssa:
    start, stop, step = (op.attributes[key] for key in ("start", "stop", "step"))
    return _cut(builder, operands[0], list(zip(start, stop, step, strict=True)), "")


def _cut(builder: Builder, x: Ssa, bounds: Sequence[tuple[int, int, int]], word: str) -> Ssa:
    shape = tuple(-((start - stop) // step) for start, stop, step in bounds)
    text = ", ".join(f"{start}:{stop}:{step}" for start, stop, step in bounds)
    kind = TensorType(x.dtype, shape)
    return builder.define(f"stablehlo.slice {x.name} [{text}]", kind, signature([x.type], kind), word)


def _reverse(builder: Builder, op: Op, operands: Sequence[Ssa]) -> Ssa:
    return builder.reverse(operands[0], op.attributes["axes"])


def _concat(builder: Builder, op: Op, operands: Sequence[Ssa]) -> Ssa:
    return builder.call("concatenate", operands, op.type, f"dim = {op.attributes['axis']}")


def _unfold(builder: Builder, op: Op, operands: Sequence[Ssa]) -> Ssa:
    (x,) = operands
    axis, size, step, dilation = (op.attributes[key] for key in ("axis", "size", "step", "dilation"))
    count, rank = op.type.shape[axis], len(x.shape)
    if size > SIDE_BY_SIDE:
        where = TensorType("i64", (count, size))
        first = builder.same(
            "multiply", builder.iota(where, 0, "position"), builder.constant(step, where, "step"), word="first"
        )
        tap = builder.same(
            "multiply", builder.iota(where, 1, "tap"), builder.constant(dilation, where, "dilation"), word="reach"
        )
        rows = builder.gather(x, builder.same("add", first, tap, word="index"), axis, "rows")
        return builder.transpose(rows, [k for k in range(rank + 1) if k != axis + 1] + [axis + 1])
    taps = []
    for k in range(size):
        bounds = [(0, extent, 1) for extent in x.shape]
        bounds[axis] = (k * dilation, k * dilation + (count - 1) * step + 1, step)
        cut = _cut(builder, x, bounds, f"cut{k}")
        taps.append(builder.reshape(cut, (*cut.shape, 1), f"tap{k}"))
    return builder.call("concatenate", taps, op.type, f"dim = {rank}")


def _strided(builder: Builder, op: Op, operands: Sequence[Ssa]) -> Ssa:
    """Reads the flat operand at `offset + sum(position * stride)`, counted in the module, so that no table is written."""
    (x,) = operands
    shape, strides = op.attributes["shape"], op.attributes["strides"]
    where = TensorType("i64", shape)
    index = builder.constant(op.attributes["offset"], where, "offset")
    for axis, stride in enumerate(strides):
        if shape[axis] > 1 and stride:
            along = builder.same(
                "multiply",
                builder.iota(where, axis, f"at{axis}"),
                builder.constant(stride, where, f"stride{axis}"),
                word=f"move{axis}",
            )
            index = builder.same("add", index, along, word=f"index{axis}")
    return builder.gather(builder.reshape(x, (x.type.size,), "flat"), index, 0)


LOWERINGS: Final[Mapping[str, Lower]] = {
    "reshape": _reshape,
    "broadcast": _broadcast,
    "permute": _permute,
    "pad": _pad,
    "slice": _slice,
    "reverse": _reverse,
    "concat": _concat,
    "unfold": _unfold,
    "strided": _strided,
}
