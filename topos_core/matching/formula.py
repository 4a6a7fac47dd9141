"""Formulas of matches, evaluated with NumPy from bindings and facts alone.

A formula says what a match means: tests hold it against the recorded ops, and certificates record it as a tape, so it takes no
steps that a recorded value could not. It is written to be read, not to be fast.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Final

import numpy as np

from topos_core.matching.counting import divisors
from topos_core.matching.facts import ConvolutionFacts, EpilogueFacts, Layout, Window, WindowReduceFacts
from topos_core.recording.elementary import erf

Arrays = Mapping[str, np.ndarray]


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))  # type: ignore[no-any-return]


def _sigmoid_of_exp(x: np.ndarray) -> np.ndarray:
    power = np.exp(x)
    return power / (1 + power)  # type: ignore[no-any-return]


STEPS: Final = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}
ACTIVATIONS: Final[Mapping[str, Callable[[np.ndarray], np.ndarray]]] = {
    "none": lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "relu_where_positive": lambda x: np.where(x > 0, x, 0),
    "relu_where_not_negative": lambda x: np.where(x >= 0, x, 0),
    "relu_unless_negative": lambda x: np.where(x < 0, 0, x),
    "relu6": lambda x: np.clip(x, 0, 6),
    "tanh": np.tanh,
    "sigmoid": _sigmoid,
    "sigmoid_of_exp": _sigmoid_of_exp,
    "silu": lambda x: x * _sigmoid(x),
    "silu_of_exp": lambda x: x * _sigmoid_of_exp(x),
    "gelu_tanh": lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "gelu_erf": lambda x: 0.5 * x * (1 + erf(x / math.sqrt(2))),
    "gelu_sigmoid": lambda x: x * _sigmoid(1.702 * x),
    "gelu_sigmoid_of_exp": lambda x: x * _sigmoid_of_exp(1.702 * x),
    "hardswish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
}
WITHOUT_FUNCTIONS: Final = frozenset(
    ("none", "relu", "relu_where_positive", "relu_where_not_negative", "relu_unless_negative", "relu6", "hardswish")
)
"""Activations that compare, add and multiply: they cost no transcendental."""


def spread(value: np.ndarray, layout: Layout, roles: Sequence[str]) -> np.ndarray:
    """Looks at a value by roles: one axis per role, extent 1 where the layout has none."""
    order = [k for role in roles for k in _axes(layout, role)]
    extents = [math.prod(layout.shape[k] for k in _axes(layout, role)) for role in roles]
    return value.reshape(layout.shape).transpose(order).reshape(extents)


def laid_out(value: np.ndarray, layout: Layout, roles: Sequence[str]) -> np.ndarray:
    """Turns an array with one axis per role into a layout's shape, the recorded value's own up to reshape."""
    order = [k for role in roles for k in _axes(layout, role)]
    split = value.reshape([layout.shape[k] for k in order])
    return split.transpose([order.index(axis) for axis in range(len(order))])


def convolve(facts: ConvolutionFacts, arrays: Arrays) -> np.ndarray:
    """Evaluates a convolution; sums in float64 where the operands are floats."""
    roles = _result_roles(facts)
    return laid_out(_convolved(arrays, facts), facts.result, roles)


def convolve_and_finish(facts: EpilogueFacts, arrays: Arrays) -> np.ndarray:
    """Evaluates a convolution, then bias, batch norm, residual and activation, in float64."""
    roles = _result_roles(facts.convolution)
    value = _convolved(arrays, facts.convolution)

    def vector(name: str, otherwise: float) -> np.ndarray:
        if name not in arrays:
            return np.asarray(otherwise)
        channels = arrays[name].astype(np.float64).reshape(value.shape[1:3])
        return channels.reshape(1, *channels.shape, *[1] * (value.ndim - 3))

    if facts.bias:
        value = value + vector("bias", 0.0)
    if facts.norm is not None:
        centred = value - vector("bn_mean", 0.0)
        scaled = centred / np.sqrt(vector("bn_variance", 1.0) + facts.norm)
        value = scaled * vector("bn_scale", 1.0) + vector("bn_shift", 0.0)
    for k, step in enumerate(facts.steps):
        value = STEPS[step](value, vector(f"step{k}", 0.0))
    if facts.residual_last:
        value = ACTIVATIONS[facts.activation](value)
    if facts.residual:
        value = value + spread(arrays["residual"], facts.result, roles)
    if not facts.residual_last:
        value = ACTIVATIONS[facts.activation](value)
    return laid_out(value, facts.result, roles)


def _result_roles(facts: ConvolutionFacts) -> list[str]:
    return ["b", "g", "f", *(str(k) for k in range(len(facts.windows)))]


def _convolved(arrays: Arrays, facts: ConvolutionFacts) -> np.ndarray:
    """Gives the canonical result: [batch, group, feature, positions...]."""
    axes = [str(k) for k in range(len(facts.windows))]
    image = spread(arrays["x"], facts.image, ["b", "f", *axes])
    kernel = spread(arrays["kernel"], facts.kernel, ["g", "o", "i", *axes])
    for k, window in enumerate(facts.windows):
        image = _padded(image, 2 + k, window, 0)
        if window.reversed:
            kernel = np.flip(kernel, 3 + k)
    image = image.reshape(image.shape[0], facts.groups, facts.in_channels, *image.shape[2:])
    counts = [_positions(image.shape[3 + k], window) for k, window in enumerate(facts.windows)]
    dtype = np.float64 if image.dtype.kind not in "biu" else image.dtype
    total: np.ndarray | None = None
    for taps in product(*(range(window.size) for window in facts.windows)):
        part = image[(slice(None), slice(None), slice(None), *_cuts(taps, facts.windows, counts))]
        weights: np.ndarray = kernel[(slice(None),) * 3 + taps]
        product_of_tap = np.einsum("bgi...,goi->bgo...", part.astype(dtype), weights.astype(dtype))
        total = product_of_tap if total is None else total + product_of_tap
    assert total is not None  # every window has at least one tap
    return total


def reduce_windows(facts: WindowReduceFacts, arrays: Arrays) -> np.ndarray:
    """Evaluates a reduction over windows; sums in float64 where the operand is a float."""
    image = arrays["x"]
    for k, window in enumerate(facts.windows):
        image = _padded(image, k, window, 0 if facts.pad_fill is None else facts.pad_fill)
    counts = [_positions(image.shape[k], window) for k, window in enumerate(facts.windows)]
    dtype = np.float64 if facts.reducer == "sum" and image.dtype.kind not in "biu" else image.dtype
    total: np.ndarray | None = None
    for taps in product(*(range(window.size) for window in facts.windows)):
        part = image[tuple(_cuts(taps, facts.windows, counts))].astype(dtype)
        if total is None:
            total = part.copy()
        elif facts.reducer == "sum":
            total = total + part
        else:
            total = (np.maximum if facts.reducer == "max" else np.minimum)(total, part)
    assert total is not None  # every window has at least one tap
    if facts.scale != 1.0:
        total = total * facts.scale
    if facts.counted is not None:
        total = total / divisors(facts.windows, facts.counted, arrays["x"].shape)
    roles = [str(k) for k in range(image.ndim)]
    return laid_out(total, facts.result, roles)


def _axes(layout: Layout, role: str) -> list[int]:
    found = [k for k, other in enumerate(layout.roles) if other == role]
    return sorted(found, key=lambda k: layout.rank[k])


def _padded(image: np.ndarray, axis: int, window: Window, fill: float) -> np.ndarray:
    """Puts zeros between elements, then pads or crops both ends of one axis."""
    before, after = image.shape[:axis], image.shape[axis + 1 :]
    if window.base_dilation != 1:
        apart = _filled(image.reshape((*before, -1, 1, *after)), axis + 1, 0, window.base_dilation - 1, fill)
        image = apart.reshape((*before, -1, *after))
        image = image[(*[slice(None)] * axis, slice(0, image.shape[axis] - window.base_dilation + 1))]
    whole = _filled(image, axis, max(window.low, 0), max(window.high, 0), fill)
    crop = slice(max(-window.low, 0), whole.shape[axis] - max(-window.high, 0))
    return whole[(*[slice(None)] * axis, crop)]


def _filled(image: np.ndarray, axis: int, low: int, high: int, fill: float) -> np.ndarray:
    if low == high == 0:
        return image
    widths = [(low, high) if k == axis else (0, 0) for k in range(image.ndim)]
    return np.pad(image, widths, constant_values=fill)


def _positions(extent: int, window: Window) -> int:
    return (extent - (window.size - 1) * window.dilation - 1) // window.stride + 1


def _cuts(taps: Sequence[int], windows: Sequence[Window], counts: Sequence[int]) -> list[slice]:
    return [
        slice(tap * w.dilation, tap * w.dilation + (count - 1) * w.stride + 1, w.stride)
        for tap, w, count in zip(taps, windows, counts, strict=True)
    ]
