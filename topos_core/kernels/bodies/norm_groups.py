"""Group norm of dense [outer, channels, positions]: statistics over both, scale and shift per group and channel.

An instance norm is a group norm with one channel. Statistics are as in `channel_norm`.
"""

from __future__ import annotations

from typing import Any

from topos_core.kernels.bodies.channel_norm import INFINITY, normalised, spread_terms
from topos_core.kernels.folding import limits_of
from topos_core.kernels.host import Host
from topos_core.kernels.vocabulary.blocks import ROWS
from topos_core.kernels.vocabulary.memory import (
    loader,
    reader,
    settle,
    smaller,
    square_root,
    storer,
    where_finite,
    within,
)
from topos_core.kernels.vocabulary.rows import row_map
from topos_core.kernels.vocabulary.scalar import SCALARS
from topos_core.kernels.vocabulary.sharing import take
from topos_core.kernels.vocabulary.totals import row_totals
from topos_core.tape.type import numpy_dtype

get = reader(ROWS)
RUN = 8192  # elements that are summed before a double takes over


def kernel(host: Host, dtype: str) -> Any:
    """Makes the kernel (block, worker) of a `ROWS` block; one group of one example is an item, scratch three doubles."""
    scalar, double = SCALARS[dtype], SCALARS["f64"]
    size, number, wide = scalar.bytes, scalar.numba, double.numba
    load_one, load, store = loader(scalar), loader(double), storer(double)
    add_up = row_totals(host, scalar, lambda emitter, x, _: x, 1)
    add_up_spread = row_totals(host, scalar, spread_terms, 2)
    normalise = row_map(host, scalar, (1,), normalised, values=3, streams=True)
    affine = row_map(host, scalar, (1,), lambda emitter, operands: emitter.fma(*operands), values=2)
    run, (least, most, _) = RUN, limits_of(numpy_dtype(dtype))

    def norm(args, worker):  # type: ignore[no-untyped-def]
        sums = get(args, "scratch") + worker * get(args, "slot_bytes")
        count, positions, channels = get(args, "count"), get(args, "positions"), get(args, "channels")
        streamed = get(args, "streamed")
        total, epsilon = wide(count), load(get(args, "epsilon"), 0)
        item = take(args, worker)
        while item < get(args, "items"):
            x, out = get(args, "x") + item * count * size, get(args, "out") + item * count * size
            for k in range(3):
                store(sums, k, 0.0)
            at = 0
            while at < count:
                add_up(sums, x + at * size, number(0), smaller(run, count - at))
                at += run
            center = number(load(sums, 0) / total)
            at = 0
            while at < count:
                add_up_spread(sums + 8, x + at * size, center, smaller(run, count - at))
                at += run
            off = load(sums, 1) / total
            variance = load(sums, 2) / total - off * off
            variance = 0.0 if variance < 0.0 else variance
            if load(sums, 2) == INFINITY:
                variance = INFINITY  # the squares overflowed, as the recorded ones do
            root = 1.0 / square_root(variance + epsilon)
            for channel in range(channels):
                which = item % get(args, "groups") * channels + channel
                factor, scale, shift, apart = root, number(1.0), number(0.0), 0
                if get(args, "shift") != 0:
                    shift = load_one(get(args, "shift"), which)
                if get(args, "scale") != 0:
                    scale = load_one(get(args, "scale"), which)
                    folded = factor * wide(scale)
                    if wide(scale) == 0.0 or within(wide(number(folded)), least, most):
                        factor = folded
                    else:
                        apart = 1  # as in `channel_norm`
                summand = wide(shift) if apart == 0 else 0.0
                place = channel * positions * size
                factor_here = number(factor)
                # as in `channel_norm`
                summand_here = number(summand - where_finite(wide(factor_here), off * factor, 0.0))
                center_here = number(wide(center) + where_finite(wide(factor_here), 0.0, off))
                normalise(out + place, x + place, center_here, factor_here, summand_here, positions, streamed)
                if apart == 1:
                    affine(out + place, out + place, scale, shift, positions)
            item = take(args, worker)
        settle()

    return norm
