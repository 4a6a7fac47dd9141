"""The epilogue of a register tile, lane by lane: any output stride, any activation, any machine."""

from __future__ import annotations

from typing import Any

from topos_core.kernels.host import Host
from topos_core.kernels.vocabulary.blocks import CONTRACTION, TILE
from topos_core.kernels.vocabulary.memory import call, larger, loader, reader, smaller, storer, writer
from topos_core.kernels.vocabulary.scalar import SCALARS

get = reader(CONTRACTION)
got = reader(TILE)
put = writer(TILE)


def kernel(host: Host, dtype: str) -> Any:
    """Makes the kernel (tile block, contraction block)."""
    size = SCALARS[dtype].bytes
    load, store = loader(SCALARS[dtype]), storer(SCALARS[dtype])
    lanes = host.lanes(dtype)

    def spread(block, args):  # type: ignore[no-untyped-def]
        activation, limits = get(args, "activation"), get(args, "limits")
        low, high = load(limits, 0), load(limits, 1)
        pitch, width, step = get(args, "pitch"), get(args, "width"), get(args, "out_width")
        first, last = got(block, "first"), got(block, "last")
        for r in range(got(block, "rows")):
            sums = got(block, "sums") + r * got(block, "vectors") * lanes * size
            factor, summand = load(got(block, "scale"), r), load(got(block, "shift"), r)
            start = r * got(block, "out_stride") * size
            added = r * got(block, "residual_stride") * size
            for i in range(last - first):
                store(sums, i, load(sums, i) * factor + summand)
            # the residual is phase 0, before clamping, or phase 2, after it; clamping is phase 1, storing phase 3
            adding = 2 * get(args, "residual_last") if got(block, "residual") != 0 else 4
            for phase in range(4):
                base = got(block, "out") + start if phase == 3 else got(block, "residual") + added
                if phase == 3 and got(block, "turn") != 0:
                    continue
                if phase == 1:
                    for i in range(last - first):
                        value = load(sums, i)
                        value = low if value < low else value
                        store(sums, i, high if value > high else value)
                    if activation != 0:
                        call(activation, sums, last - first)
                position = first if phase == 3 or phase == adding else last
                while position < last:  # image row by image row: between them stand positions that do not exist
                    row = position // pitch
                    column = position - row * pitch
                    run = larger(0, smaller(width - column, last - position))
                    place = base + (row * get(args, "out_height") + column * step) * size
                    lane = sums + (position - first) * size
                    if phase == adding:
                        for i in range(run):
                            store(lane, i, load(lane, i) + load(place, i * step))
                    elif step == 1:
                        for i in range(run):
                            store(place, i, load(lane, i))
                    else:
                        for i in range(run):
                            store(place, i * step, load(lane, i))
                    position += larger(run, pitch - column)
        if got(block, "turn") != 0:
            put(block, "finished", 1)
            call(got(block, "turn"), block, 0)
            put(block, "finished", 0)

    return spread
