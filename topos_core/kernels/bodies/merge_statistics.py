"""Merges the sums of `row_statistics` to a batch norm's vectors: centre, factor and summand per column, mean, variance.

Blocks are merged by Chan's rule in f64; differences of centres keep the digits that means lose.
"""

from __future__ import annotations

from typing import Any

from topos_core.kernels.host import Host
from topos_core.kernels.vocabulary.blocks import NORM
from topos_core.kernels.vocabulary.memory import loader, reader, smaller, square_root, storer
from topos_core.kernels.vocabulary.scalar import SCALARS

get = reader(NORM)
INFINITY = float("inf")


def kernel(host: Host, dtype: str) -> Any:
    """Makes the kernel (block, worker) of a `NORM` block; it has one item and is meant for one worker."""
    scalar, double = SCALARS[dtype], SCALARS["f64"]
    number, wide = scalar.numba, double.numba
    load, store = loader(scalar), storer(scalar)
    load_double, store_double = loader(double), storer(double)

    def merge(args, worker):  # type: ignore[no-untyped-def]
        items, channels, inner, rows = get(args, "items"), get(args, "channels"), get(args, "inner"), get(args, "outer")
        centers, sums, width = get(args, "first_totals"), get(args, "totals"), channels * inner
        total = wide(rows * inner)
        epsilon = load_double(get(args, "epsilon"), 0)
        for channel in range(channels):
            anchor = load_double(centers, channel * inner)
            offset, plain = 0.0, 0.0
            for item in range(items):
                count = wide(smaller(get(args, "block_rows"), rows - item * get(args, "block_rows")))
                for i in range(inner):
                    at = channel * inner + i
                    here = load_double(centers, item * width + at)
                    offset += (here - anchor) * count + load_double(sums, 2 * item * width + at)
                    plain += here * count
            center = wide(number(anchor + offset / total))
            plain = plain / total
            if plain - plain != plain - plain:  # an infinite or NaN element
                center = plain
            offset, squares, overflow = 0.0, 0.0, 0
            for item in range(items):
                count = wide(smaller(get(args, "block_rows"), rows - item * get(args, "block_rows")))
                for i in range(inner):
                    at = channel * inner + i
                    difference = load_double(centers, item * width + at) - center
                    first = load_double(sums, 2 * item * width + at)
                    second = load_double(sums, (2 * item + 1) * width + at)
                    if second == INFINITY:
                        overflow = 1
                    # sum over the block of (x - center)^2, from the sums around the block's own centre
                    squares += second + difference * (2.0 * first + count * difference)
                    offset += count * difference + first
            offset = offset / total
            variance = squares / total - offset * offset
            variance = 0.0 if variance < 0.0 else variance
            if squares - squares != squares - squares and center - center == center - center:
                overflow = 1  # only what lies between the blocks' centres overflowed
            if overflow == 1:
                variance = INFINITY  # squares that overflow make an infinite variance, as recorded
            factor = 1.0 / square_root(variance + epsilon)
            summand = 0.0
            if get(args, "scale") != 0:
                factor *= wide(load(get(args, "scale"), channel))
            if get(args, "shift") != 0:
                summand = wide(load(get(args, "shift"), channel))
            # an infinite element makes the offset NaN, not the mean
            store_double(get(args, "mean"), channel, center + (offset if center - center == center - center else 0.0))
            store_double(get(args, "variance"), channel, variance)
            for i in range(inner):
                store(get(args, "center"), channel * inner + i, number(center))
                store(get(args, "factor"), channel * inner + i, number(factor))
                store(get(args, "summand"), channel * inner + i, number(summand - offset * factor))

    return merge
