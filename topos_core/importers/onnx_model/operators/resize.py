"""Resizing by numbers: every output element along an axis is a fixed weighted sum of input elements."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from topos_core.importers.onnx_model.node import Node, Translate, Unsupported
from topos_core.recording import constant, lookup
from topos_core.recording.value import Value
from topos_core.tape.type import FLOATS


def _resize(node: Node) -> Any:
    x = node.x()
    if node.attribute("antialias", 0):
        raise Unsupported("it smooths before it shrinks")
    axes = [node.axis(each, x.ndim) for each in node.attribute("axes") or range(x.ndim)]
    scales, extents = _scales(node, x, axes)
    how = node.attribute("coordinate_transformation_mode", "half_pixel" if node.opset >= 11 else "asymmetric")
    mode = node.attribute("mode", "nearest")
    if mode != "nearest" and x.type.dtype not in FLOATS:
        raise Unsupported("it interpolates integers")
    for axis, scale, extent in zip(axes, scales, extents, strict=True):
        if scale == 1 and extent == x.shape[axis]:
            continue
        places = _coordinates(how, extent, x.shape[axis], scale)
        x = _along(node, x, axis, places, mode)
    return x


def _scales(node: Node, x: Value, axes: list[int]) -> tuple[list[float], list[int]]:
    """Gives the scale and the resulting extent of each axis."""
    at = 1 if node.opset < 11 else 2
    if node.has(3) and np.size(node.known(3, "sizes")):
        sizes = [int(each) for each in node.known(3, "sizes").reshape(-1)]
        scales = [size / x.shape[axis] for size, axis in zip(sizes, axes, strict=True)]
        policy = node.attribute("keep_aspect_ratio_policy", "stretch")
        if policy != "stretch":
            scale = min(scales) if policy == "not_larger" else max(scales)
            scales = [scale] * len(axes)
            sizes = [math.floor(scale * x.shape[axis] + 0.5) for axis in axes]
        return scales, sizes
    if "scales" in node.attributes:
        scales = [float(each) for each in node.attributes["scales"]]
    else:
        scales = [float(each) for each in node.known(at, "scales").reshape(-1)]
    return scales, [math.floor(x.shape[axis] * scale) for axis, scale in zip(axes, scales, strict=True)]


def _coordinates(how: str, extent: int, given: int, scale: float) -> np.ndarray:
    """Gives where along the input each output element lies."""
    i = np.arange(extent, dtype=np.float64)
    match how:
        case "half_pixel":
            return (i + 0.5) / scale - 0.5
        case "half_pixel_symmetric":
            return given / 2 * (1 - extent / (scale * given)) + (i + 0.5) / scale - 0.5
        case "pytorch_half_pixel":
            return (i + 0.5) / scale - 0.5 if extent > 1 else i * 0
        case "align_corners":
            if extent != scale * given:
                raise Unsupported(
                    "it aligns corners by a scale that gives no whole extent; implementations disagree there"
                )
            return i * (given - 1) / (extent - 1) if extent > 1 else i * 0
        case "asymmetric":
            return i / scale
        case _:
            raise Unsupported(f"its coordinates are {how}")


def _along(node: Node, x: Value, axis: int, places: np.ndarray, mode: str) -> Value:
    last = x.shape[axis] - 1
    if mode == "nearest":
        return lookup.gather(x, np.clip(_nearest(node, places), 0, last), axis)
    first = np.floor(places)
    part = places - first
    offsets: tuple[int, ...]
    if mode in ("linear", "bilinear"):
        offsets, weights = (0, 1), np.stack([1 - part, part])
    elif mode == "cubic":
        offsets, weights = (-1, 0, 1, 2), _cubic(part, node.attribute("cubic_coeff_a", -0.75))
    else:
        raise Unsupported(f"its mode is {mode}")
    taps = np.stack([first + offset for offset in offsets]).astype(np.int64)
    if node.attribute("exclude_outside", 0):
        weights = np.where((taps < 0) | (taps > last), 0, weights)
        weights = weights / weights.sum(axis=0)
    column = tuple(-1 if at == axis else 1 for at in range(x.ndim))
    total: Any = None
    for rows, weight in zip(taps, weights, strict=True):
        factors = constant.table(x.recorder, weight.reshape(column), x.type.dtype)
        term = lookup.gather(x, np.clip(rows, 0, last), axis) * factors
        total = term if total is None else total + term
    return total  # type: ignore[no-any-return]


def _nearest(node: Node, places: np.ndarray) -> np.ndarray:
    match node.attribute("nearest_mode", "round_prefer_floor" if node.opset >= 11 else "floor"):
        case "round_prefer_floor":
            found = np.ceil(places - 0.5)
        case "round_prefer_ceil":
            found = np.floor(places + 0.5)
        case "floor":
            found = np.floor(places)
        case _:
            found = np.ceil(places)
    return found.astype(np.int64)


def _cubic(part: np.ndarray, a: float) -> np.ndarray:
    """Gives the four weights of Keys' kernel (Keys 1981, doi:10.1109/TASSP.1981.1163711)."""

    def near(t: np.ndarray) -> Any:
        return ((a + 2) * t - (a + 3)) * t * t + 1

    def far(t: np.ndarray) -> Any:
        return ((a * t - 5 * a) * t + 8 * a) * t - 4 * a

    return np.stack([far(part + 1), near(part), near(1 - part), far(2 - part)])


OPERATORS: Final[Mapping[str, Translate]] = {"Resize": _resize, "Upsample": _resize}
