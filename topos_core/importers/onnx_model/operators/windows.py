"""Convolutions and pools: attributes become the formulas' arguments."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from topos_core import nn
from topos_core.importers.onnx_model.node import Node, Translate, Unsupported
from topos_core.importers.onnx_model.operators.contraction import shifted
from topos_core.nn.pooling import average_of_elements
from topos_core.nn.windows import windows_of
from topos_core.recording import movement
from topos_core.recording.value import Value

Sides = list[tuple[int, int]]


def geometry(node: Node, window: Sequence[int], spatial: Sequence[int]) -> tuple[list[int], list[int], Sides]:
    """Gives strides, dilations and (before, after) pads per spatial axis."""
    rank = len(window)
    strides, dilations = (node.attribute(name) or [1] * rank for name in ("strides", "dilations"))
    auto = node.attribute("auto_pad", "NOTSET")
    if auto in ("NOTSET", "", "VALID"):
        pads = (node.attribute("pads") if auto != "VALID" else None) or [0] * 2 * rank
        return strides, dilations, [(pads[at], pads[at + rank]) for at in range(rank)]
    sides: Sides = []
    for extent, size, stride, dilation in zip(spatial, window, strides, dilations, strict=True):
        total = max((-(-extent // stride) - 1) * stride + dilation * (size - 1) + 1 - extent, 0)
        first = total // 2 if auto == "SAME_UPPER" else total - total // 2
        sides.append((first, total - first))
    return strides, dilations, sides


def _convolution(node: Node) -> Any:
    x, weight = node.x(0), node.x(1)
    strides, dilations, sides = geometry(node, weight.shape[2:], x.shape[2:])
    return nn.convolution(x, weight, node.optional(2), strides, sides, dilations, node.attribute("group", 1))


def _convolution_integer(node: Node) -> Any:
    x, weight = shifted(node, 0, 2), shifted(node, 1, 3, (-1, *(1,) * (node.x(1).ndim - 1)))
    strides, dilations, sides = geometry(node, weight.shape[2:], x.shape[2:])
    return nn.convolution(x, weight, None, strides, sides, dilations, node.attribute("group", 1))


def _transposed(node: Node) -> Any:
    x, weight = node.x(0), node.x(1)
    window, rank = weight.shape[2:], x.ndim - 2
    strides, dilations, sides = geometry(node, window, x.shape[2:])
    extra = node.attribute("output_padding") or [0] * rank
    wanted = node.attribute("output_shape")
    auto = node.attribute("auto_pad", "NOTSET")
    if wanted is None and auto in ("SAME_UPPER", "SAME_LOWER"):
        wanted = [extent * stride for extent, stride in zip(x.shape[2:], strides, strict=True)]
    if wanted is not None:
        sides = []
        for at, extent in enumerate(wanted[-rank:]):
            full = strides[at] * (x.shape[2 + at] - 1) + extra[at] + dilations[at] * (window[at] - 1) + 1
            total = full - extent
            first = total // 2 if auto == "SAME_UPPER" else total - total // 2
            sides.append((first, total - first))
    return nn.convolution_transposed(
        x, weight, node.optional(2), strides, sides, extra, node.attribute("group", 1), dilations
    )


def _pooling(node: Node, x: Value) -> tuple[list[int], list[int], list[int], Sides, Sides]:
    """Gives window, strides, dilations, the pads that are declared, and those with what `ceil_mode` adds."""
    window = node.attribute("kernel_shape")
    strides, dilations, sides = geometry(node, window, x.shape[2:])
    if not node.attribute("ceil_mode", 0):
        return window, strides, dilations, sides, sides
    wide: Sides = []
    for at, (before, after) in enumerate(sides):
        reach = dilations[at] * (window[at] - 1) + 1
        extent = x.shape[2 + at]
        count = -(-(extent + before + after - reach) // strides[at]) + 1
        if (count - 1) * strides[at] >= extent + before:  # a window that would start in the padding behind is left out
            count -= 1
        wide.append((before, max(after, (count - 1) * strides[at] + reach - extent - before)))
    return window, strides, dilations, sides, wide


def _max_pool(node: Node) -> Any:
    if node.wants(1):
        raise Unsupported("it gives the places of its maxima; topos would need an argmax over windows")
    x = node.x()
    window, strides, dilations, _, wide = _pooling(node, x)
    return nn.max_pool(x, window, strides, wide, dilations)


def _average_pool(node: Node) -> Any:
    x = node.x()
    window, strides, dilations, sides, wide = _pooling(node, x)
    return average_of_elements(
        x, window, strides, wide, dilations, sides if node.attribute("count_include_pad", 0) else None
    )


def _lp_pool(node: Node) -> Any:
    x, p = node.x(), node.attribute("p", 2)
    window, strides, dilations, _, wide = _pooling(node, x)
    powers = abs(x) if p == 1 else x * x if p == 2 else abs(x) ** p
    total: Any = nn.sum_pool(powers, window, strides, wide, dilations)
    return total if p == 1 else np.sqrt(total) if p == 2 else total ** (1 / p)


def _everywhere(name: str) -> Translate:
    def translate(node: Node) -> Any:
        x = node.x()
        return getattr(x, name)(axis=tuple(range(2, x.ndim)), keepdims=True)

    return translate


def _global_lp_pool(node: Node) -> Any:
    x, p = node.x(), node.attribute("p", 2)
    total: Any = (abs(x) ** p).sum(axis=tuple(range(2, x.ndim)), keepdims=True)
    return total ** (1 / p)


def _lrn(node: Node) -> Any:
    """Divides by a power of the mean square of neighbouring channels."""
    x, size = node.x(), node.attribute("size")
    low = (size - 1) // 2
    sides = [(low, size - 1 - low)]
    squares = movement.moveaxis(x * x, 1, -1)
    total: Any = windows_of(squares, [size], [1], sides, [1], 0).sum(axis=-1)
    total = movement.moveaxis(total, -1, 1)
    scale = node.attribute("bias", 1.0) + node.attribute("alpha", 0.0001) / size * total
    return x / scale ** node.attribute("beta", 0.75)


def _unpooled(node: Node) -> Any:
    raise Unsupported("it writes to places that another node computed; topos would need a scatter that replaces")


def _columns_to_image(node: Node) -> Any:
    """Adds overlapping columns: a sum over window taps, each spread and moved to its place."""
    x = node.x()
    image, block = (list(map(int, node.known(at, what).reshape(-1))) for at, what in ((1, "shape"), (2, "block")))
    strides, dilations, sides = geometry(node, block, image)
    batch, channels = x.shape[0], x.shape[1] // math.prod(block)
    padded = [extent + sum(side) for extent, side in zip(image, sides, strict=True)]
    counts = [
        (extent - dilation * (size - 1) - 1) // stride + 1
        for extent, size, stride, dilation in zip(padded, block, strides, dilations, strict=True)
    ]
    taps = x.reshape(batch, channels, math.prod(block), *counts)
    total: Any = None
    for at, offsets in enumerate(np.ndindex(*block)):
        first = [
            offset * dilation - before for offset, dilation, (before, _) in zip(offsets, dilations, sides, strict=True)
        ]
        last = [
            extent - f - (count - 1) * stride - 1
            for extent, f, count, stride in zip(image, first, counts, strides, strict=True)
        ]
        moved = movement.pad_with(
            taps[:, :, at], (0, 0, *first), (0, 0, *last), 0, (0, 0, *(stride - 1 for stride in strides))
        )
        total = moved if total is None else total + moved
    return total


OPERATORS: Final[Mapping[str, Translate]] = {
    "Conv": _convolution, "ConvTranspose": _transposed, "ConvInteger": _convolution_integer, "MaxPool": _max_pool,
    "AveragePool": _average_pool, "LpPool": _lp_pool, "GlobalAveragePool": _everywhere("mean"),
    "GlobalMaxPool": _everywhere("max"), "GlobalLpPool": _global_lp_pool, "LRN": _lrn, "MaxUnpool": _unpooled,
    "Col2Im": _columns_to_image,
}  # fmt: skip
