"""Pooling by windows and to a given size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from topos_core import nn
from topos_core.importers.torch_export.call import Call, Table
from topos_core.nn.pooling import average_of_elements
from topos_core.recording.value import Value


def _spread(given: Any, rank: int) -> tuple[int, ...]:
    values = tuple(given) if isinstance(given, (list, tuple)) else (given,)
    return values * rank if len(values) == 1 else values


def _sides(
    x: Value, size: Sequence[int], stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int],
    shape: Sequence[int],
) -> tuple[tuple[int, int], ...]:  # fmt: skip
    """Pads behind what `ceil_mode` reaches over the end, from the result's own extents."""
    rank = len(size)
    sides = []
    for axis in range(rank):
        extent, out = x.type.shape[x.ndim - rank + axis], shape[len(shape) - rank + axis]
        reach = (out - 1) * stride[axis] + dilation[axis] * (size[axis] - 1) + 1
        sides.append((padding[axis], max(reach - extent - padding[axis], padding[axis])))
    return tuple(sides)


def _maximum(rank: int) -> Callable[..., Any]:
    def formula(
        call: Call, x: Value, size: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil: bool = False
    ) -> Any:
        window, reach = _spread(size, rank), _spread(dilation, rank)
        step = _spread(stride, rank) if stride else window
        pads = _spread(padding, rank)
        ends = _sides(x, window, step, pads, reach, call.shape) if ceil else tuple((p, p) for p in pads)
        return nn.max_pool(x, window, step, ends, reach)

    return formula


def _average(rank: int) -> Callable[..., Any]:
    def formula(
        call: Call, x: Value, size: Any, stride: Any = (), padding: Any = 0, ceil: bool = False,
        count_include_pad: bool = True, divisor: Any = None,
    ) -> Any:  # fmt: skip
        window = _spread(size, rank)
        step = _spread(stride, rank) if stride else window
        pads = _spread(padding, rank)
        ends = [(p, p) for p in pads]
        reached = _sides(x, window, step, pads, (1,) * rank, call.shape) if ceil else ends
        if divisor is not None:
            return nn.sum_pool(x, window, step, reached) / divisor
        return average_of_elements(x, window, step, reached, 1, ends if count_include_pad else None)

    return formula


def _adaptive(function: Callable[..., Any], whole: Callable[..., Any], rank: int) -> Callable[..., Any]:
    """Windows of one size where the extents divide, or the mean of everything; uneven windows one by one."""

    def formula(call: Call, x: Value, size: Any) -> Any:
        before = x.type.shape[x.ndim - rank :]
        after = call.shape[len(call.shape) - rank :]
        axes = tuple(range(x.ndim - rank, x.ndim))
        if after == (1,) * rank:
            return whole(x, axis=axes, keepdims=True)
        if before == after:
            return x
        if any(a == 0 or b % a for b, a in zip(before, after, strict=True)):
            return _uneven(whole, x, after, axes)
        window = tuple(b // a for b, a in zip(before, after, strict=True))
        return function(x, window)

    return formula


def _uneven(whole: Callable[..., Any], x: Value, after: Sequence[int], axes: Sequence[int]) -> Any:
    """Reduces overlapping windows of several sizes one axis after the other: a window is a product of intervals."""
    for axis, count in zip(axes, after, strict=True):
        extent = x.type.shape[axis]
        pieces = []
        for at in range(count):
            low, high = at * extent // count, -(-(at + 1) * extent // count)
            cut = tuple(slice(None) if each != axis else slice(low, high) for each in range(x.ndim))
            pieces.append(whole(x[cut], axis=axis, keepdims=True))
        x = np.concatenate(pieces, axis=axis) if len(pieces) > 1 else pieces[0]  # type: ignore[assignment]
    return x


TABLE: Final[Table] = {
    **{f"max_pool{rank}d": _maximum(rank) for rank in (1, 2, 3)},
    **{f"avg_pool{rank}d": _average(rank) for rank in (1, 2, 3)},
    **{f"adaptive_avg_pool{rank}d": _adaptive(nn.avg_pool, np.mean, rank) for rank in (1, 2, 3)},
}
