"""Expressions: a connected group of ops as steps over one index space, and the formula that runs them.

The space is the shape of the group's exit without its axes of extent 1. A binding has some of its axes and repeats along
the others; the steps after a reduction that stand before its result is repeated have the axes that are kept.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from topos_core.cost.work import Work
from topos_core.matching.facts import Layout
from topos_core.matching.match import Match
from topos_core.ops.cast import cast_array
from topos_core.ops.catalog import definition
from topos_core.recording.recorder import Recorder
from topos_core.recording.value import Value
from topos_core.tape.tape import Tape
from topos_core.tape.type import FLOATS, TensorType, dtype_name, numpy_dtype

REDUCTIONS: Final = ("sum", "prod", "max", "min")
TRANSCENDENTAL: Final = frozenset(("exp", "expm1", "log", "log1p", "tanh", "erf", "sin", "cos", "pow"))

Number = float | int | bool


@dataclass(frozen=True, slots=True)
class Step:
    """One op of an expression.

    Args:
        op: Its name.
        operands: Names of bindings (`x0`), constants (`c0`) and earlier steps (`s0`).
        dtype: Of its result.
        detail: The kind of a comparison, the dtype in which a sum or product accumulates; else empty.
        kept: Whether it has the axes that a reduction keeps, rather than all; a reduction has.
    """

    op: str
    operands: tuple[str, ...]
    dtype: str
    detail: str = ""
    kept: bool = False


@dataclass(frozen=True, slots=True)
class ExpressionFacts:
    """A group of elementwise ops with at most one reduction among them.

    Args:
        extents: Of the space; none of them is 1. With a reduction, of its operand.
        layouts: Per binding: the roles of its axes are axes of the space, by number.
        dtypes: Of bindings and constants.
        constants: Numbers, the same at every position.
        steps: In an order in which they can run.
        results: Names of steps by what they produce: `root`, and named results.
        reduced: Axes of the space that the reduction takes away.
    """

    extents: tuple[int, ...]
    layouts: Mapping[str, Layout]
    dtypes: Mapping[str, str]
    constants: Mapping[str, Number]
    steps: tuple[Step, ...]
    results: Mapping[str, str]
    reduced: tuple[int, ...] = ()

    @property
    def kept_extents(self) -> tuple[int, ...]:
        """Gives the space's extents with 1 in place of the reduced ones."""
        return tuple(1 if axis in self.reduced else extent for axis, extent in enumerate(self.extents))

    def size(self, *, kept: bool = False) -> int:
        """Counts the positions of the space, or of what a reduction keeps of it."""
        return math.prod(self.kept_extents if kept else self.extents)

    def dtype_of(self, name: str) -> str:
        """Gives the dtype of a binding, a constant or a step."""
        return self.steps[int(name[1:])].dtype if name[0] == "s" else self.dtypes[name]


def evaluated(facts: ExpressionFacts, arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Runs an expression on the arrays (or recorded values) that its match binds, each op as it was recorded.

    Arrays of a wider float dtype than the recorded one make everything that wide: a reference for rounding.
    """
    given = next((array for array in arrays.values() if isinstance(array, Value)), None)
    runner: Any = _Computing(facts, arrays) if given is None else _Recording(facts, given.recorder)
    known = {name: runner.binding(name, arrays[name]) for name in facts.layouts}
    known |= {name: runner.constant(name) for name in facts.constants}
    for number, step in enumerate(facts.steps):
        shape = facts.extents if not step.kept or step.op in REDUCTIONS else facts.kept_extents
        operands = [runner.spread(known[name], shape) for name in step.operands]
        known[f"s{number}"] = runner.reduce(step, *operands) if step.op in REDUCTIONS else runner.apply(step, operands)
    return {name: known[step] for name, step in facts.results.items()}


def attributes_of(step: Step) -> dict[str, Any]:
    """Gives the recorded attributes of an elementwise step."""
    match step.op:
        case "compare":
            return {"kind": step.detail}
        case "cast":
            return {"dtype": step.dtype}
    return {}


def _placed(facts: ExpressionFacts, name: str) -> tuple[list[int], list[int]]:
    """Gives the order of a binding's axes in the space, and its shape there with 1 where it repeats."""
    layout = facts.layouts[name]
    axes = [int(role) for role in layout.roles]
    order = sorted(range(len(axes)), key=axes.__getitem__)
    shape = [1] * len(facts.extents)
    for axis, extent in zip(axes, layout.shape, strict=True):
        shape[axis] = extent
    return order, shape


@dataclass(slots=True)
class _Computing:
    """Runs steps with NumPy."""

    facts: ExpressionFacts
    arrays: Mapping[str, np.ndarray]
    wide: np.dtype | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        for name, array in self.arrays.items():
            if self.facts.dtypes[name] in FLOATS and array.dtype != numpy_dtype(self.facts.dtypes[name]):
                self.wide = array.dtype

    def dtype(self, name: str) -> np.dtype:
        return self.wide if self.wide is not None and name in FLOATS else numpy_dtype(name)

    def binding(self, name: str, array: np.ndarray) -> np.ndarray:
        order, shape = _placed(self.facts, name)
        return array.reshape(self.facts.layouts[name].shape).transpose(order).reshape(shape)

    def constant(self, name: str) -> np.ndarray:
        return np.asarray(self.facts.constants[name]).astype(self.dtype(self.facts.dtypes[name]))

    def spread(self, array: np.ndarray, shape: Sequence[int]) -> np.ndarray:
        return np.broadcast_to(array, shape)

    def apply(self, step: Step, operands: Sequence[np.ndarray]) -> np.ndarray:
        if self.wide is not None:
            return self._apply_wide(step, operands)
        result = TensorType(step.dtype, operands[0].shape)
        return definition(step.op).evaluate(operands, attributes_of(step), result)

    def _apply_wide(self, step: Step, operands: Sequence[np.ndarray]) -> np.ndarray:
        dtype = self.dtype(step.dtype)
        match step.op:
            case "cast":
                floating = dtype.kind == "f"
                return operands[0].astype(dtype) if floating else cast_array(operands[0].astype(np.float64), dtype)
            case "maximum" | "minimum" | "sign":
                return np.asarray(getattr(np, step.op)(*operands))
            case "erf":  # it has no longer form than f64
                result = TensorType("f64", operands[0].shape)
                return definition("erf").evaluate([operands[0].astype(np.float64)], {}, result).astype(dtype)
        return definition(step.op).evaluate(operands, attributes_of(step), TensorType(step.dtype, operands[0].shape))

    def reduce(self, step: Step, operand: np.ndarray) -> np.ndarray:
        if self.wide is not None and step.op in ("max", "min"):
            return np.asarray(getattr(operand, step.op)(axis=self.facts.reduced, keepdims=True))
        if self.wide is not None:
            function = np.add if step.op == "sum" else np.multiply
            running = self.dtype(step.detail)
            return np.asarray(function.reduce(operand, axis=self.facts.reduced, dtype=running, keepdims=True))
        attributes = {"axes": self.facts.reduced, "accumulate": step.detail}
        kept = tuple(extent for axis, extent in enumerate(self.facts.extents) if axis not in self.facts.reduced)
        found = definition(step.op).evaluate([operand], attributes, TensorType(step.dtype, kept))
        return found.reshape(self.facts.kept_extents)


@dataclass(slots=True)
class _Recording:
    """Records steps."""

    facts: ExpressionFacts
    recorder: Recorder

    def binding(self, name: str, array: Value) -> Value:
        order, shape = _placed(self.facts, name)
        return self._shaped(self._permuted(self._shaped(array, self.facts.layouts[name].shape), order), tuple(shape))

    def constant(self, name: str) -> Value:
        dtype = self.facts.dtypes[name]
        value = np.asarray(self.facts.constants[name]).astype(numpy_dtype(dtype))[()]
        return self.recorder.record("constant", (), {"value": value, "type": TensorType(dtype, ())})

    def spread(self, value: Value, shape: Sequence[int]) -> Value:
        if value.type.shape == tuple(shape):
            return value
        return self.recorder.record("broadcast", (value,), {"shape": tuple(shape)})

    def apply(self, step: Step, operands: Sequence[Value]) -> Value:
        return self.recorder.record(step.op, tuple(operands), attributes_of(step))

    def reduce(self, step: Step, operand: Value) -> Value:
        attributes: dict[str, Any] = {"axes": self.facts.reduced}
        if step.op in ("sum", "prod"):
            attributes["accumulate"] = step.detail
        return self._shaped(self.recorder.record(step.op, (operand,), attributes), self.facts.kept_extents)

    def _shaped(self, value: Value, shape: tuple[int, ...]) -> Value:
        return value if value.type.shape == shape else self.recorder.record("reshape", (value,), {"shape": shape})

    def _permuted(self, value: Value, order: Sequence[int]) -> Value:
        if list(order) == list(range(len(order))):
            return value
        return self.recorder.record("permute", (value,), {"order": tuple(order)})


def number_of(value: np.generic) -> Number:
    """Gives a NumPy scalar as the Python number that it is."""
    kind = dtype_name(value.dtype)
    if kind == "bool":
        return bool(value)
    return float(value) if kind in FLOATS else int(value)


def work_of(tape: Tape, match: Match) -> Work:
    """Counts an expression run in one piece: every op at every position, every binding once, every result."""
    facts: ExpressionFacts = match.facts
    flops = transcendentals = 0
    for step in facts.steps:
        size = facts.size(kept=step.kept and step.op not in REDUCTIONS)
        if step.op in TRANSCENDENTAL:
            transcendentals += size
        else:
            flops += size
    read = sum(tape.type_of(value).bytes for value in set(match.bindings.values()))
    return Work(flops, transcendentals, read, sum(tape.type_of(value).bytes for value in match.produced))
