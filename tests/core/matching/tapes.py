"""Tapes built by hand."""

from __future__ import annotations

from typing import Any

from topos_core.tape.op import Op
from topos_core.tape.span import Location
from topos_core.tape.tape import Observation, Structure, Tape
from topos_core.tape.type import TensorType


class Builder:
    """Appends ops to a tape; types of movement ops are inferred here, independently of the product."""

    def __init__(self) -> None:
        self.ops: list[Op] = []
        self.inputs: list[int] = []

    def input(self, dtype: str, shape: tuple[int, ...]) -> int:
        self.inputs.append(self._append("input", (), {"type": TensorType(dtype, shape)}, dtype, shape))
        return self.inputs[-1]

    def constant(self, value: Any, dtype: str, shape: tuple[int, ...]) -> int:
        return self._append("constant", (), {"value": value, "type": TensorType(dtype, shape)}, dtype, shape)

    def op(self, name: str, operands: list[int], **attributes: Any) -> int:
        first = self.ops[operands[0]].type
        shape = _shape(name, [self.ops[o].type.shape for o in operands], attributes)
        return self._append(name, tuple(operands), attributes, first.dtype, shape)

    def tape(self, *results: int) -> Tape:
        leaf = Structure("leaf", index=0)
        observations = tuple(Observation(value, "output", None, 0) for value in results)
        return Tape(
            tuple(self.ops), tuple(self.inputs), (), tuple(results), leaf, {}, observations, (Location(()),), {}
        )

    def _append(self, name: str, operands: tuple[int, ...], attributes: Any, dtype: str, shape: Any) -> int:
        self.ops.append(Op(name, operands, attributes, TensorType(dtype, tuple(int(e) for e in shape)), 0))
        return len(self.ops) - 1


def _shape(name: str, shapes: list[tuple[int, ...]], a: Any) -> tuple[int, ...]:
    x = shapes[0]
    if name in ("reshape", "broadcast", "strided"):
        return tuple(a["shape"])
    if name == "mul":
        return x
    if name == "sum":
        return tuple(extent for axis, extent in enumerate(x) if axis not in a["axes"])
    if name == "matmul":
        return (*x[:-1], shapes[1][-1])
    if name == "permute":
        return tuple(x[k] for k in a["order"])
    if name == "pad":
        return tuple(
            lo + (e - 1) * (q + 1) + 1 + h for e, lo, h, q in zip(x, a["low"], a["high"], a["interior"], strict=True)
        )
    if name == "slice":
        return tuple(len(range(s, t, p)) for s, t, p in zip(a["start"], a["stop"], a["step"], strict=True))
    if name == "concat":
        axis = a["axis"]
        return (*x[:axis], sum(s[axis] for s in shapes), *x[axis + 1 :])
    if name == "unfold":
        axis = a["axis"]
        count = (x[axis] - a["dilation"] * (a["size"] - 1) - 1) // a["step"] + 1
        return (*x[:axis], count, *x[axis + 1 :], a["size"])
    if name == "gather":
        return (*x[: a["axis"]], *shapes[1], *x[a["axis"] + 1 :])
    assert name == "reverse", name
    return x
