"""From anything that stands in an expression to a Value: splats, tables and parameters."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import numpy as np

from topos_core.recording import parameter
from topos_core.recording.promotion import NoDtype, is_weak, kind_of, name_of
from topos_core.recording.recorder import Recorder
from topos_core.recording.value import Value
from topos_core.tape.type import FLOATS, TensorType, numpy_dtype

LARGEST_FLOAT_TABLE: Final = 64
LARGEST_TABLE: Final = 2**20


def operand(recorder: Recorder, x: Any) -> Any:
    """Gives an operand as a Value, a Python scalar, a NumPy scalar or an ndarray.

    Raises:
        RecordingError: It is none of these and no sequence of numbers.
    """
    if isinstance(x, (Value, bool, int, float, np.generic)):
        return x
    if isinstance(x, np.ndarray):
        if type(x) not in (np.ndarray, np.memmap):
            raise recorder.error(
                f"{type(x).__module__}.{type(x).__name__} has its own arithmetic (a mask, a matrix product), which would be"
                " lost; convert it with np.asarray"
            )
        return x
    if isinstance(x, (list, tuple)) or (hasattr(x, "__array__") and not isinstance(x, type)):
        return np.asarray(x)
    raise recorder.error(
        f"a {type(x).__name__} is no operand of a recorded value; use a number, an array or a recorded value"
    )


def kinds_of(recorder: Recorder, operands: tuple[Any, ...]) -> tuple[str, ...]:
    """Gives the operands' kinds for promotion."""
    try:
        return tuple([x.type.dtype if type(x) is Value else kind_of(x) for x in operands])
    except NoDtype as error:
        raise recorder.error(str(error)) from None


def dtype_named(recorder: Recorder, dtype: Any) -> str:
    """Reads a dtype argument."""
    try:
        return name_of(dtype)
    except NoDtype as error:
        raise recorder.error(str(error)) from None


def splat(recorder: Recorder, x: Any, dtype: str, shape: tuple[int, ...] = ()) -> Value:
    """Records one number at every position.

    Raises:
        RecordingError: The number does not fit the dtype.
    """
    scalar = scalar_of(recorder, x, dtype)
    return recorder.record("constant", (), {"value": scalar, "type": TensorType(dtype, shape)})


def scalar_of(recorder: Recorder, x: Any, dtype: str) -> Any:
    """Converts one number to a NumPy scalar."""
    try:
        if x and type(x) in (int, float):  # not for zeros: 0.0 and -0.0 are equal
            return _cached(x, dtype)
        return _converted(x, dtype)
    except (OverflowError, ValueError, FloatingPointError) as error:
        raise recorder.error(f"{x!r} does not fit {dtype}: {error}; cast the value to a wider dtype first") from None


def _converted(x: Any, dtype: str) -> Any:
    target = numpy_dtype(dtype)
    with np.errstate(over="ignore", invalid="raise"):
        return np.asarray(x).astype(target)[()] if isinstance(x, (np.generic, np.ndarray)) else target.type(x)


_cached = lru_cache(maxsize=4096, typed=True)(_converted)


def lift(recorder: Recorder, x: Any) -> Value:
    """Gives a Value for an operand in its own dtype.

    Float arrays above 64 elements and all others above 2**20 become parameters, and so do plain views of such arrays; the
    rest are constants.
    """
    if isinstance(x, Value):
        return x
    x = operand(recorder, x)
    (kind,) = kinds_of(recorder, (x,))
    if is_weak(x) or np.ndim(x) == 0:
        return splat(recorder, x, {"int": "i64", "float": "f64"}.get(kind, kind))
    if not _is_parameter(x, kind):
        return table(recorder, x, kind)
    plain = parameter.forwards(x)
    if plain.shape != x.shape or plain.strides != x.strides:
        return parameter.as_read(lift(recorder, plain), x)
    return parameter.capture(recorder, x, kind)


def _is_parameter(array: np.ndarray, kind: str) -> bool:
    limit = LARGEST_FLOAT_TABLE if kind in FLOATS else LARGEST_TABLE
    return array.size > limit or parameter.is_part_of_more_than(array, limit)


def table(recorder: Recorder, array: np.ndarray, dtype: str) -> Value:
    """Records an array's elements; a copy, since the caller may write to it later."""
    kept = np.array(array, numpy_dtype(dtype), order="C")
    kept.flags.writeable = False
    value = recorder.record("constant", (), {"value": kept, "type": TensorType(dtype, kept.shape)})
    recorder.note_randomness(value)
    return value


def lift_as(recorder: Recorder, x: Any, dtype: str, shape: tuple[int, ...]) -> Value:
    """Gives an operand as a Value of one dtype and shape: numbers as splats, small tables converted, the rest by ops."""
    if not isinstance(x, Value):
        if np.ndim(x) == 0:
            return splat(recorder, x, dtype, shape)
        if x.size <= LARGEST_FLOAT_TABLE and not _is_parameter(x, kind_of(x)):
            with np.errstate(over="ignore"):
                x = table(recorder, x, dtype)
        else:
            x = lift(recorder, x)
    if x.type.dtype != dtype:
        x = recorder.record("cast", (x,), {"dtype": dtype})
    return x if x.type.shape == shape else recorder.record("broadcast", (x,), {"shape": shape})
