"""The same program in float64: what rounding in the recorded dtypes is measured against."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np

from topos_core.tape.op import Op
from topos_core.tape.tape import Tape
from topos_core.tape.type import TensorType, dtype_name

NARROW: Final = ("f16", "bf16", "f32")


def widened(tape: Tape) -> Tape:
    """Gives a tape of the same ops whose floats are all f64; integers and bools stay what they are.

    Casts between floats lose their meaning, which is what makes it a reference for rounding, not for the recorded bits.
    """
    ops = tuple(
        Op(
            op.name,
            op.operands,
            {name: _wide(value) for name, value in op.attributes.items()},
            _wide(op.type),
            op.location,
        )
        for op in tape.ops
    )
    return replace(tape, ops=ops, defaults={value: widen_array(array) for value, array in tape.defaults.items()})


def widen_array(array: np.ndarray) -> np.ndarray:
    """Converts a narrow float array to f64."""
    return array.astype(np.float64) if dtype_name(array.dtype) in NARROW else array


def _wide(value: Any) -> Any:
    match value:
        case TensorType(dtype, shape):
            return TensorType("f64", shape) if dtype in NARROW else value
        case str():
            return "f64" if value in NARROW else value
        case np.ndarray():
            return widen_array(value)
        case np.generic():
            return np.float64(value) if dtype_name(value.dtype) in NARROW else value
        case Mapping():
            return {name: _wide(inner) for name, inner in value.items()}
        case tuple():
            return tuple(_wide(inner) for inner in value)
        case _:
            return value
