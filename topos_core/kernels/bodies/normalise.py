"""out = (x - center) * factor + summand, for [outer, channels, inner] by planes or, where inner is 1, by blocks of rows."""

from __future__ import annotations

from typing import Any

from topos_core.kernels.bodies.channel_norm import normalised
from topos_core.kernels.host import Host
from topos_core.kernels.vocabulary.blocks import NORM
from topos_core.kernels.vocabulary.memory import loader, reader, settle, smaller
from topos_core.kernels.vocabulary.rows import row_map
from topos_core.kernels.vocabulary.scalar import SCALARS
from topos_core.kernels.vocabulary.sharing import take

get = reader(NORM)


def kernel(host: Host, dtype: str, over: str) -> Any:
    """Makes the kernel (block, worker) of a `NORM` block, over `planes` or `rows`."""
    scalar = SCALARS[dtype]
    size, load = scalar.bytes, loader(scalar)
    plane = row_map(host, scalar, (1,), normalised, values=3, streams=True)
    row_of = row_map(host, scalar, (1, 1, 1, 1), normalised, streams=True)

    def planes(args, worker):  # type: ignore[no-untyped-def]
        channels, inner = get(args, "channels"), get(args, "inner")
        item = take(args, worker)
        while item < get(args, "items"):
            channel = item % channels
            at = item * inner * size
            plane(
                get(args, "out") + at, get(args, "x") + at, load(get(args, "center"), channel),
                load(get(args, "factor"), channel), load(get(args, "summand"), channel), inner,
                get(args, "streamed"),
            )  # fmt: skip
            item = take(args, worker)
        settle()

    def rows(args, worker):  # type: ignore[no-untyped-def]
        channels = get(args, "channels")
        item = take(args, worker)
        while item < get(args, "items"):
            # the last blocks are the ones that statistics have just left in the cache
            start = (get(args, "items") - 1 - item) * get(args, "block_rows")
            for row in range(start, smaller(get(args, "outer"), start + get(args, "block_rows"))):
                at = row * channels * size
                row_of(
                    get(args, "out") + at, get(args, "x") + at, get(args, "center"), get(args, "factor"),
                    get(args, "summand"), channels, get(args, "streamed"),
                )  # fmt: skip
            item = take(args, worker)
        settle()

    return planes if over == "planes" else rows
