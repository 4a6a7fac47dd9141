"""Movement: index maps only; no op here computes. Most answer with a view of their operand."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from topos_core.cost.work import Work
from topos_core.ops.definition import OpDefinition, TypeMismatch
from topos_core.tape.type import TensorType, numpy_dtype


def _infer_reshape(types: Sequence[TensorType], attributes: Mapping[str, Any]) -> TensorType:
    (x,) = types
    shape: tuple[int, ...] = attributes["shape"]
    if math.prod(shape) != math.prod(x.shape) or any(extent < 0 for extent in shape):
        raise TypeMismatch(
            f"reshape: {x} has {x.size} elements, {list(shape)} has {math.prod(shape)}; keep the number of elements"
        )
    return TensorType(x.dtype, shape)


def _infer_broadcast(types: Sequence[TensorType], attributes: Mapping[str, Any]) -> TensorType:
    (x,) = types
    shape: tuple[int, ...] = attributes["shape"]
    lead = len(shape) - len(x.shape)
    if lead < 0 or any(have not in (1, want) for have, want in zip(x.shape, shape[lead:], strict=True)):
        raise TypeMismatch(
            f"broadcast: {x} does not broadcast to {list(shape)}; trailing extents must be equal or 1, reshape it first"
        )
    return TensorType(x.dtype, shape)


def _infer_permute(types: Sequence[TensorType], attributes: Mapping[str, Any]) -> TensorType:
    (x,) = types
    order: tuple[int, ...] = attributes["order"]
    if sorted(order) != list(range(len(x.shape))):
        raise TypeMismatch(f"permute: order {list(order)} does not name each axis of {x} once")
    return TensorType(x.dtype, tuple(x.shape[k] for k in order))


def _infer_pad(types: Sequence[TensorType], attributes: Mapping[str, Any]) -> TensorType:
    (x,) = types
    low, high, interior = attributes["low"], attributes["high"], attributes["interior"]
    if not len(low) == len(high) == len(interior) == len(x.shape):
        raise TypeMismatch(
            f"pad: {x} needs one low, high and interior per axis, not {len(low)}, {len(high)}, {len(interior)}"
        )
    shape = tuple(
        extent + before + after + max(extent - 1, 0) * between
        for extent, before, after, between in zip(x.shape, low, high, interior, strict=True)
    )
    if min(shape, default=0) < 0 or min(interior, default=0) < 0:
        raise TypeMismatch(
            f"pad: low {list(low)}, high {list(high)}, interior {list(interior)} leave {list(shape)} of {x}; crop less"
        )
    return TensorType(x.dtype, shape)


def _infer_slice(types: Sequence[TensorType], attributes: Mapping[str, Any]) -> TensorType:
    (x,) = types
    start, stop, step = attributes["start"], attributes["stop"], attributes["step"]
    if not len(start) == len(stop) == len(step) == len(x.shape):
        raise TypeMismatch(
            f"slice: {x} needs one start, stop and step per axis, not {len(start)}, {len(stop)}, {len(step)}"
        )
    for extent, first, last, stride in zip(x.shape, start, stop, step, strict=True):
        if not (0 <= first <= last <= extent and stride > 0):
            raise TypeMismatch(
                f"slice: {first}:{last}:{stride} does not lie in an axis of {extent} of {x};"
                " 0 <= start <= stop <= extent and step > 0"
            )
    return TensorType(
        x.dtype, tuple(-((first - last) // stride) for first, last, stride in zip(start, stop, step, strict=True))
    )


def _infer_reverse(types: Sequence[TensorType], attributes: Mapping[str, Any]) -> TensorType:
    (x,) = types
    axes: tuple[int, ...] = attributes["axes"]
    if len(set(axes)) != len(axes) or any(not 0 <= axis < len(x.shape) for axis in axes):
        raise TypeMismatch(f"reverse: axes {list(axes)} are not distinct axes of {x}")
    return x


def _infer_concat(types: Sequence[TensorType], attributes: Mapping[str, Any]) -> TensorType:
    if not types:
        raise TypeMismatch("concat: no operands; give at least one")
    first, axis = types[0], attributes["axis"]
    if not 0 <= axis < len(first.shape):
        raise TypeMismatch(f"concat: {first} has no axis {axis}; stack along a new axis by reshaping first")
    for x in types:
        if x.dtype != first.dtype:
            raise TypeMismatch(f"concat: operand dtypes differ: {first} and {x}; cast one of them")
        if len(x.shape) != len(first.shape) or _without(x.shape, axis) != _without(first.shape, axis):
            raise TypeMismatch(f"concat: {first} and {x} differ outside axis {axis}; only that extent may differ")
    total = sum(x.shape[axis] for x in types)
    return TensorType(first.dtype, (*first.shape[:axis], total, *first.shape[axis + 1 :]))


def _without(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return shape[:axis] + shape[axis + 1 :]


def _infer_unfold(types: Sequence[TensorType], attributes: Mapping[str, Any]) -> TensorType:
    (x,) = types
    axis, size, step, dilation = attributes["axis"], attributes["size"], attributes["step"], attributes["dilation"]
    if not 0 <= axis < len(x.shape) or min(size, step, dilation) < 1:
        raise TypeMismatch(
            f"unfold: axis {axis}, size {size}, step {step}, dilation {dilation} on {x};"
            " name one of its axes, the others are at least 1"
        )
    reach = dilation * (size - 1) + 1
    if reach > x.shape[axis]:
        raise TypeMismatch(
            f"unfold: a window of {size} with dilation {dilation} reaches {reach}, axis {axis} of {x} has {x.shape[axis]};"
            " pad the axis or take a smaller window"
        )
    count = (x.shape[axis] - reach) // step + 1
    return TensorType(x.dtype, (*x.shape[:axis], count, *x.shape[axis + 1 :], size))


def _infer_strided(types: Sequence[TensorType], attributes: Mapping[str, Any]) -> TensorType:
    (x,) = types
    shape, strides, offset = attributes["shape"], attributes["strides"], attributes["offset"]
    if len(shape) != len(strides) or min(shape, default=0) < 0:
        raise TypeMismatch(
            f"strided: shape {list(shape)} and strides {list(strides)} differ in rank; give one stride per axis"
        )
    if 0 not in shape:
        first = offset + sum(min(0, stride * (extent - 1)) for extent, stride in zip(shape, strides, strict=True))
        last = offset + sum(max(0, stride * (extent - 1)) for extent, stride in zip(shape, strides, strict=True))
        if first < 0 or last >= x.size:
            raise TypeMismatch(
                f"strided: shape {list(shape)}, strides {list(strides)}, offset {offset} read elements {first} to {last},"
                f" {x} has {x.size}; stay inside"
            )
    return TensorType(x.dtype, shape)


def _evaluate_reshape(arrays: Sequence[np.ndarray], attributes: Mapping[str, Any], result: TensorType) -> np.ndarray:
    return arrays[0].reshape(result.shape)


def _evaluate_broadcast(arrays: Sequence[np.ndarray], attributes: Mapping[str, Any], result: TensorType) -> np.ndarray:
    return np.broadcast_to(arrays[0], result.shape)


def _evaluate_permute(arrays: Sequence[np.ndarray], attributes: Mapping[str, Any], result: TensorType) -> np.ndarray:
    return arrays[0].transpose(attributes["order"])


def _evaluate_pad(arrays: Sequence[np.ndarray], attributes: Mapping[str, Any], result: TensorType) -> np.ndarray:
    padded = np.empty(result.shape, numpy_dtype(result.dtype))
    _pad_into(arrays, attributes, result, padded)
    return padded


def _pad_into(arrays: Sequence[np.ndarray], attributes: Mapping[str, Any], result: TensorType, out: np.ndarray) -> None:
    (x,) = arrays
    out[...] = attributes["fill"]
    target, source = [], []
    for extent, low, between, total in zip(
        x.shape, attributes["low"], attributes["interior"], result.shape, strict=True
    ):
        apart = between + 1
        first = max(0, -(low // apart))  # the first element at or after position 0: ceil(-low / apart)
        count = min(extent, -((low - total) // apart)) - first  # elements before position total
        at = low + first * apart
        if count <= 0:
            return
        target.append(slice(at, at + (count - 1) * apart + 1, apart))
        source.append(slice(first, first + count))
    out[tuple(target)] = x[tuple(source)]


def _evaluate_slice(arrays: Sequence[np.ndarray], attributes: Mapping[str, Any], result: TensorType) -> np.ndarray:
    return arrays[0][tuple(map(slice, attributes["start"], attributes["stop"], attributes["step"]))]


def _evaluate_reverse(arrays: Sequence[np.ndarray], attributes: Mapping[str, Any], result: TensorType) -> np.ndarray:
    return np.flip(arrays[0], attributes["axes"])


def _evaluate_concat(arrays: Sequence[np.ndarray], attributes: Mapping[str, Any], result: TensorType) -> np.ndarray:
    return np.concatenate(arrays, attributes["axis"])


def _concat_into(
    arrays: Sequence[np.ndarray], attributes: Mapping[str, Any], result: TensorType, out: np.ndarray
) -> None:
    np.concatenate(arrays, attributes["axis"], out=out)


def _reshape_into(
    arrays: Sequence[np.ndarray], attributes: Mapping[str, Any], result: TensorType, out: np.ndarray
) -> None:
    out.reshape(arrays[0].shape)[...] = arrays[0]  # `out` is C-contiguous, so this is a view of it


def _evaluate_unfold(arrays: Sequence[np.ndarray], attributes: Mapping[str, Any], result: TensorType) -> np.ndarray:
    (x,) = arrays
    axis, stride = attributes["axis"], x.strides[attributes["axis"]]
    strides = (*x.strides[:axis], stride * attributes["step"], *x.strides[axis + 1 :], stride * attributes["dilation"])
    return np.lib.stride_tricks.as_strided(x, result.shape, strides, writeable=False)


def _evaluate_strided(arrays: Sequence[np.ndarray], attributes: Mapping[str, Any], result: TensorType) -> np.ndarray:
    if result.size == 0:
        return np.empty(result.shape, numpy_dtype(result.dtype))
    flat = np.ascontiguousarray(arrays[0]).reshape(-1)[attributes["offset"] :]
    strides = [stride * flat.itemsize for stride in attributes["strides"]]
    return np.lib.stride_tricks.as_strided(flat, result.shape, strides, writeable=False)


def _view(types: Sequence[TensorType], attributes: Mapping[str, Any], result: TensorType) -> Work:
    return Work()


def _copy(types: Sequence[TensorType], attributes: Mapping[str, Any], result: TensorType) -> Work:
    return Work(bytes_read=sum(t.bytes for t in types), bytes_written=result.bytes)


DEFINITIONS: Final = (
    OpDefinition("reshape", "movement", 1, _infer_reshape, _evaluate_reshape, _view, ("shape",), _reshape_into),
    OpDefinition("broadcast", "movement", 1, _infer_broadcast, _evaluate_broadcast, _view, ("shape",)),
    OpDefinition("permute", "movement", 1, _infer_permute, _evaluate_permute, _view, ("order",)),
    OpDefinition(
        "pad", "movement", 1, _infer_pad, _evaluate_pad, _copy, ("fill", "low", "high", "interior"), _pad_into
    ),
    OpDefinition("slice", "movement", 1, _infer_slice, _evaluate_slice, _view, ("start", "stop", "step")),
    OpDefinition("reverse", "movement", 1, _infer_reverse, _evaluate_reverse, _view, ("axes",)),
    OpDefinition("concat", "movement", None, _infer_concat, _evaluate_concat, _copy, ("axis",), _concat_into),
    OpDefinition("unfold", "movement", 1, _infer_unfold, _evaluate_unfold, _view, ("axis", "size", "step", "dilation")),
    OpDefinition("strided", "movement", 1, _infer_strided, _evaluate_strided, _view, ("shape", "strides", "offset")),
)
