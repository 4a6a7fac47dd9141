"""Sums of blocks of rows of [rows, channels], for statistics down the columns.

A block's first pass gives a rounded centre per column, its second pass sum(d) and sum(d * d) with d = x - centre;
`merge_statistics` merges blocks in f64 (Chan, Golub, LeVeque 1983). A block stays in the second-level cache between the passes. Four rows are added
at a time, so that sums are loaded and stored once for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from topos_core.kernels.host import Host
from topos_core.kernels.vocabulary.blocks import NORM
from topos_core.kernels.vocabulary.emitter import Emitter
from topos_core.kernels.vocabulary.memory import loader, reader, smaller, storer
from topos_core.kernels.vocabulary.rows import row_map
from topos_core.kernels.vocabulary.scalar import SCALARS
from topos_core.kernels.vocabulary.sharing import take

get = reader(NORM)


def kernel(host: Host, dtype: str) -> Any:
    """Makes the kernel (block, worker) of a `NORM` block; scratch is three rows."""
    scalar = SCALARS[dtype]
    size, number = scalar.bytes, scalar.numba
    load, store_double = loader(scalar), storer(SCALARS["f64"])
    clear = row_map(host, scalar, (), lambda emitter, operands: operands[0], values=1)
    add = row_map(host, scalar, (1, 1), lambda emitter, operands: emitter.add(*operands))
    scale = row_map(host, scalar, (1,), lambda emitter, operands: emitter.mul(*operands), values=1)
    add_deviation = row_map(host, scalar, (1, 1, 1), _plus_deviations)
    add_square = row_map(host, scalar, (1, 1, 1), _plus_squares)
    four = (1,) * 4
    add_four = row_map(host, scalar, (1, *four), _plus_four)
    add_four_deviations = row_map(host, scalar, (1, 1, *four), _plus_deviations)
    add_four_squares = row_map(host, scalar, (1, 1, *four), _plus_squares)

    def statistics(args, worker):  # type: ignore[no-untyped-def]
        rows, channels = get(args, "outer"), get(args, "channels")
        center = get(args, "scratch") + worker * get(args, "slot_bytes")
        first, second = center + channels * size, center + 2 * channels * size
        item = take(args, worker)
        while item < get(args, "items"):
            start = item * get(args, "block_rows")
            end = smaller(rows, start + get(args, "block_rows"))
            clear(center, number(0), channels)
            clear(first, number(0), channels)
            clear(second, number(0), channels)
            step = channels * size
            x, fours = get(args, "x") + start * step, (end - start) // 4
            for k in range(fours):
                at = x + 4 * k * step
                add_four(center, center, at, at + step, at + 2 * step, at + 3 * step, channels)
            for k in range(4 * fours, end - start):
                add(center, center, x + k * step, channels)
            scale(center, center, number(1) / number(end - start), channels)
            for k in range(fours):
                at = x + 4 * k * step
                add_four_deviations(first, first, center, at, at + step, at + 2 * step, at + 3 * step, channels)
                add_four_squares(second, second, center, at, at + step, at + 2 * step, at + 3 * step, channels)
            for k in range(4 * fours, end - start):
                add_deviation(first, first, center, x + k * step, channels)
                add_square(second, second, center, x + k * step, channels)
            for channel in range(channels):
                at = item * channels + channel
                store_double(get(args, "first_totals"), at, load(center, channel))
                store_double(get(args, "totals"), 2 * item * channels + channel, load(first, channel))
                store_double(get(args, "totals"), (2 * item + 1) * channels + channel, load(second, channel))
            item = take(args, worker)

    return statistics


def _plus_four(emitter: Emitter, operands: Sequence[Any]) -> Any:
    total, a, b, c, d = operands
    return emitter.add(total, emitter.add(emitter.add(a, b), emitter.add(c, d)))


def _plus_deviations(emitter: Emitter, operands: Sequence[Any]) -> Any:
    total, center, *several = operands
    for x in several:
        total = emitter.add(total, emitter.sub(x, center))
    return total


def _plus_squares(emitter: Emitter, operands: Sequence[Any]) -> Any:
    total, center, *several = operands
    for x in several:
        deviation = emitter.sub(x, center)
        total = emitter.fma(deviation, deviation, total)
    return total
