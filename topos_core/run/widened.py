"""The same program in float64, what rounding in the recorded dtypes is measured against, and in float32."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np

from topos_core.tape.op import Op
from topos_core.tape.tape import Tape
from topos_core.tape.type import TensorType, dtype_name, numpy_dtype

NARROW: Final = ("f16", "bf16", "f32")


def widened(tape: Tape) -> Tape:
    """Gives a tape of the same ops whose floats are all f64; integers and bools stay what they are.

    Casts between floats lose their meaning, which is what makes it a reference for rounding, not for the recorded bits.
    """
    return _recast(tape, NARROW, "f64")


def narrowed(tape: Tape) -> Tape:
    """Gives a tape of the same ops whose f64 are f32: how much the program amplifies rounding."""
    return _recast(tape, ("f64",), "f32")


def widen_array(array: np.ndarray) -> np.ndarray:
    """Converts a narrow float array to f64."""
    return array.astype(np.float64) if dtype_name(array.dtype) in NARROW else array


def narrow_array(array: np.ndarray) -> np.ndarray:
    """Converts an f64 array to f32; what lies outside of its range becomes infinite."""
    with np.errstate(over="ignore"):
        return array.astype(np.float32) if array.dtype == np.float64 else array


def _recast(tape: Tape, away: tuple[str, ...], to: str) -> Tape:
    ops = tuple(
        Op(
            op.name,
            op.operands,
            {name: _cast(value, away, to) for name, value in op.attributes.items()},
            _cast(op.type, away, to),
            op.location,
        )
        for op in tape.ops
    )
    defaults = {value: _cast(array, away, to) for value, array in tape.defaults.items()}
    return replace(tape, ops=ops, defaults=defaults)


def _cast(value: Any, away: tuple[str, ...], to: str) -> Any:
    match value:
        case TensorType(dtype, shape):
            return TensorType(to, shape) if dtype in away else value
        case str():
            return to if value in away else value
        case np.ndarray() | np.generic():
            if dtype_name(value.dtype) not in away:
                return value
            with np.errstate(over="ignore"):
                return value.astype(numpy_dtype(to))
        case Mapping():
            return {name: _cast(inner, away, to) for name, inner in value.items()}
        case tuple():
            return tuple(_cast(inner, away, to) for inner in value)
        case _:
            return value
