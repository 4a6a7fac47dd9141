"""Random tapes of float ops for laws about keys, built without the recorder."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from topos_core.ops.catalog import definition
from topos_core.tape.op import Op
from topos_core.tape.span import Location
from topos_core.tape.tape import Observation, Structure, Tape
from topos_core.tape.type import TensorType, numpy_dtype

SPECIAL = (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 2.0, -3.0)


class Ops:
    """Appends ops whose types the catalogue infers."""

    def __init__(self, dtype: str = "f64") -> None:
        self.dtype = dtype
        self.ops: list[Op] = []
        self.inputs: list[int] = []

    def shape(self, value: int) -> tuple[int, ...]:
        return self.ops[value].type.shape

    def input(self, *shape: int) -> int:
        self.inputs.append(self.op("input", (), type=TensorType(self.dtype, shape)))
        return self.inputs[-1]

    def op(self, name: str, operands: tuple[int, ...], **attributes: Any) -> int:
        types = [self.ops[o].type for o in operands]
        self.ops.append(Op(name, operands, attributes, definition(name).infer(types, attributes), 0))
        return len(self.ops) - 1

    def number(self, number: float, shape: tuple[int, ...]) -> int:
        value = numpy_dtype(self.dtype).type(number)
        return self.op("constant", (), value=value, type=TensorType(self.dtype, shape))

    def binary(self, name: str, a: int, b: int | float) -> int:
        """Applies an elementwise op with NumPy's broadcasting."""
        if not isinstance(b, int):
            b = self.number(b, self.shape(a))
        shape = np.broadcast_shapes(self.shape(a), self.shape(b))
        a, b = (v if self.shape(v) == shape else self.op("broadcast", (v,), shape=shape) for v in (a, b))
        return self.op(name, (a, b))

    def reduce(self, name: str, x: int, axes: tuple[int, ...], keep: bool) -> int:
        axes = tuple(sorted(axes))
        extra = {"accumulate": self.dtype} if name == "sum" else {}
        y = self.op(name, (x,), axes=axes, **extra)
        shape = self.shape(x)
        return self.reshape(y, tuple(1 if k in axes else e for k, e in enumerate(shape))) if keep else y

    def reshape(self, x: int, shape: tuple[int, ...]) -> int:
        return self.op("reshape", (x,), shape=shape)

    def permute(self, x: int, order: tuple[int, ...]) -> int:
        return self.op("permute", (x,), order=order)

    def slice(self, x: int, axis: int, start: int, stop: int) -> int:
        shape = self.shape(x)
        starts = tuple(start if k == axis else 0 for k in range(len(shape)))
        stops = tuple(stop if k == axis else e for k, e in enumerate(shape))
        return self.op("slice", (x,), start=starts, stop=stops, step=(1,) * len(shape))

    def matmul(self, a: int, b: int) -> int:
        return self.op("matmul", (a, b), accumulate=self.dtype)

    def tape(self, *results: int) -> Tape:
        observations = tuple(Observation(value, "output", None, 0) for value in results)
        return Tape(
            tuple(self.ops), tuple(self.inputs), (), tuple(results), Structure("leaf", index=0), {}, observations,
            (Location(()),), {},
        )  # fmt: skip


def evaluated(tape: Tape, feeds: dict[int, np.ndarray]) -> list[np.ndarray]:
    """Computes every value with the catalogue's NumPy."""
    arrays: list[np.ndarray] = []
    for value, op in enumerate(tape.ops):
        operands = [arrays[o] for o in op.operands]
        arrays.append(
            feeds[value] if op.name == "input" else definition(op.name).evaluate(operands, op.attributes, op.type)
        )
    return arrays


def random_tape(seed: int) -> Tape:
    r = random.Random(seed)
    t = Ops()
    values = [t.input(3, 4, 4), t.input(3, 4, 4), t.input(4)]
    for _ in range(r.randint(10, 45)):
        a, b = (r.choice(values[-6:] + values[:3]) for _ in range(2))
        try:
            values.append(_step(t, r, a, b))
        except (ValueError, IndexError, _Unfit):
            continue
    return t.tape(*values[-3:])


class _Unfit(Exception):
    pass


def _step(t: Ops, r: random.Random, a: int, b: int) -> int:
    shape, rank = t.shape(a), len(t.shape(a))
    k = r.randrange(21)
    if k <= 5:
        return t.binary(["add", "add", "sub", "mul", "mul", "div"][k], a, b)
    if k == 6:
        return t.op(r.choice(["exp", "tanh", "sqrt", "rsqrt", "abs", "neg"]), (a,))
    if k == 7:
        return t.binary("pow", a, r.choice([2.0, -1.0, 0.5, -0.5, 3.0, -2.0, 1.5]))
    if k == 8:
        name, number = r.choice(
            [("mul", 2.0), ("add", 1.0), ("div", 4.0), ("mul", -0.5), ("add", 0.0), ("mul", 0.0), ("sub", 3.0)]
        )
        return t.binary(name, a, number)
    if k == 9:
        return t.op(r.choice(["sub", "div"]), (t.number(2.0, shape), a))
    if k == 10 and rank == 3:
        return t.permute(a, r.choice([(0, 2, 1), (1, 0, 2), (2, 1, 0)]))
    if k == 11 and rank == 3:
        return t.reshape(a, r.choice([(shape[0] * shape[1], shape[2]), (shape[0], shape[1] * shape[2]), (1, *shape)]))
    if k == 11 and rank == 2:
        return t.reshape(a, (shape[0] * shape[1],))
    if k == 12 and rank:
        return t.reduce("sum", a, (r.randrange(rank),), r.random() < 0.7)
    if k == 13 and rank:
        return t.reduce(r.choice(["max", "min"]), a, (r.randrange(rank),), r.random() < 0.7)
    if k == 14 and rank:
        axes = tuple(r.sample(range(rank), min(2, rank)))
        total = t.reduce("sum", a, axes, r.random() < 0.7)
        return t.binary("div", total, float(np.prod([shape[i] for i in axes])))
    if k == 15 and rank and shape[-1] == 4:
        start = r.randrange(2)
        return t.slice(a, rank - 1, start, start + r.choice([1, 2]))
    if k == 16:
        return t.binary("maximum", a, b)
    if k == 17 and rank == 3 and len(t.shape(b)) == 3 and shape[-1] == t.shape(b)[-1] and shape[0] == t.shape(b)[0]:
        return t.matmul(a, t.permute(b, (0, 2, 1)))
    if k == 18 and rank and t.shape(b) == shape:
        return t.op("concat", (a, b), axis=r.randrange(rank))
    if k == 19 and rank:
        axis = r.randrange(rank)
        half = shape[axis] // 2
        start = r.choice([0, half])
        return t.slice(a, axis, start, start + half) if half else a
    if k == 20 and rank:
        return t.op("logsumexp", (a,), axes=(r.randrange(rank),))
    raise _Unfit
