"""Windows of a value: sliding windows, and a view by strides in elements."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from topos_core.errors import RecordingError
from topos_core.recording import movement
from topos_core.recording.axes import one_axis, some_axes
from topos_core.recording.value import Value


def sliding_window_view(
    x: Value, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False
) -> Value:
    """Records NumPy's sliding_window_view: positions replace each axis, window axes come last."""
    if writeable:
        raise x.recorder.error(
            "sliding_window_view(writeable=True): a recorded value is not written to; drop writeable"
        )
    sizes = movement.extents_of(x, window_shape)
    axes = some_axes(x, axis, repeated=True)
    if len(sizes) != len(axes):
        raise x.recorder.error(
            f"sliding_window_view: window {list(sizes)} over axes {list(axes)} of {x.type}; give one extent per axis"
        )
    for at, size in zip(axes, sizes, strict=True):
        x = _unfold(x, at, size, 1, 1)
    return x


def unfold(x: Any, axis: int, size: int, step: int = 1, dilation: int = 1) -> Any:
    """Gives all windows along an axis: positions replace the axis, the window comes last.

    Args:
        x: A recorded value, or an array: then a read-only view.
        axis: The axis that the window slides over.
        size: Elements in a window.
        step: Elements between the starts of neighbouring windows.
        dilation: Elements between neighbours inside a window.

    Raises:
        RecordingError: A window does not fit.
    """
    if isinstance(x, Value):
        from topos_core.recording import views  # views stand above: they name this file's functions

        return views.shared(x, _unfold(x, one_axis(x, axis), *map(operator.index, (size, step, dilation))))
    array = np.asarray(x)
    reach = dilation * (size - 1) + 1
    if reach > array.shape[axis]:
        raise RecordingError(
            f"unfold: a window of {size} with dilation {dilation} reaches {reach}, axis {axis} has {array.shape[axis]}"
        )
    windows = np.moveaxis(np.lib.stride_tricks.sliding_window_view(array, reach, axis), axis, 0)[::step]
    return np.moveaxis(windows, 0, axis)[..., ::dilation]


def as_strided(x: Any, shape: Any, strides: Any, offset: int = 0) -> Any:
    """Reads the row-major elements of x at offset + sum(index * stride): NumPy's as_strided with strides in elements.

    Args:
        x: A recorded value, or an array, which is made contiguous.
        shape: Extents of the result.
        strides: One per extent, in elements; 0 repeats and a negative one walks back.
        offset: The element that index 0 reads.

    Raises:
        RecordingError: Some element lies outside of x.
    """
    if isinstance(x, Value):
        from topos_core.recording import views

        extents = movement.extents_of(x, shape)
        return views.shared(x, movement.strided(x, extents, movement.extents_of(x, strides), operator.index(offset)))
    flat = np.ascontiguousarray(x).reshape(-1)
    reads = [stride * (extent - 1) for extent, stride in zip(shape, strides, strict=True)]
    first, last = (offset + sum(limit(0, read) for read in reads) for limit in (min, max))
    if 0 not in shape and (first < 0 or last >= flat.size):
        raise RecordingError(f"as_strided: elements {first} to {last} are read, the array has {flat.size}; stay inside")
    steps = [stride * flat.itemsize for stride in strides]
    return np.lib.stride_tricks.as_strided(flat[offset:], shape, steps, writeable=False)


def _unfold(x: Value, axis: int, size: int, step: int, dilation: int) -> Value:
    return x.recorder.record("unfold", (x,), {"axis": axis, "size": size, "step": step, "dilation": dilation})
