"""Reduces windows over one or two neighbouring axes of [outer, rows, columns, inner]: first down, then across.

What lies outside counts as `fill`. Each result row is made from one line of scratch: the columns that its windows read,
reduced down, between borders that are filled once, so that no window has to look where the image ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from topos_core.kernels.host import Host
from topos_core.kernels.vocabulary.blocks import WINDOW
from topos_core.kernels.vocabulary.combine import combiner
from topos_core.kernels.vocabulary.emitter import Emitter
from topos_core.kernels.vocabulary.memory import larger, loader, reader, smaller
from topos_core.kernels.vocabulary.rows import Step, row_map
from topos_core.kernels.vocabulary.scalar import SCALARS
from topos_core.kernels.vocabulary.sharing import take

get = reader(WINDOW)


def kernel(host: Host, dtype: str, reducer: str) -> Any:
    """Makes the kernel (block, worker) of a `WINDOW` block."""
    scalar = SCALARS[dtype]
    size, one = scalar.bytes, scalar.numba(1)
    load, combine = loader(scalar), combiner(reducer, scalar)
    copy = row_map(host, scalar, (1,), combine)
    join = row_map(host, scalar, (1, 1), combine)
    join_three = row_map(host, scalar, (1, 1, 1), combine)
    join_value = row_map(host, scalar, (1,), combine, values=1)
    every_second = row_map(host, scalar, (2,), combine)
    join_every_second = row_map(host, scalar, (1, 2), combine)
    # the last combination of a short window; a sum's factor comes with it
    last_of = _scaled(combine) if reducer == "sum" else _unscaled(combine)
    two, three = row_map(host, scalar, (1, 1), last_of, values=1), row_map(host, scalar, (1, 1, 1), last_of, values=1)
    two_seconds = row_map(host, scalar, (2, 2), last_of, values=1)
    three_seconds = row_map(host, scalar, (2, 2, 2), last_of, values=1)
    summed = int(reducer == "sum")
    set_value = row_map(host, scalar, (), combine, values=1)
    multiply = row_map(host, scalar, (1,), _multiply, values=1)

    def window(args, worker):  # type: ignore[no-untyped-def]
        columns, results, inner = get(args, "columns"), get(args, "result_columns"), get(args, "inner")
        down, across = get(args, "down_size"), get(args, "across_size")
        stride, dilation, low = get(args, "across_stride"), get(args, "across_dilation"), get(args, "across_low")
        values = get(args, "values")
        fill, row_fill, scale = load(values, 0), load(values, 1), load(values, 2)
        line = get(args, "scratch") + worker * get(args, "slot_bytes")
        # the line holds columns -low to -low + reach; [first, end) of them stand in the image
        reach = (results - 1) * stride + (across - 1) * dilation + 1
        first, end = larger(0, low), larger(0, smaller(reach, columns + low))
        first = smaller(first, end)
        width = (end - first) * inner
        middle, begin = line + first * inner * size, (first - low) * inner * size
        alone = down == 1 and end - first == reach
        if not alone:
            set_value(line, row_fill, first * inner)
            set_value(line + end * inner * size, row_fill, (reach - end) * inner)
        item = take(args, worker)
        while item < get(args, "items"):
            outer, chunk = item // get(args, "chunks"), item % get(args, "chunks")
            first_row = chunk * get(args, "chunk_rows")
            last_row = smaller(get(args, "result_rows"), first_row + get(args, "chunk_rows"))
            for row in range(first_row, last_row):
                top = row * get(args, "down_stride") - get(args, "down_low")
                step, image = get(args, "down_dilation"), get(args, "x") + outer * get(args, "x_outer") * size + begin
                x_row = get(args, "x_row") * size
                source = line
                if down == 3 and top >= 0 and top + 2 * step < get(args, "rows"):
                    at = image + top * x_row
                    join_three(middle, at, at + step * x_row, at + 2 * step * x_row, width)
                elif alone and top >= 0 and top < get(args, "rows"):
                    source = image + top * x_row - first * inner * size
                else:
                    present, earlier = 0, 0
                    for tap in range(down):
                        y = top + tap * step
                        if y >= 0 and y < get(args, "rows"):
                            at = image + y * x_row
                            if present == 1:
                                join(middle, earlier, at, width)
                            elif present > 1:
                                join(middle, middle, at, width)
                            earlier = at
                            present += 1
                    if present == 0:
                        set_value(middle, row_fill, width)
                    else:
                        if present == 1:
                            copy(middle, earlier, width)
                        for _tap in range(present, down):
                            join_value(middle, middle, fill, width)
                target = get(args, "out") + (outer * get(args, "out_outer") + row * get(args, "out_row")) * size
                if inner == 1 and stride <= 2:
                    second, third = source + dilation * size, source + 2 * dilation * size
                    factor = scale if across <= 3 else one
                    if stride == 1:
                        if across == 1:
                            copy(target, source, results)
                        elif across == 2:
                            two(target, source, second, factor, results)
                        else:
                            three(target, source, second, third, factor, results)
                        for tap in range(3, across):
                            join(target, target, source + tap * dilation * size, results)
                    else:
                        if across == 1:
                            every_second(target, source, results)
                        elif across == 2:
                            two_seconds(target, source, second, factor, results)
                        else:
                            three_seconds(target, source, second, third, factor, results)
                        for tap in range(3, across):
                            join_every_second(target, target, source + tap * dilation * size, results)
                    done = summed == 1 and (across == 2 or across == 3)
                else:
                    done = False
                    for column in range(results):
                        place, at = target + column * inner * size, source + column * stride * inner * size
                        if across == 1:
                            copy(place, at, inner)
                        else:
                            join(place, at, at + dilation * inner * size, inner)
                        for tap in range(2, across):
                            join(place, place, at + tap * dilation * inner * size, inner)
                if scale != one and not done:
                    multiply(target, target, scale, results * inner)
            item = take(args, worker)

    return window


def _scaled(combine: Step) -> Step:
    """Combines all operands but the last, which multiplies."""
    return lambda emitter, operands: _multiply(emitter, (combine(emitter, operands[:-1]), operands[-1]))


def _unscaled(combine: Step) -> Step:
    return lambda emitter, operands: combine(emitter, operands[:-1])


def _multiply(emitter: Emitter, operands: Sequence[Any]) -> Any:
    multiply = emitter.builder.mul if emitter.is_integer else emitter.mul
    return multiply(*operands)
