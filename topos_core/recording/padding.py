"""Padding: `constant` by the pad op, `edge reflect symmetric wrap` by gathers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from topos_core.recording import formulas, lookup, movement
from topos_core.recording.axes import one_axis
from topos_core.recording.value import Value
from topos_core.tape.type import numpy_dtype


def pad(x: Value, pad_width: Any, mode: Any = "constant", **keywords: Any) -> Value:
    """Records np.pad: `constant` by the pad op, `edge reflect symmetric wrap` by gathers."""
    recorder = x.recorder
    widths = _widths(x, pad_width)
    if mode == "constant":
        fills = keywords.pop("constant_values", 0)
        if keywords:
            raise recorder.error(f"np.pad({', '.join(keywords)}=...) is not recorded; leave it out")
        if isinstance(fills, Value):
            raise recorder.error("np.pad with a recorded fill is not recorded; pad with 0 and use np.where")
        if np.ndim(fills) == 0:
            low, high = zip(*widths, strict=True) if widths else ((), ())
            return formulas.fresh(movement.pad_with(x, low, high, _fill(x, fills)))
        return _pad_sides(x, widths, np.broadcast_to(np.asarray(fills), (x.ndim, 2)))
    if mode not in ("edge", "reflect", "symmetric", "wrap"):
        raise recorder.error(f"np.pad(mode={mode!r}) is not recorded; use constant, edge, reflect, symmetric or wrap")
    result = x
    for axis, width in enumerate(widths):
        if any(width):
            result = lookup.gather(result, np.pad(np.arange(x.type.shape[axis]), width, mode=mode, **keywords), axis)
    return formulas.fresh(result)


def _widths(x: Value, pad_width: Any) -> list[tuple[int, int]]:
    given: Any = pad_width
    if isinstance(pad_width, dict):
        by_axis = {one_axis(x, axis): np.broadcast_to(width, 2) for axis, width in pad_width.items()}
        given = [by_axis.get(axis, (0, 0)) for axis in range(x.ndim)]
    try:
        widths = np.broadcast_to(np.asarray(given), (x.ndim, 2))
    except ValueError:
        raise x.recorder.error(
            f"np.pad of {x.type}: pad_width {pad_width!r} does not fit; give (before, after) per axis"
        ) from None
    if widths.dtype.kind not in "iu" or widths.min(initial=0) < 0:
        raise x.recorder.error(f"np.pad: pad_width {pad_width!r} must be made of integers from 0; slice to crop")
    return [(int(low), int(high)) for low, high in widths]


def _fill(x: Value, fill: Any) -> Any:
    return np.asarray(fill).astype(numpy_dtype(x.type.dtype))[()]


def _pad_sides(x: Value, widths: Sequence[tuple[int, int]], fills: np.ndarray) -> Value:
    """Pads axis after axis, each side with its own fill: the corners are those of the last axis, as in NumPy."""
    result = x
    for axis, (width, fill) in enumerate(zip(widths, fills, strict=True)):
        for side in (0, 1):
            low, high = [0] * x.ndim, [0] * x.ndim
            (low, high)[side][axis] = width[side]
            result = movement.pad_with(result, low, high, _fill(x, fill[side]))
    return formulas.fresh(result)
