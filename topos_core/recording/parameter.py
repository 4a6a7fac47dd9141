"""Captured arrays as parameters: the same memory is one parameter, and views of it are views of the parameter.

An array is found again by the array that owns its memory (`.base`). Which array becomes the parameter: the owner, where
the captured array is a slice or a permutation of it (`W.T`, `layers[3]`); the captured array itself, where it is a
reshape of an anonymous buffer (`np.arange(12.0).reshape(3, 4)`), laid out in its memory order. What is read backwards or
repeated (`W[::-1]`, `np.broadcast_to`) is recorded so, of the array that it reads forwards and once. The default is a
read-only snapshot, taken when the array is first used; a later use of changed contents is another parameter.
"""

from __future__ import annotations

import math
import sys
from typing import Any, NamedTuple

import numpy as np

from topos_core.recording import movement
from topos_core.recording.recorder import Recorder
from topos_core.recording.value import Value
from topos_core.tape.type import TensorType, numpy_dtype


class _Captured(NamedTuple):
    """A parameter and the array that it stands for; the array is kept, so its address stays its own."""

    array: np.ndarray
    snapshot: np.ndarray
    value: Value


class _Path(NamedTuple):
    """How one array is seen through another: cut, reshape, permute, each in terms of the array before it."""

    start: tuple[int, ...]
    stop: tuple[int, ...]
    step: tuple[int, ...]
    shape: tuple[int, ...]
    order: tuple[int, ...]


def capture(recorder: Recorder, array: np.ndarray, dtype: str) -> Value:
    """Gives the Value of a captured array: a parameter, or a view of one."""
    owner = _owner(array)
    known = recorder.captured.setdefault(id(owner), [])
    for captured in known:
        path = _path(captured.array, array)
        if path is not None and _unchanged(captured):
            return _walk(captured.value, path)
    source = _named_array(owner, array)
    path = _path(source, array)
    if path is None:  # no clean view of anything: the array itself, in row-major order, and not by the owner's name
        source, path, owner = array, _path(array, array), array
    captured = _declare(recorder, source, dtype, owner)
    known.append(captured)
    return _walk(captured.value, path) if path is not None else captured.value


def is_part_of_more_than(array: np.ndarray, size: int) -> bool:
    """Says whether an array is a plain view of a larger one of above `size` elements, which is the parameter then."""
    if array.base is None or array.ndim == 0:
        return False
    owner = _owner(array)
    return owner.size > size and _named_array(owner, forwards(array)).size > size


def forwards(array: np.ndarray) -> np.ndarray:
    """Gives the part of an array that holds each element once, axes in the order of their memory: no stride is below 1."""
    steps = (_once(extent, stride) for extent, stride in zip(array.shape, array.strides, strict=True))
    return array[(*steps, ...)]


def _once(extent: int, stride: int) -> int | slice:
    if extent > 1 and stride <= 0:
        return 0 if stride == 0 else slice(None, None, -1)
    return slice(None)


def as_read(value: Value, array: np.ndarray) -> Value:
    """Turns and repeats the Value of `forwards(array)` as `array` does."""
    strides = [
        stride if extent > 1 else array.itemsize for extent, stride in zip(array.shape, array.strides, strict=True)
    ]
    kept = tuple(1 if stride == 0 else extent for extent, stride in zip(array.shape, strides, strict=True))
    turned = tuple(axis for axis, stride in enumerate(strides) if stride < 0)
    return movement.spread(movement.flip(movement.reshape(value, kept), turned), array.shape)


def _declare(recorder: Recorder, array: np.ndarray, dtype: str, owner: np.ndarray) -> _Captured:
    snapshot = _snapshot(array, numpy_dtype(dtype))
    value = recorder.source("parameter", TensorType(dtype, array.shape))
    recorder.parameters.append(value.index)
    recorder.defaults[value.index] = snapshot
    recorder.note_randomness(value)
    recorder.names[value.index] = _unused(recorder, recorder.namer.name_for(array, owner, sys._getframe(1)))
    return _Captured(array, snapshot, value)


def _unused(recorder: Recorder, wanted: str | None) -> str:
    taken = set(recorder.names.values())
    base = wanted or "parameter"
    names = (f"{base}_{k}" if k else base for k in range(1 if wanted is None else 0, len(taken) + 2))
    return next(name for name in names if name not in taken)


def _snapshot(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Copies, unless nobody can write to the memory."""
    if array.flags.c_contiguous and array.dtype == dtype and _is_frozen(array):
        return array
    kept = np.array(array, dtype, order="C")
    kept.flags.writeable = False
    return kept


def _is_frozen(array: np.ndarray) -> bool:
    each: Any = array
    while isinstance(each, np.ndarray):
        if each.flags.writeable:
            return False
        each = each.base
    return each is None or isinstance(each, bytes)


def _unchanged(captured: _Captured) -> bool:
    if captured.array is captured.snapshot:
        return True
    bits = f"u{captured.array.itemsize}"
    same: bool = np.array_equal(captured.array.view(bits), captured.snapshot.view(bits))
    return same


def _owner(array: np.ndarray) -> np.ndarray:
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _named_array(owner: np.ndarray, array: np.ndarray) -> np.ndarray:
    """Gives the array that a person would call the weight."""
    plain = type(owner) in (np.ndarray, np.memmap) and owner.dtype == array.dtype
    axes = array.ndim if owner.ndim == 1 else sum(extent > 1 for extent in array.shape)  # a flat owner is a mere buffer
    if plain and owner.ndim >= axes and _path(owner, array) is not None:
        return owner
    by_memory = array.transpose(_by_memory(array))
    return by_memory if by_memory.flags.c_contiguous else array


def _by_memory(array: np.ndarray) -> tuple[int, ...]:
    """Orders axes from the farthest apart to the nearest."""
    return tuple(sorted(range(array.ndim), key=lambda axis: -array.strides[axis]))


def _path(source: np.ndarray, target: np.ndarray) -> _Path | None:
    """Finds cut, reshape and permute that read `target` through `source`, both in the same memory."""
    if source.dtype == target.dtype and (
        target is source
        or (_address(target) == _address(source) and target.shape == source.shape and target.strides == source.strides)
    ):
        return _Path((0,) * source.ndim, source.shape, (1,) * source.ndim, source.shape, tuple(range(source.ndim)))
    if source.dtype != target.dtype or 0 in target.shape or min(target.strides, default=1) < 0:
        return None
    order = _by_memory(target)
    sorted_target = target.transpose(order)
    back = tuple(int(k) for k in np.argsort(order))
    source_order = _by_memory(source)
    if source_order != tuple(range(source.ndim)) and source.ndim == target.ndim:
        return _permuted(source, target)
    cut = _cut(source, sorted_target)
    return None if cut is None else _Path(*cut, back)


def _permuted(source: np.ndarray, target: np.ndarray) -> _Path | None:
    """Matches axes by extent and stride where the source itself is not in memory order."""
    if _address(source) != _address(target):
        return None
    free = list(range(source.ndim))
    order = []
    for extent, stride in zip(target.shape, target.strides, strict=True):
        found = next(
            (k for k in free if source.shape[k] == extent and (source.strides[k] == stride or extent == 1)), None
        )
        if found is None:
            return None
        free.remove(found)
        order.append(found)
    return _Path((0,) * source.ndim, source.shape, (1,) * source.ndim, source.shape, tuple(order))


def _cut(
    source: np.ndarray, target: np.ndarray
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...]] | None:
    """Matches a target in memory order: first axis by axis with steps, then as a plain reshape."""
    distance = _address(target) - _address(source)
    if distance < 0 or distance % source.itemsize:
        return None
    start = []
    for extent, stride in zip(source.shape, source.strides, strict=True):
        if stride <= 0:
            return None
        at = min(distance // stride, extent - 1)
        start.append(at)
        distance -= at * stride
    if distance:
        return None
    stop, step = [at + 1 for at in start], [1] * source.ndim
    axis = 0
    for extent, stride in zip(target.shape, target.strides, strict=True):
        if extent == 1:
            continue
        while axis < source.ndim and (
            stride % source.strides[axis]
            or stride // source.strides[axis] * (extent - 1) + start[axis] >= source.shape[axis]
        ):
            axis += 1
        if axis == source.ndim or stride == 0:
            return _reshaped(source, target, start)
        step[axis] = stride // source.strides[axis]
        stop[axis] = start[axis] + (extent - 1) * step[axis] + 1
        axis += 1
    return tuple(start), tuple(stop), tuple(step), target.shape


def _reshaped(
    source: np.ndarray, target: np.ndarray, start: list[int]
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...]] | None:
    """Matches whole trailing axes of a contiguous source that the target regroups."""
    if not (source.flags.c_contiguous and target.flags.c_contiguous):
        return None
    for lead in range(source.ndim + 1):
        if any(start[lead:]):
            continue
        if math.prod(source.shape[lead:]) == target.size:
            stop = (*(at + 1 for at in start[:lead]), *source.shape[lead:])
            return tuple(start), stop, (1,) * source.ndim, target.shape
    return None


def _walk(value: Value, path: _Path) -> Value:
    cut = movement.cut(value, path.start, path.stop, path.step)
    return movement.permute(movement.reshape(cut, path.shape), path.order)


def _address(array: np.ndarray) -> int:
    address: int = array.__array_interface__["data"][0]
    return address
