"""Contraction: the batched matrix product, with the dtype of its running value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from topos_core.cost.work import Work
from topos_core.ops.blas_gate import BLAS
from topos_core.ops.cast import cast_array
from topos_core.ops.definition import OpDefinition, TypeMismatch
from topos_core.tape.type import FLOATS, INTEGERS, TensorType, numpy_dtype


def _infer_matmul(types: Sequence[TensorType], attributes: Mapping[str, Any]) -> TensorType:
    a, b = types
    if a.dtype != b.dtype:
        raise TypeMismatch(f"matmul: operand dtypes differ: {a} @ {b}; cast one of them")
    if a.dtype == "bool":
        raise TypeMismatch(f"matmul is not defined for {a}; cast the operands to an integer or float dtype")
    if attributes["accumulate"] not in (FLOATS if a.dtype in FLOATS else INTEGERS):
        raise TypeMismatch(
            f"matmul: {a} cannot accumulate in {attributes['accumulate']}; stay with floats or with integers"
        )
    if len(a.shape) < 2 or len(a.shape) != len(b.shape):
        raise TypeMismatch(f"matmul: ranks differ or are below 2: {a} @ {b}; reshape or broadcast an operand")
    if a.shape[:-2] != b.shape[:-2]:
        raise TypeMismatch(f"matmul: batch extents differ: {a} @ {b}; broadcast an operand")
    if a.shape[-1] != b.shape[-2]:
        raise TypeMismatch(
            f"matmul: inner extents differ: {a} @ {b} ({a.shape[-1]}, {b.shape[-2]}); transpose or reshape an operand"
        )
    return TensorType(a.dtype, (*a.shape[:-1], b.shape[-1]))


def _evaluate_matmul(arrays: Sequence[np.ndarray], attributes: Mapping[str, Any], result: TensorType) -> np.ndarray:
    """f16 and bf16 never run in their own precision: NumPy has no such product, so even accumulating in f16 means f32."""
    factors = _factors(arrays, attributes, result)
    with BLAS:
        product = np.matmul(*factors)
    return cast_array(product, numpy_dtype(result.dtype))


def _matmul_into(
    arrays: Sequence[np.ndarray], attributes: Mapping[str, Any], result: TensorType, out: np.ndarray
) -> None:
    a, b = _factors(arrays, attributes, result)
    if a.dtype == out.dtype:
        with BLAS:
            np.matmul(a, b, out=out)
    else:
        with BLAS:
            product = np.matmul(a, b)
        np.copyto(out, product, casting="unsafe")  # floats to floats, integers to integers


def _scratch_matmul(types: Sequence[TensorType], attributes: Mapping[str, Any], result: TensorType, copies: int) -> int:
    running = _running(attributes, result)
    if running == numpy_dtype(result.dtype):
        return copies
    return (sum(kind.size for kind in types) + result.size) * running.itemsize


def _factors(arrays: Sequence[np.ndarray], attributes: Mapping[str, Any], result: TensorType) -> list[np.ndarray]:
    running = _running(attributes, result)
    return [np.ascontiguousarray(x, dtype=running) for x in arrays]


def _running(attributes: Mapping[str, Any], result: TensorType) -> np.dtype:
    running = numpy_dtype(attributes["accumulate"])
    return np.dtype(np.float32) if result.dtype in FLOATS and running.itemsize == 2 else running


def _work_matmul(types: Sequence[TensorType], attributes: Mapping[str, Any], result: TensorType) -> Work:
    a, b = types
    return Work(flops=2 * result.size * a.shape[-1], bytes_read=a.bytes + b.bytes, bytes_written=result.bytes)


DEFINITIONS: Final = (
    OpDefinition(
        "matmul",
        "contraction",
        2,
        _infer_matmul,
        _evaluate_matmul,
        _work_matmul,
        ("accumulate",),
        _matmul_into,
        scratch=_scratch_matmul,
    ),
)
