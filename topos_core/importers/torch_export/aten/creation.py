"""Tensors made from nothing: constants and counts."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from topos_core.importers.torch_export.call import Call, NoFormula, Table
from topos_core.recording import constant
from topos_core.recording.value import Value
from topos_core.tape.type import FLOATS, TensorType, numpy_dtype


def _splat(call: Call, number: Any) -> Value:
    if isinstance(number, Value):
        return call.cast(number) if number.type.shape == call.shape else np.broadcast_to(call.cast(number), call.shape)  # type: ignore[return-value]
    return constant.splat(call.recorder, number, call.dtype, call.shape)


def _zeros(call: Call, *rest: Any) -> Value:
    return _splat(call, 0)


def _ones(call: Call, *rest: Any) -> Value:
    return _splat(call, 1)


def _full(call: Call, shape: Any, number: Any, *rest: Any) -> Value:
    return _splat(call, number)


def _new_full(call: Call, x: Any, shape: Any, number: Any, *rest: Any) -> Value:
    return _splat(call, number)


def _scalar(call: Call, number: Any, *rest: Any) -> Value:
    return _splat(call, number)


def _count(call: Call, start: Any, step: Any) -> Value:
    """Counts along one axis: an iota, scaled and moved where it does not run 0, 1, 2."""
    if call.shape[0] <= constant.LARGEST_FLOAT_TABLE and call.dtype in FLOATS:
        table = (start + np.arange(call.shape[0]) * step).astype(numpy_dtype(call.dtype))
        return constant.table(call.recorder, table, call.dtype)
    whole = isinstance(start, int) and isinstance(step, int)
    dtype = call.dtype if whole or call.dtype in FLOATS else "f64"
    row = call.recorder.record("iota", (), {"type": TensorType(dtype, call.shape), "axis": 0})
    if step != 1:
        row = row * step
    return row if start == 0 else row + start


def _to(call: Call, end: Any, *rest: Any) -> Value:
    return _count(call, 0, 1)


def _from(call: Call, start: Any, end: Any, *rest: Any) -> Value:
    return _count(call, start, 1)


def _stepping(call: Call, start: Any, end: Any, step: Any = 1, *rest: Any) -> Value:
    return _count(call, start, step)


def _linspace(call: Call, start: Any, end: Any, steps: int, *rest: Any) -> Value:
    if isinstance(start, Value) or isinstance(end, Value):
        raise NoFormula("its ends are recorded values")
    table = np.linspace(start, end, steps).astype(numpy_dtype(call.dtype))
    return constant.lift(call.recorder, table)


def _eye(call: Call, *rest: Any) -> Value:
    rows, columns = call.shape
    return constant.lift(call.recorder, np.eye(rows, columns, dtype=bool)).astype(numpy_dtype(call.dtype))


TABLE: Final[Table] = {
    **dict.fromkeys(("zeros", "zeros_like", "new_zeros", "empty", "empty_like", "new_empty", "empty_permuted"), _zeros),
    **dict.fromkeys(("ones", "ones_like", "new_ones"), _ones),
    "full": _full, "full_like": _full, "new_full": _new_full, "scalar_tensor": _scalar,
    "arange": _to, "arange.start": _from, "arange.start_step": _stepping, "linspace": _linspace, "eye": _eye,
}  # fmt: skip
