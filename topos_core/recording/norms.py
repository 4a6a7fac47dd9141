"""Norms of vectors, and those of matrices that need no decomposition."""

from __future__ import annotations

from typing import Any

import numpy as np

from topos_core.recording import constant, elementwise, movement, reductions
from topos_core.recording.axes import some_axes
from topos_core.recording.recorder import recorder_of
from topos_core.recording.value import Value
from topos_core.tape.type import FLOATS


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: Any = False) -> Value:
    """Records np.linalg.norm for vectors, and for matrices the norms that need no decomposition."""
    value = constant.lift(recorder_of(x), x)
    if value.type.dtype not in FLOATS:
        value = elementwise.cast(value, "f64")
    axes = some_axes(value, axis)
    if axis is None and ord is not None and value.ndim > 2:
        raise value.recorder.error(f"norm(ord={ord!r}) of {value.type}: name one or two axes")
    if ord is None or (ord in ("fro", "f") and len(axes) == 2) or (ord == 2 and len(axes) == 1):
        return elementwise.apply(np.sqrt, (reductions.sum(value * value, axes, keepdims=keepdims),))
    if len(axes) == 1:
        return vector_norm(value, ord, axes, keepdims)
    if len(axes) == 2 and ord in (1, -1, np.inf, -np.inf):
        summed, picked = (axes[0], axes[1]) if abs(ord) == 1 else (axes[1], axes[0])
        lengths = reductions.sum(abs(value), summed, keepdims=True)
        found = (reductions.max if ord > 0 else reductions.min)(lengths, picked, keepdims=True)
        return found if keepdims is True else movement.squeeze(found, axes)
    raise value.recorder.error(
        f"norm(ord={ord!r}) over {len(axes)} axes of {value.type} needs a decomposition; compute it outside"
    )


def vector_norm(value: Value, ord: Any, axes: tuple[int, ...], keepdims: Any) -> Value:
    """Records a norm of all elements along axes."""
    if ord == 2:
        return elementwise.apply(np.sqrt, (reductions.sum(value * value, axes, keepdims=keepdims),))
    size = abs(value)
    if ord == np.inf:
        return reductions.max(size, axes, keepdims=keepdims)
    if ord == -np.inf:
        return reductions.min(size, axes, keepdims=keepdims)
    if ord == 0:
        return elementwise.cast(reductions.count_nonzero(value, axes, keepdims=keepdims), value.type.dtype)
    if ord == 1:
        return reductions.sum(size, axes, keepdims=keepdims)
    return elementwise.power(reductions.sum(elementwise.power(size, ord), axes, keepdims=keepdims), 1.0 / ord)
