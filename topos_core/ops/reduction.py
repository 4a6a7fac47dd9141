"""Reductions. Sums and products carry the dtype of their running value; max and min follow the elementwise rules.

A reduced axis of max, min, argmax and logsumexp must not be empty, as in NumPy. Operands of every sum are made
C-contiguous first, so that a result's bits depend on no layout.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from topos_core.cost.work import Work
from topos_core.ops.cast import cast_array
from topos_core.ops.definition import Evaluate, Infer, Into, OpDefinition, TypeMismatch
from topos_core.ops.extremes import greatest, least
from topos_core.tape.type import DTYPE_NAMES, FLOATS, INTEGERS, TensorType, numpy_dtype

_NUMBERS: Final = FLOATS + INTEGERS


def _reduction(name: str, dtypes: tuple[str, ...], *, accumulates: bool, empty: bool) -> Infer:
    def infer(types: Sequence[TensorType], attributes: Mapping[str, Any]) -> TensorType:
        (x,) = types
        axes: tuple[int, ...] = attributes["axes"]
        _check_dtype(name, x, dtypes)
        if list(axes) != sorted(set(axes)) or any(not 0 <= axis < len(x.shape) for axis in axes):
            raise TypeMismatch(f"{name}: axes {list(axes)} are not distinct ascending axes of {x}")
        if accumulates:
            _check_accumulate(name, x, attributes["accumulate"])
        result = TensorType(x.dtype, tuple(extent for axis, extent in enumerate(x.shape) if axis not in axes))
        if not empty and any(x.shape[axis] == 0 for axis in axes):
            raise TypeMismatch(f"{name}: a reduced axis of {x} is empty, so there is no value; reduce other axes")
        return result

    return infer


def _check_dtype(name: str, x: TensorType, dtypes: tuple[str, ...]) -> None:
    if x.dtype not in dtypes:
        raise TypeMismatch(f"{name} is not defined for {x}; cast it to one of {' '.join(dtypes)}")


def _check_accumulate(name: str, x: TensorType, accumulate: str) -> None:
    family = FLOATS if x.dtype in FLOATS else INTEGERS
    if accumulate not in family:
        raise TypeMismatch(
            f"{name}: {x} cannot accumulate in {accumulate}; use one of {' '.join(family)} or cast it first"
        )


def _check_axis(name: str, x: TensorType, axis: int) -> None:
    if not 0 <= axis < len(x.shape):
        raise TypeMismatch(f"{name}: {x} has no axis {axis}")


def _infer_argmax(types: Sequence[TensorType], attributes: Mapping[str, Any]) -> TensorType:
    (x,) = types
    axis: int = attributes["axis"]
    _check_axis("argmax", x, axis)
    if x.shape[axis] == 0:
        raise TypeMismatch(f"argmax: axis {axis} of {x} is empty, so there is no value; take another axis")
    return TensorType("i64", x.shape[:axis] + x.shape[axis + 1 :])


def _infer_cumsum(types: Sequence[TensorType], attributes: Mapping[str, Any]) -> TensorType:
    (x,) = types
    _check_dtype("cumsum", x, _NUMBERS)
    _check_axis("cumsum", x, attributes["axis"])
    _check_accumulate("cumsum", x, attributes["accumulate"])
    return x


def _accumulated(function: np.ufunc) -> Evaluate:
    def evaluate(arrays: Sequence[np.ndarray], attributes: Mapping[str, Any], result: TensorType) -> np.ndarray:
        x = np.asarray(arrays[0], order="C")
        running = numpy_dtype(attributes["accumulate"])
        return cast_array(np.asarray(function.reduce(x, attributes["axes"], dtype=running)), numpy_dtype(result.dtype))

    return evaluate


def _accumulated_into(function: np.ufunc) -> Into:
    def into(arrays: Sequence[np.ndarray], attributes: Mapping[str, Any], result: TensorType, out: np.ndarray) -> None:
        x = np.asarray(arrays[0], order="C")
        running = numpy_dtype(attributes["accumulate"])
        if running == out.dtype:
            function.reduce(x, attributes["axes"], dtype=running, out=out)
        else:
            out[...] = cast_array(np.asarray(function.reduce(x, attributes["axes"], dtype=running)), out.dtype)

    return into


def _extreme(function: Callable[[np.ndarray, tuple[int, ...]], np.ndarray]) -> Evaluate:
    def evaluate(arrays: Sequence[np.ndarray], attributes: Mapping[str, Any], result: TensorType) -> np.ndarray:
        return function(arrays[0], attributes["axes"])

    return evaluate


def _extreme_into(function: Callable[..., np.ndarray]) -> Into:
    def into(arrays: Sequence[np.ndarray], attributes: Mapping[str, Any], result: TensorType, out: np.ndarray) -> None:
        function(arrays[0], attributes["axes"], out)

    return into


def _evaluate_argmax(arrays: Sequence[np.ndarray], attributes: Mapping[str, Any], result: TensorType) -> np.ndarray:
    return np.asarray(np.argmax(arrays[0], attributes["axis"]), dtype=np.int64)


def _evaluate_logsumexp(arrays: Sequence[np.ndarray], attributes: Mapping[str, Any], result: TensorType) -> np.ndarray:
    """log(sum(exp(x - m))) + m with m the maximum, or 0 where that is infinite or NaN; f16 and bf16 run in f32."""
    (x,), axes = arrays, attributes["axes"]
    wide = np.asarray(x, np.float32 if x.dtype.itemsize == 2 else x.dtype, order="C")
    top = np.max(wide, axis=axes, keepdims=True)
    top = np.where(np.isfinite(top), top, wide.dtype.type(0))
    total = np.add.reduce(np.exp(wide - top), axes, keepdims=True)
    return np.asarray((np.log(total) + top).reshape(result.shape).astype(x.dtype))


def _evaluate_cumsum(arrays: Sequence[np.ndarray], attributes: Mapping[str, Any], result: TensorType) -> np.ndarray:
    running = np.add.accumulate(
        np.ascontiguousarray(arrays[0]), attributes["axis"], dtype=numpy_dtype(attributes["accumulate"])
    )
    return cast_array(running, numpy_dtype(result.dtype))


def _cumsum_into(
    arrays: Sequence[np.ndarray], attributes: Mapping[str, Any], result: TensorType, out: np.ndarray
) -> None:
    running = numpy_dtype(attributes["accumulate"])
    x, axis = np.ascontiguousarray(arrays[0]), attributes["axis"]
    if running == out.dtype:
        np.add.accumulate(x, axis, dtype=running, out=out)
    else:
        np.copyto(out, np.add.accumulate(x, axis, dtype=running), casting="unsafe")


def _scratch_cumsum(types: Sequence[TensorType], attributes: Mapping[str, Any], result: TensorType, copies: int) -> int:
    """The operand in the running dtype, and the sums in it."""
    running = numpy_dtype(attributes["accumulate"])
    return copies + (0 if running == numpy_dtype(result.dtype) else 2 * result.size * running.itemsize)


def _scratch_argmax(types: Sequence[TensorType], attributes: Mapping[str, Any], result: TensorType, copies: int) -> int:
    """NumPy brings the axis to the end of a copy."""
    (x,) = types
    return copies + (0 if attributes["axis"] == len(x.shape) - 1 else x.bytes)


def _scratch_logsumexp(
    types: Sequence[TensorType], attributes: Mapping[str, Any], result: TensorType, copies: int
) -> int:
    """The operand widened, its distance from the maximum, and the powers of that."""
    (x,) = types
    narrow = numpy_dtype(x.dtype).itemsize == 2
    return copies + x.size * (12 if narrow else 2 * numpy_dtype(x.dtype).itemsize)


def _once(types: Sequence[TensorType], attributes: Mapping[str, Any], result: TensorType) -> Work:
    (x,) = types
    return Work(flops=x.size, bytes_read=x.bytes, bytes_written=result.bytes)


def _work_logsumexp(types: Sequence[TensorType], attributes: Mapping[str, Any], result: TensorType) -> Work:
    """A maximum, a difference and a sum per element, one exp per element, one log and one sum per result."""
    (x,) = types
    return Work(3 * x.size + result.size, x.size + result.size, x.bytes, result.bytes)


DEFINITIONS: Final = (
    OpDefinition(
        "sum", "reduction", 1, _reduction("sum", _NUMBERS, accumulates=True, empty=True), _accumulated(np.add), _once,
        ("axes", "accumulate"), _accumulated_into(np.add),
    ),
    OpDefinition(
        "prod", "reduction", 1, _reduction("prod", _NUMBERS, accumulates=True, empty=True), _accumulated(np.multiply),
        _once, ("axes", "accumulate"), _accumulated_into(np.multiply),
    ),
    OpDefinition(
        "max", "reduction", 1, _reduction("max", DTYPE_NAMES, accumulates=False, empty=False), _extreme(greatest),
        _once, ("axes",), _extreme_into(greatest),
    ),
    OpDefinition(
        "min", "reduction", 1, _reduction("min", DTYPE_NAMES, accumulates=False, empty=False), _extreme(least),
        _once, ("axes",), _extreme_into(least),
    ),
    OpDefinition("argmax", "reduction", 1, _infer_argmax, _evaluate_argmax, _once, ("axis",), scratch=_scratch_argmax),
    OpDefinition(
        "logsumexp", "reduction", 1, _reduction("logsumexp", FLOATS, accumulates=False, empty=False),
        _evaluate_logsumexp, _work_logsumexp, ("axes",), scratch=_scratch_logsumexp,
    ),
    OpDefinition(
        "cumsum", "reduction", 1, _infer_cumsum, _evaluate_cumsum, _once, ("axis", "accumulate"), _cumsum_into,
        scratch=_scratch_cumsum,
    ),
)  # fmt: skip
