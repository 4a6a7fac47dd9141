"""Layer norm and root mean square norm along rows of dense memory; scale and shift are rows.

A layer norm's two passes go around a rounded centre whose error is corrected, as `channel_norm` does it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from topos_core.kernels.bodies.channel_norm import INFINITY, normalised, spread_terms
from topos_core.kernels.host import Host
from topos_core.kernels.vocabulary.blocks import ROWS
from topos_core.kernels.vocabulary.emitter import Emitter
from topos_core.kernels.vocabulary.memory import loader, reader, smaller, square_root, storer, take
from topos_core.kernels.vocabulary.rows import row_map
from topos_core.kernels.vocabulary.scalar import SCALARS
from topos_core.kernels.vocabulary.totals import row_totals

get = reader(ROWS)
RUN = 8192  # elements that are summed before a double takes over


def kernel(host: Host, dtype: str, kind: str) -> Any:
    """Makes the kernel (block, worker) of a `ROWS` block whose inner extent is 1; scratch is three doubles."""
    scalar, double = SCALARS[dtype], SCALARS["f64"]
    size, number, wide = scalar.bytes, scalar.numba, double.numba
    load, store = loader(double), storer(double)
    add_up = row_totals(host, scalar, lambda emitter, x, _: x, 1)
    add_up_spread = row_totals(host, scalar, spread_terms, 2)
    plain = row_map(host, scalar, (1,), normalised, values=3)
    scaled = row_map(host, scalar, (1, 1), _scaled, values=3)
    affine = row_map(host, scalar, (1, 1, 1), _affine, values=3)
    centred, run = 1 if kind == "layer" else 0, RUN

    def norm(args, worker):  # type: ignore[no-untyped-def]
        sums = get(args, "scratch") + worker * get(args, "slot_bytes")
        count, scale, shift = get(args, "count"), get(args, "scale"), get(args, "shift")
        total, epsilon = wide(count), load(get(args, "epsilon"), 0)
        item = take(get(args, "counter"))
        while item < get(args, "items"):
            first = item * get(args, "chunk")
            for row in range(first, smaller(get(args, "outer"), first + get(args, "chunk"))):
                x, out = get(args, "x") + row * count * size, get(args, "out") + row * count * size
                for k in range(3):
                    store(sums, k, 0.0)
                if centred == 1:
                    at = 0
                    while at < count:
                        add_up(sums, x + at * size, number(0), smaller(run, count - at))
                        at += run
                center = number(load(sums, 0) / total)
                at = 0
                while at < count:
                    add_up_spread(sums + 8, x + at * size, center, smaller(run, count - at))
                    at += run
                off, variance = 0.0, load(sums, 2) / total
                if centred == 1:
                    off = load(sums, 1) / total
                    variance -= off * off
                    variance = 0.0 if variance < 0.0 else variance
                    if load(sums, 2) == INFINITY:
                        variance = INFINITY  # the squares overflowed, as the recorded ones do
                factor = 1.0 / square_root(variance + epsilon)
                factor_here, summand = number(factor), number(-off * factor)
                if scale == 0:
                    plain(out, x, center, factor_here, summand, count)
                elif shift == 0:
                    scaled(out, x, scale, center, factor_here, summand, count)
                else:
                    affine(out, x, scale, shift, center, factor_here, summand, count)
            item = take(get(args, "counter"))

    return norm


def _scaled(emitter: Emitter, operands: Sequence[Any]) -> Any:
    x, scale, center, factor, summand = operands
    return emitter.mul(normalised(emitter, (x, center, factor, summand)), scale)


def _affine(emitter: Emitter, operands: Sequence[Any]) -> Any:
    x, scale, shift, center, factor, summand = operands
    return emitter.fma(normalised(emitter, (x, center, factor, summand)), scale, shift)
