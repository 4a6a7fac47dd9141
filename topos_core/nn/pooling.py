"""Pooling: windows over the last axes and a reduction of each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from topos_core.nn.arguments import Array, paddings, per_axis, refusal
from topos_core.nn.windows import windows_of

Sides = tuple[int, int]


def max_pool(x: Array, size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1) -> Array:
    """Takes the largest of each window; padding never wins.

    Args:
        x: [batch, channels, *spatial].
        size: Extents of the window: one number, or one per spatial axis.
        stride: Distance of the windows; their size where it is left out.
        padding: One number, one per axis, or (before, after) per axis.
        dilation: Distance of the elements inside a window.
    """
    return _extreme(np.max, -math.inf, x, size, stride, padding, dilation)


def min_pool(x: Array, size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1) -> Array:
    """Takes the smallest of each window; padding never wins. Arguments as in `max_pool`."""
    return _extreme(np.min, math.inf, x, size, stride, padding, dilation)


def sum_pool(x: Array, size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1) -> Array:
    """Adds up each window; padding counts as 0. Arguments as in `max_pool`."""
    taps, rank = _windows(x, size, stride, padding, dilation, 0)
    return np.sum(taps, axis=_last(taps, rank))


def avg_pool(
    x: Array, size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, count_include_pad: bool = True
) -> Array:
    """Averages each window.

    Args:
        x, size, stride, padding, dilation: As in `max_pool`.
        count_include_pad: Whether padding counts as elements that are 0; if not, it is left out of the average.
    """
    rank = _rank(x, size)
    window, reach = per_axis("size", size, rank, x), per_axis("dilation", dilation, rank, x)
    sides = paddings(padding, rank, window, (1,) * rank, reach, x)
    return average_of_elements(x, window, stride, sides, reach, sides if count_include_pad else None)


def average_of_elements(
    x: Array, size: Sequence[int], stride: Any, padding: Sequence[Sides], dilation: Any, counted: Sequence[Sides] | None
) -> Array:
    """Averages what each window has of the image and of the padding that counts.

    Args:
        x, size, stride, dilation: As in `max_pool`.
        padding: (before, after) per spatial axis.
        counted: How much of it counts as elements that are 0: a pool may reach further than its padding. None: nothing.
    """
    total = sum_pool(x, size, stride, padding, dilation)
    first = x.ndim - len(size)
    counts = [(0, 0)] * len(size) if counted is None else counted
    if all(tuple(all_) == tuple(some) for all_, some in zip(padding, counts, strict=True)):
        return total / math.prod(size)
    extents = [extent + sum(some) for extent, some in zip(x.shape[first:], counts, strict=True)]
    ones = np.ones_like(x, shape=(*(1,) * first, *extents))
    rest = [(low - before, high - after) for (low, high), (before, after) in zip(padding, counts, strict=True)]
    return total / sum_pool(ones, size, stride, rest, dilation)


def _extreme(reduce: Any, worst: float, x: Array, size: Any, stride: Any, padding: Any, dilation: Any) -> Array:
    fill: Any = worst
    if x.dtype.kind in "iu":
        fill = np.iinfo(x.dtype).min if worst < 0 else np.iinfo(x.dtype).max
    taps, rank = _windows(x, size, stride, padding, dilation, fill)
    return reduce(taps, axis=_last(taps, rank))


def _windows(x: Array, size: Any, stride: Any, padding: Any, dilation: Any, fill: Any) -> tuple[Array, int]:
    rank = _rank(x, size)
    window, reach = per_axis("size", size, rank, x), per_axis("dilation", dilation, rank, x)
    step = window if stride is None else per_axis("stride", stride, rank, x)
    sides = paddings(padding, rank, window, step, reach, x)
    return windows_of(x, window, step, sides, reach, fill), rank


def _rank(x: Array, size: Any) -> int:
    rank = len(size) if isinstance(size, (tuple, list)) else max(x.ndim - 2, 1)
    if rank > x.ndim:
        raise refusal(f"a window of {rank} axes over {x.ndim}; give one extent per spatial axis", x)
    return rank


def _last(taps: Array, rank: int) -> tuple[int, ...]:
    return tuple(range(taps.ndim - rank, taps.ndim))
