"""Sources: input, parameter, constant, iota. Inputs and parameters are bound by whoever runs the tape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from topos_core.cost.work import Work
from topos_core.ops.definition import OpDefinition, TypeMismatch
from topos_core.tape.type import TensorType, numpy_dtype


def _declared(types: Sequence[TensorType], attributes: Mapping[str, Any]) -> TensorType:
    return attributes["type"]  # type: ignore[no-any-return]


def _infer_constant(types: Sequence[TensorType], attributes: Mapping[str, Any]) -> TensorType:
    value, declared = attributes["value"], attributes["type"]
    if not isinstance(value, np.generic | np.ndarray):
        raise TypeMismatch(f"constant: {value!r} is a {type(value).__name__}; give a NumPy scalar or array")
    if isinstance(value, np.ndarray) and value.shape != declared.shape:
        raise TypeMismatch(
            f"constant: a table of shape {list(value.shape)} cannot be {declared}; give a scalar or a full table"
        )
    if value.dtype != numpy_dtype(declared.dtype):
        raise TypeMismatch(f"constant: a value of dtype {value.dtype} cannot be {declared}; convert the value first")
    return declared  # type: ignore[no-any-return]


def _infer_iota(types: Sequence[TensorType], attributes: Mapping[str, Any]) -> TensorType:
    declared: TensorType = attributes["type"]
    if not 0 <= attributes["axis"] < len(declared.shape):
        raise TypeMismatch(f"iota: {declared} has no axis {attributes['axis']}; count along one of its axes")
    if declared.dtype == "bool":
        raise TypeMismatch(f"iota: {declared} cannot count; use an integer or float dtype")
    return declared


def _evaluate_bound(arrays: Sequence[np.ndarray], attributes: Mapping[str, Any], result: TensorType) -> np.ndarray:
    raise TypeError("inputs and parameters are bound by the run, not evaluated")


def _evaluate_constant(arrays: Sequence[np.ndarray], attributes: Mapping[str, Any], result: TensorType) -> np.ndarray:
    """A splat has stride 0: no memory, and NumPy's ufuncs then take the loop that they take for a scalar."""
    value = attributes["value"]
    return value if isinstance(value, np.ndarray) else np.broadcast_to(value, result.shape)


def _evaluate_iota(arrays: Sequence[np.ndarray], attributes: Mapping[str, Any], result: TensorType) -> np.ndarray:
    axis = attributes["axis"]
    extent = result.shape[axis]
    # counted in i64 and cast: arange wraps or refuses where the dtype is narrower than the extent
    column = (
        np.arange(extent)
        .astype(numpy_dtype(result.dtype))
        .reshape([extent if k == axis else 1 for k in range(len(result.shape))])
    )
    return np.broadcast_to(column, result.shape)


def _nothing(types: Sequence[TensorType], attributes: Mapping[str, Any], result: TensorType) -> Work:
    return Work()


def _write(types: Sequence[TensorType], attributes: Mapping[str, Any], result: TensorType) -> Work:
    return Work(bytes_written=result.bytes)


DEFINITIONS: Final = (
    OpDefinition("input", "source", 0, _declared, _evaluate_bound, _nothing, ("type",)),
    OpDefinition("parameter", "source", 0, _declared, _evaluate_bound, _nothing, ("type",)),
    OpDefinition("constant", "source", 0, _infer_constant, _evaluate_constant, _nothing, ("value", "type")),
    OpDefinition("iota", "source", 0, _infer_iota, _evaluate_iota, _write, ("type", "axis")),
)
