"""Merges the sums of `row_statistics` to a batch norm's vectors: centre, factor and summand per column, mean, variance.

Blocks are merged by Chan's rule in f64; differences of centres keep the digits that means lose. An item is a strip of channels, whose
columns lie side by side in registers: block after block is read in rows, as it was written.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from topos_core.kernels.host import Host
from topos_core.kernels.vocabulary.blocks import NORM
from topos_core.kernels.vocabulary.emitter import Emitter
from topos_core.kernels.vocabulary.memory import loader, reader, smaller, square_root, storer, where_finite
from topos_core.kernels.vocabulary.rows import row_map
from topos_core.kernels.vocabulary.scalar import SCALARS
from topos_core.kernels.vocabulary.sharing import take

get = reader(NORM)
INFINITY = float("inf")


def kernel(host: Host, dtype: str) -> Any:
    """Makes the kernel (block, worker) of a `NORM` block; scratch is five f64 rows of a strip."""
    scalar, double = SCALARS[dtype], SCALARS["f64"]
    number, wide = scalar.numba, double.numba
    load, store = loader(scalar), storer(scalar)
    load_double, store_double = loader(double), storer(double)
    clear = row_map(host, double, (), lambda emitter, operands: operands[0], values=1)
    add_offset = row_map(host, double, (1, 1, 1, 1), _plus_offset, values=1)
    add_plain = row_map(host, double, (1, 1), _plus_plain, values=1)
    add_squares = row_map(host, double, (1, 1, 1, 1, 1), _plus_squares, values=1)
    keep_largest = row_map(host, double, (1, 1), _larger)

    def merge(args, worker):  # type: ignore[no-untyped-def]
        channels, inner, rows, strip = get(args, "channels"), get(args, "inner"), get(args, "outer"), get(args, "strip")
        blocks, block_rows, width = get(args, "blocks"), get(args, "block_rows"), get(args, "channels") * inner
        center = get(args, "scratch") + worker * get(args, "slot_bytes")
        row_bytes = strip * inner * 8
        offset, plain = center + row_bytes, center + 2 * row_bytes
        squares, largest = center + 3 * row_bytes, center + 4 * row_bytes
        total, epsilon = wide(rows * inner), load_double(get(args, "epsilon"), 0)
        item = take(args, worker)
        while item < get(args, "items"):
            begin = item * strip
            several = smaller(strip, channels - begin)
            columns = several * inner
            centers = get(args, "first_totals") + begin * inner * 8
            sums = get(args, "totals") + begin * inner * 8
            for i in range(columns):  # a channel's first column in the first block stands for its centre
                store_double(center, i, load_double(centers, i // inner * inner))
            clear(offset, 0.0, columns)
            clear(plain, 0.0, columns)
            for block in range(blocks):
                count, at = wide(smaller(block_rows, rows - block * block_rows)), block * width * 8
                add_offset(offset, offset, centers + at, center, sums + 2 * at, count, columns)
                add_plain(plain, plain, centers + at, count, columns)
            for k in range(several):
                moved, sum_of_all = 0.0, 0.0
                for i in range(k * inner, (k + 1) * inner):
                    moved += load_double(offset, i)
                    sum_of_all += load_double(plain, i)
                middle = wide(number(load_double(center, k * inner) + moved / total))
                mean = sum_of_all / total
                if mean - mean != mean - mean:  # an infinite or NaN element
                    middle = mean
                for i in range(k * inner, (k + 1) * inner):
                    store_double(center, i, middle)
            clear(offset, 0.0, columns)
            clear(squares, 0.0, columns)
            clear(largest, 0.0, columns)
            for block in range(blocks):
                count, at = wide(smaller(block_rows, rows - block * block_rows)), block * width * 8
                first, second = sums + 2 * at, sums + 2 * at + width * 8
                add_offset(offset, offset, centers + at, center, first, count, columns)
                add_squares(squares, squares, centers + at, center, first, second, count, columns)
                keep_largest(largest, largest, second, columns)
            for k in range(several):
                channel, middle = begin + k, load_double(center, k * inner)
                moved, spread, overflow = 0.0, 0.0, 0
                for i in range(k * inner, (k + 1) * inner):
                    moved += load_double(offset, i)
                    spread += load_double(squares, i)
                    if load_double(largest, i) == INFINITY:
                        overflow = 1
                moved = moved / total
                variance = spread / total - moved * moved
                variance = 0.0 if variance < 0.0 else variance
                if spread - spread != spread - spread and middle - middle == middle - middle:
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
                store_double(
                    get(args, "mean"), channel, middle + (moved if middle - middle == middle - middle else 0.0)
                )
                store_double(get(args, "variance"), channel, variance)
                factor_here = number(factor)
                # as in `channel_norm`
                late = where_finite(wide(factor_here), moved * factor, 0.0)
                early = where_finite(wide(factor_here), 0.0, moved)
                for i in range(channel * inner, (channel + 1) * inner):
                    store(get(args, "center"), i, number(middle + early))
                    store(get(args, "factor"), i, factor_here)
                    store(get(args, "summand"), i, number(summand - late))
            item = take(args, worker)

    return merge


def _plus_offset(emitter: Emitter, operands: Sequence[Any]) -> Any:
    """Adds the sum over a block of x - center, from the sum around the block's own centre."""
    offset, here, center, first, count = operands
    return emitter.add(offset, emitter.fma(emitter.sub(here, center), count, first))


def _plus_plain(emitter: Emitter, operands: Sequence[Any]) -> Any:
    plain, here, count = operands
    return emitter.fma(here, count, plain)


def _plus_squares(emitter: Emitter, operands: Sequence[Any]) -> Any:
    """Adds the sum over a block of (x - center)^2, from the sums around the block's own centre."""
    squares, here, center, first, second, count = operands
    difference = emitter.sub(here, center)
    twice = emitter.fma(count, difference, emitter.add(first, first))
    return emitter.add(squares, emitter.fma(difference, twice, second))


def _larger(emitter: Emitter, operands: Sequence[Any]) -> Any:
    """Gives the larger one; a NaN that comes second is passed over."""
    largest, one = operands
    return emitter.builder.select(emitter.builder.fcmp_ordered(">", one, largest), one, largest)
