"""Sliding windows over the last axes, padded first: what convolution and pooling share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from topos_core.nn.arguments import Array
from topos_core.ops.catalog import definition
from topos_core.recording import movement
from topos_core.recording.value import Value
from topos_core.recording.windows import unfold
from topos_core.tape.type import TensorType, dtype_name


def windows_of(
    x: Array,
    size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[tuple[int, int]],
    dilation: Sequence[int],
    fill: Any,
) -> Array:
    """Turns [..., *spatial] into [..., *positions, *taps]: pad, then one unfold per spatial axis."""
    first = x.ndim - len(size)
    if any(side != (0, 0) for side in padding):
        x = np.pad(x, ((0, 0),) * first + tuple(padding), constant_values=fill)
    for at, (extent, step, reach) in enumerate(zip(size, stride, dilation, strict=True)):
        x = unfold(x, first + at, extent, step, reach)
    return x


def spaced(x: Array, low: Sequence[int], high: Sequence[int], interior: Sequence[int]) -> Array:
    """Pads with zeros at the ends (negative numbers crop) and between neighbours."""
    if isinstance(x, Value):
        return movement.pad_with(x, low, high, 0, interior)
    attributes = {"fill": x.dtype.type(0), "low": tuple(low), "high": tuple(high), "interior": tuple(interior)}
    types = [TensorType(dtype_name(x.dtype) or "f64", x.shape)]
    pad = definition("pad")
    return pad.evaluate([x], attributes, pad.infer(types, attributes))
