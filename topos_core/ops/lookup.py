"""Lookup: gather reads rows by index, scatter_add adds rows by index. Indices lie in range; none counts from the end.

An index over several axes that were merged into one may lie inside of that one and outside of its own: `within` holds
each to its own extent before they are merged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from topos_core.cost.work import Work
from topos_core.ops.definition import OpDefinition, TypeMismatch
from topos_core.tape.type import INTEGERS, TensorType


class IndexOutOfRange(Exception):
    """An index that does not lie where it must; the run adds the place."""


def _looked_up(name: str, x: TensorType, indices: TensorType, axis: int) -> tuple[int, ...]:
    """Gives the shape of x with `axis` replaced by the indices' axes."""
    if indices.dtype not in ("i32", "i64"):
        raise TypeMismatch(f"{name}: indices are {indices}; cast them to i32 or i64")
    if not 0 <= axis < len(x.shape):
        raise TypeMismatch(f"{name}: {x} has no axis {axis}; name one of its axes")
    return x.shape[:axis] + indices.shape + x.shape[axis + 1 :]


def _infer_gather(types: Sequence[TensorType], attributes: Mapping[str, Any]) -> TensorType:
    x, indices = types
    return TensorType(x.dtype, _looked_up("gather", x, indices, attributes["axis"]))


def _infer_scatter_add(types: Sequence[TensorType], attributes: Mapping[str, Any]) -> TensorType:
    x, indices, updates = types
    expected = TensorType(x.dtype, _looked_up("scatter_add", x, indices, attributes["axis"]))
    if updates != expected:
        raise TypeMismatch(
            f"scatter_add: updates are {updates}, {x} at indices {indices} takes {expected}; broadcast or cast them"
        )
    if x.dtype == "bool":
        raise TypeMismatch(f"scatter_add is not defined for {x}; cast it to an integer dtype")
    return x


def _check_range(indices: np.ndarray, extent: int) -> None:
    _check_within(indices, 0, extent)


def _infer_within(types: Sequence[TensorType], attributes: Mapping[str, Any]) -> TensorType:
    (x,) = types
    low, high = attributes["low"], attributes["high"]
    if x.dtype not in INTEGERS:
        raise TypeMismatch(f"within: {x} holds no integers; cast it to an integer dtype")
    if low > high:
        raise TypeMismatch(f"within: no integer lies in [{low}, {high}); give a low that is at most high")
    return x


def _check_within(indices: np.ndarray, low: int, high: int) -> None:
    if indices.size == 0:
        return
    least, most = int(indices.min()), int(indices.max())
    if least < low or most >= high:
        raise IndexOutOfRange(outside(least if least < low else most, low, high))


def outside(index: int, low: int, high: int) -> str:
    """Says that an index of an axis lies outside of it; below 0 it counts from the end where `low` is below 0."""
    return f"index {index} is out of range for an axis of {high}; " + (
        f"use {low} to {high - 1}" if high else "an empty axis has no elements"
    )


def _evaluate_within(arrays: Sequence[np.ndarray], attributes: Mapping[str, Any], result: TensorType) -> np.ndarray:
    _check_within(arrays[0], attributes["low"], attributes["high"])
    return arrays[0]


def _within_into(
    arrays: Sequence[np.ndarray], attributes: Mapping[str, Any], result: TensorType, out: np.ndarray
) -> None:
    np.copyto(out, _evaluate_within(arrays, attributes, result))


def _evaluate_gather(arrays: Sequence[np.ndarray], attributes: Mapping[str, Any], result: TensorType) -> np.ndarray:
    x, indices = arrays
    _check_range(indices, x.shape[attributes["axis"]])
    return np.asarray(np.take(x, indices, attributes["axis"]))


def _gather_into(
    arrays: Sequence[np.ndarray], attributes: Mapping[str, Any], result: TensorType, out: np.ndarray
) -> None:
    x, indices = arrays
    _check_range(indices, x.shape[attributes["axis"]])
    np.take(x, indices, attributes["axis"], out=out, mode="clip")  # `raise`, the default, would buffer the result


def _evaluate_scatter_add(
    arrays: Sequence[np.ndarray], attributes: Mapping[str, Any], result: TensorType
) -> np.ndarray:
    total = np.empty(result.shape, arrays[0].dtype)
    _scatter_add_into(arrays, attributes, result, total)
    return total


def _scatter_add_into(
    arrays: Sequence[np.ndarray], attributes: Mapping[str, Any], result: TensorType, out: np.ndarray
) -> None:
    """Adds in the order of the indices."""
    x, indices, updates = arrays
    _check_range(indices, x.shape[attributes["axis"]])
    np.copyto(out, x)
    rows: Any = (*[slice(None)] * attributes["axis"], indices)  # NumPy's stubs know no slices here
    np.add.at(out, rows, updates)


def _work_gather(types: Sequence[TensorType], attributes: Mapping[str, Any], result: TensorType) -> Work:
    """Counts the rows that are read, not the whole table."""
    return Work(bytes_read=result.bytes + types[1].bytes, bytes_written=result.bytes)


def _work_scatter_add(types: Sequence[TensorType], attributes: Mapping[str, Any], result: TensorType) -> Work:
    return Work(flops=types[2].size, bytes_read=sum(t.bytes for t in types), bytes_written=result.bytes)


def _work_within(types: Sequence[TensorType], attributes: Mapping[str, Any], result: TensorType) -> Work:
    return Work(bytes_read=2 * result.bytes, bytes_written=result.bytes)


DEFINITIONS: Final = (
    OpDefinition("within", "lookup", 1, _infer_within, _evaluate_within, _work_within, ("low", "high"), _within_into),
    OpDefinition("gather", "lookup", 2, _infer_gather, _evaluate_gather, _work_gather, ("axis",), _gather_into),
    OpDefinition(
        "scatter_add", "lookup", 3, _infer_scatter_add, _evaluate_scatter_add, _work_scatter_add, ("axis",),
        _scatter_add_into,
    ),
)  # fmt: skip
