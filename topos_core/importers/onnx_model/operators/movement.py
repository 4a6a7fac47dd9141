"""Shapes, slices, pads and joins: what moves elements without computing with them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from topos_core.importers.onnx_model.node import Node, Translate, Unsupported
from topos_core.recording import constant, elementwise, joining, movement
from topos_core.recording.value import Value


def _reshape(node: Node) -> Any:
    x = node.x()
    wanted = node.numbers("shape", 1) or []
    if not node.attribute("allowzero", 0):
        wanted = [x.shape[at] if extent == 0 and at < x.ndim else extent for at, extent in enumerate(wanted)]
    return movement.reshape(x, tuple(wanted))


def _flatten(node: Node) -> Any:
    x = node.x()
    axis = node.attribute("axis", 1)
    axis = axis + x.ndim if axis < 0 else axis
    return movement.reshape(x, (math.prod(x.shape[:axis]), math.prod(x.shape[axis:])))


def _transpose(node: Node) -> Any:
    x = node.x()
    return movement.transpose(x, node.attribute("perm") or tuple(reversed(range(x.ndim))))


def _squeeze(node: Node) -> Any:
    axes = node.numbers("axes", 1)
    return movement.squeeze(node.x(), None if axes is None else tuple(axes))


def _unsqueeze(node: Node) -> Any:
    return movement.expand_dims(node.x(), tuple(node.numbers("axes", 1) or ()))


def _expand(node: Node) -> Any:
    x = node.x()
    wanted = tuple(int(each) for each in node.known(1, "shape").reshape(-1))
    return movement.spread(x, np.broadcast_shapes(x.shape, wanted))


def _concat(node: Node) -> Any:
    return joining.concatenate([node.x(at) for at in range(len(node))], node.attribute("axis", 1))


def _split(node: Node) -> Any:
    x = node.x()
    axis = node.axis(node.attribute("axis", 0), x.ndim)
    sizes = node.numbers("split", 1)
    parts = node.attribute("num_outputs") or len(node.outputs)
    if sizes is None:
        each = -(-x.shape[axis] // parts)
        sizes = [max(min(each, x.shape[axis] - at * each), 0) for at in range(parts)]
    ends = [sum(sizes[: at + 1]) for at in range(len(sizes))]
    if not ends or ends[-1] != x.shape[axis]:
        raise Unsupported(f"its parts {sizes} do not make up axis {axis} of {x.type}")
    return [movement.cut_axis(x, axis, end - size, end) for end, size in zip(ends, sizes, strict=True)]


def _slice(node: Node) -> Any:
    x = node.x()
    starts, ends = node.numbers("starts", 1), node.numbers("ends", 2)
    if starts is None or ends is None:
        raise Unsupported("its starts or ends are left out")
    axes = node.numbers("axes", 3) if node.opset >= 10 or "axes" in node.attributes else None
    steps = node.numbers("steps", 4) if node.opset >= 10 else None
    axes = list(range(len(starts))) if axes is None else axes
    return sliced(x, starts, ends, [node.axis(each, x.ndim) for each in axes], steps or [1] * len(starts))


def sliced(x: Value, starts: Sequence[int], ends: Sequence[int], axes: Sequence[int], steps: Sequence[int]) -> Any:
    """Slices as Python does; a negative step walks back."""
    low, high, step = [0] * x.ndim, list(x.shape), [1] * x.ndim
    turned: list[int] = []
    for start, end, axis, by in zip(starts, ends, axes, steps, strict=True):
        if by == 0:
            raise Unsupported("it slices with step 0")
        places = range(x.shape[axis])[slice(start, _end(end, by), by)]
        if by < 0:
            turned.append(axis)
            places = places[::-1]
        low[axis], high[axis] = (places[0], places[-1] + 1) if len(places) else (0, 0)
        step[axis] = abs(by)
    result = movement.cut(x, low, high, step)
    return movement.flip(result, tuple(turned)) if turned else result


def _end(end: int, step: int) -> int | None:
    """Python has no number for one before the first element; ONNX writes a very negative one."""
    return None if step < 0 and end < -(2**30) else end


def _tile(node: Node) -> Any:
    return np.tile(node.x(), [int(each) for each in node.known(1, "repeats").reshape(-1)])


def _pad(node: Node) -> Any:
    x = node.x()
    pads = node.numbers("pads", 1) or []
    axes = [int(each) for each in node.known(3, "axes").reshape(-1)] if node.has(3) else list(range(x.ndim))
    if len(pads) != 2 * len(axes):
        raise Unsupported(f"{len(pads)} pads for {len(axes)} axes")
    low, high = [0] * x.ndim, [0] * x.ndim
    for at, axis in enumerate(axes):
        low[node.axis(axis, x.ndim)], high[node.axis(axis, x.ndim)] = pads[at], pads[at + len(axes)]
    mode = node.attribute("mode", "constant")
    if mode == "constant":
        fill = node.attribute("value", 0.0)
        if node.has(2) and node.opset >= 11:
            return _filled(node, x, low, high)
        return movement.pad_with(x, low, high, fill)
    cropped = movement.cut(
        x,
        [max(-each, 0) for each in low],
        [extent - max(-each, 0) for extent, each in zip(x.shape, high, strict=True)],
    )
    widths = [(max(before, 0), max(after, 0)) for before, after in zip(low, high, strict=True)]
    return np.pad(cropped, widths, mode=mode)


def _filled(node: Node, x: Value, low: list[int], high: list[int]) -> Any:
    """Pads with an operand: a number where it is known, else a choice by a padded mask."""
    held = node.held[2]
    if isinstance(held, np.ndarray):
        return movement.pad_with(x, low, high, held.reshape(-1)[0])
    inside = movement.pad_with(constant.splat(x.recorder, True, "bool", x.shape), low, high, False)
    return elementwise.select(inside, movement.pad_with(x, low, high, 0), movement.reshape(node.x(2), ()))


def _space_to_depth(node: Node) -> Any:
    x, size = node.x(), node.attribute("blocksize")
    batch, channels, height, width = x.shape
    split = x.reshape(batch, channels, height // size, size, width // size, size)
    order = (0, 3, 5, 1, 2, 4) if node.attribute("mode", "DCR") == "DCR" else (0, 1, 3, 5, 2, 4)
    return split.transpose(order).reshape(batch, channels * size * size, height // size, width // size)


def _depth_to_space(node: Node) -> Any:
    x, size = node.x(), node.attribute("blocksize")
    batch, channels, height, width = x.shape
    inner = channels // (size * size)
    if node.attribute("mode", "DCR") == "DCR":
        split = x.reshape(batch, size, size, inner, height, width).transpose(0, 3, 4, 1, 5, 2)
    else:
        split = x.reshape(batch, inner, size, size, height, width).transpose(0, 1, 4, 2, 5, 3)
    return split.reshape(batch, inner, height * size, width * size)


def _triangle(node: Node) -> Any:
    k = int(node.known(1, "diagonal").reshape(-1)[0]) if node.has(1) else 0
    keep: Any = np.triu if node.attribute("upper", 1) else np.tril
    return keep(node.x(), k)


def _center_crop_pad(node: Node) -> Any:
    x = node.x()
    wanted = [int(each) for each in node.known(1, "shape").reshape(-1)]
    axes = node.attribute("axes") or list(range(x.ndim))
    start, stop, low, high = [0] * x.ndim, list(x.shape), [0] * x.ndim, [0] * x.ndim
    for axis, extent in zip((node.axis(each, x.ndim) for each in axes), wanted, strict=True):
        spare = x.shape[axis] - extent
        if spare >= 0:
            start[axis] = spare // 2
            stop[axis] = spare // 2 + extent
        else:
            low[axis] = -spare // 2
            high[axis] = -spare - low[axis]
    return movement.pad_with(movement.cut(x, start, stop), low, high, 0)


OPERATORS: Final[Mapping[str, Translate]] = {
    "Reshape": _reshape, "Flatten": _flatten, "Transpose": _transpose, "Squeeze": _squeeze, "Unsqueeze": _unsqueeze,
    "Expand": _expand, "Concat": _concat, "Split": _split, "Slice": _slice, "Tile": _tile, "Pad": _pad,
    "SpaceToDepth": _space_to_depth, "DepthToSpace": _depth_to_space, "Trilu": _triangle,
    "CenterCropPad": _center_crop_pad,
}  # fmt: skip
