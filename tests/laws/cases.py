"""Op applications for the laws: every op, dtype by dtype, on ordinary, special, empty and strided operands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from topos_core.ops.catalog import definition
from topos_core.ops.definition import OpDefinition
from topos_core.tape.op import Op
from topos_core.tape.span import Location
from topos_core.tape.tape import Observation, Structure, Tape
from topos_core.tape.type import INTEGERS, SIGNED, TensorType, dtype_name, numpy_dtype

COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")


class Case(NamedTuple):
    """One op applied to arrays."""

    op: str
    operands: tuple[np.ndarray, ...]
    attributes: Mapping[str, Any]

    @property
    def types(self) -> list[TensorType]:
        return [TensorType(dtype_name(x.dtype) or "", x.shape) for x in self.operands]

    @property
    def definition(self) -> OpDefinition:
        return definition(self.op)

    @property
    def type(self) -> TensorType:
        return self.definition.infer(self.types, self.attributes)

    def __str__(self) -> str:
        attributes = " ".join(f"{key}={value}" for key, value in self.attributes.items())
        return f"{self.op}({', '.join(map(str, self.types))}) {attributes}"


def tape_of(cases: list[Case]) -> Tape:
    """Puts cases side by side on one tape; operands are its inputs, case by case."""
    ops: list[Op] = []
    results = []
    for case in cases:
        operands = []
        for kind in case.types:
            ops.append(Op("input", (), {"type": kind}, kind, 0))
            operands.append(len(ops) - 1)
        ops.append(Op(case.op, tuple(operands), case.attributes, case.type, 0))
        results.append(len(ops) - 1)
    leaves = tuple(Structure("leaf", index=k) for k in range(len(results)))
    inputs = tuple(value for value, op in enumerate(ops) if op.name == "input")
    observations = tuple(Observation(value, "output", None, 0) for value in results)
    return Tape(
        tuple(ops), inputs, (), tuple(results), Structure("tuple", leaves), {}, observations, (Location(()),), {}
    )


def numbers(dtype: str, shape: tuple[int, ...], seed: int, *, low: float = -3.0, high: float = 3.0) -> np.ndarray:
    """Ordinary numbers: uniform floats, small integers, coin flips."""
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return np.asarray(rng.integers(0, 2, shape).astype(bool))
    if dtype in INTEGERS:
        first = max(int(low), 0) if dtype not in SIGNED else int(low)
        return np.asarray(rng.integers(first, int(high) + 1, shape).astype(numpy_dtype(dtype)))
    return np.asarray(rng.uniform(low, high, shape).astype(numpy_dtype(dtype)))


def specials(dtype: str, *, subnormals: bool = True) -> np.ndarray:
    """Subnormals, zeros of both signs, ones, halves, infinities, NaN, the extremes; for integers both ends of the range."""
    if dtype == "bool":
        return np.array([False, True])
    if dtype in INTEGERS:
        limits = np.iinfo(numpy_dtype(dtype))
        ends = {limits.min, limits.min + 1, 0, 1, 2, limits.max - 1, limits.max}
        return np.array(sorted(ends), numpy_dtype(dtype))
    largest = float(np.finfo(numpy_dtype(dtype)).max) if dtype != "bf16" else 3.38953139e38
    subnormal = {"f16": 2.0**-20, "bf16": 2.0**-130, "f32": 2.0**-140, "f64": 2.0**-1050}[dtype]
    tiny = [subnormal, -subnormal] if subnormals else []
    values = [
        *tiny,
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        -0.5,
        1.5,
        2.5,
        -2.5,
        7.25,
        np.inf,
        -np.inf,
        np.nan,
        largest,
        -largest,
        1e-3,
    ]
    return np.array(values).astype(numpy_dtype(dtype))


def pairs(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Every ordered pair of values."""
    return np.repeat(values, len(values)), np.tile(values, len(values))
