"""Reduces windows over one or two neighbouring axes of [outer, rows, columns, inner]: first down, then across.

What lies outside counts as `fill`. Scratch is one row; a row that needs no reduction down is read in place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from topos_core.kernels.host import Host
from topos_core.kernels.vocabulary.blocks import WINDOW
from topos_core.kernels.vocabulary.combine import combiner
from topos_core.kernels.vocabulary.emitter import Emitter
from topos_core.kernels.vocabulary.memory import larger, loader, reader, smaller, take
from topos_core.kernels.vocabulary.rows import row_map
from topos_core.kernels.vocabulary.scalar import SCALARS

get = reader(WINDOW)


def kernel(host: Host, dtype: str, reducer: str) -> Any:
    """Makes the kernel (block, worker) of a `WINDOW` block."""
    scalar = SCALARS[dtype]
    size, one = scalar.bytes, scalar.numba(1)
    load, combine = loader(scalar), combiner(reducer, scalar)
    copy = row_map(host, scalar, (1,), combine)
    join = row_map(host, scalar, (1, 1), combine)
    join_value = row_map(host, scalar, (1,), combine, values=1)
    every_second = row_map(host, scalar, (2,), combine)
    join_every_second = row_map(host, scalar, (1, 2), combine)
    join_two_seconds = row_map(host, scalar, (2, 2), combine)
    set_value = row_map(host, scalar, (), combine, values=1)
    multiply = row_map(host, scalar, (1,), _multiply, values=1)

    def window(args, worker):  # type: ignore[no-untyped-def]
        columns, results, inner = get(args, "columns"), get(args, "result_columns"), get(args, "inner")
        down, across = get(args, "down_size"), get(args, "across_size")
        stride, dilation, low = get(args, "across_stride"), get(args, "across_dilation"), get(args, "across_low")
        values = get(args, "values")
        fill, row_fill, scale = load(values, 0), load(values, 1), load(values, 2)
        width = columns * inner
        scratch = get(args, "scratch") + worker * get(args, "slot_bytes")
        # results [begin, end) read columns that all exist; they are done together where that is a run of memory
        begin, end = results, results
        if inner == 1 and stride <= 2:
            begin = smaller(results, larger(0, (low + stride - 1) // stride))
            last_start = columns - 1 + low - (across - 1) * dilation
            end = begin
            if last_start >= 0:
                end = larger(begin, smaller(results, last_start // stride + 1))
        item = take(get(args, "counter"))
        while item < get(args, "items"):
            outer, chunk = item // get(args, "chunks"), item % get(args, "chunks")
            first = chunk * get(args, "chunk_rows")
            last = smaller(get(args, "result_rows"), first + get(args, "chunk_rows"))
            for row in range(first, last):
                source, present = 0, 0
                top = row * get(args, "down_stride") - get(args, "down_low")
                for tap in range(down):
                    y = top + tap * get(args, "down_dilation")
                    if y >= 0 and y < get(args, "rows"):
                        line = get(args, "x") + (outer * get(args, "x_outer") + y * get(args, "x_row")) * size
                        if present == 0:
                            source = line
                        else:
                            join(scratch, source, line, width)
                            source = scratch
                        present += 1
                if present == 0:
                    set_value(scratch, row_fill, width)
                    source = scratch
                else:
                    for _tap in range(present, down):
                        join_value(scratch, source, fill, width)
                        source = scratch
                target = get(args, "out") + (outer * get(args, "out_outer") + row * get(args, "out_row")) * size
                if end > begin:
                    shifted, place, count = source + (begin * stride - low) * size, target + begin * size, end - begin
                    if stride == 1:
                        if across == 1:
                            copy(place, shifted, count)
                        else:
                            join(place, shifted, shifted + dilation * size, count)
                        for tap in range(2, across):
                            join(place, place, shifted + tap * dilation * size, count)
                    else:
                        if across == 1:
                            every_second(place, shifted, count)
                        else:
                            join_two_seconds(place, shifted, shifted + dilation * size, count)
                        for tap in range(2, across):
                            join_every_second(place, place, shifted + tap * dilation * size, count)
                column = end if begin == 0 else 0
                while column < results:
                    place = target + column * inner * size
                    started = 0
                    for tap in range(across):
                        x = column * stride + tap * dilation - low
                        at = source + x * inner * size
                        if x >= 0 and x < columns:
                            if started == 0:
                                copy(place, at, inner)
                            else:
                                join(place, place, at, inner)
                        elif started == 0:
                            set_value(place, row_fill, inner)
                        else:
                            join_value(place, place, row_fill, inner)
                        started = 1
                    column += 1
                    if column == begin:
                        column = end
                if scale != one:
                    multiply(target, target, scale, results * inner)
            item = take(get(args, "counter"))

    return window


def _multiply(emitter: Emitter, operands: Sequence[Any]) -> Any:
    multiply = emitter.builder.mul if emitter.is_integer else emitter.mul
    return multiply(*operands)
