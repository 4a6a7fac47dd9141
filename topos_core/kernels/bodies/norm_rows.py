"""Layer norm and root mean square norm along rows of dense memory; scale and shift are rows.

A layer norm's two passes go around a rounded centre whose error is corrected, as `channel_norm` does it. A residual may be
added first: the rounded sum is stored and normalised, and where a row's mean is large beside its spread, what the rounding lost
takes part (Knuth's exact sum of two).

The next row is summed between a row's spread and its result: neither sum's last additions are waited for, nor are memory's
loads and stores apart. Sums that go past the caches are made once more, in scratch, where they are read from.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from topos_core.kernels.bodies.channel_norm import INFINITY, normalised, spread_terms
from topos_core.kernels.host import Host
from topos_core.kernels.vocabulary.blocks import ROWS
from topos_core.kernels.vocabulary.emitter import Emitter
from topos_core.kernels.vocabulary.memory import loader, reader, settle, smaller, square_root, storer
from topos_core.kernels.vocabulary.rows import row_map
from topos_core.kernels.vocabulary.scalar import SCALARS
from topos_core.kernels.vocabulary.sharing import take
from topos_core.kernels.vocabulary.totals import row_totals

get = reader(ROWS)
RUN = 8192  # elements that are summed before a double takes over
FAR = 16.0  # a mean whose square is so many variances: then what rounding a sum lost counts


def kernel(host: Host, dtype: str, kind: str, of: str = "x") -> Any:
    """Makes the kernel (block, worker) of a `ROWS` block whose inner extent is 1; scratch is three doubles and, for a sum, 64 bytes further
    two rows, `row_slot` apart.

    `kind` is `layer` or `rms`; `of` is `sum` where x and a residual are added.
    """
    scalar, double = SCALARS[dtype], SCALARS["f64"]
    size, number, wide = scalar.bytes, scalar.numba, double.numba
    load, store = loader(double), storer(double)
    add_up = row_totals(host, scalar, lambda emitter, x, _: x, 1)
    add_up_spread = row_totals(host, scalar, spread_terms, 2)
    plain = row_map(host, scalar, (1,), normalised, values=3, streams=True)
    scaled = row_map(host, scalar, (1, 1), _scaled, values=3, streams=True)
    affine = row_map(host, scalar, (1, 1, 1), _affine, values=3, streams=True)
    add = row_map(host, scalar, (1, 1), _sum)
    store_sum = row_map(host, scalar, (1, 1), _sum, streams=True, asks=True)
    spread_of_sum = row_totals(host, scalar, _exact_spread, 2, sources=2, stores=True)
    centred, run, summed, far = 1 if kind == "layer" else 0, RUN, 1 if of == "sum" else 0, FAR
    of_row = "sum" if of == "sum" else "x"

    def norm(args, worker):  # type: ignore[no-untyped-def]
        sums = get(args, "scratch") + worker * get(args, "slot_bytes")
        own, apart = sums + 64, get(args, "row_slot")
        count, scale, shift = get(args, "count"), get(args, "scale"), get(args, "shift")
        streamed = get(args, "streamed")
        total, epsilon = wide(count), load(get(args, "epsilon"), 0)
        item = take(args, worker)
        while item < get(args, "items"):
            first = item * get(args, "chunk")
            last = smaller(get(args, "outer"), first + get(args, "chunk"))
            center = number(0)
            for ahead in range(first, last + 1):
                row = ahead - 1
                at_row = row * count * size
                x, out = get(args, of_row) + at_row, get(args, "out") + at_row
                if summed == 1 and streamed != 0:
                    x = own + (row & 1) * apart
                if row >= first:
                    center = number(load(sums, 0) / total)
                    store(sums, 1, 0.0)
                    store(sums, 2, 0.0)
                    at = 0
                    while at < count:
                        add_up_spread(sums + 8, x + at * size, center, smaller(run, count - at))
                        at += run
                if ahead < last:
                    next_x = get(args, of_row) + ahead * count * size
                    if summed == 1:
                        at_next = ahead * count * size
                        a, b = get(args, "x") + at_next, get(args, "residual") + at_next
                        if streamed != 0:
                            store_sum(next_x, a, b, count, streamed)
                            next_x = own + (ahead & 1) * apart
                        add(next_x, a, b, count)
                    store(sums, 0, 0.0)
                    if centred == 1:
                        at = 0
                        while at < count:
                            add_up(sums, next_x + at * size, number(0), smaller(run, count - at))
                            at += run
                if row < first:
                    continue
                off, variance = 0.0, load(sums, 2) / total
                if summed == 1 and centred == 1 and center * center > far * variance:
                    store(sums, 1, 0.0)
                    store(sums, 2, 0.0)
                    a, b = get(args, "x") + at_row, get(args, "residual") + at_row
                    x, at = own + (row & 1) * apart, 0
                    while at < count:
                        length = smaller(run, count - at)
                        spread_of_sum(x + at * size, sums + 8, a + at * size, b + at * size, center, length)
                        at += run
                    center, variance = number(0), load(sums, 2) / total
                if centred == 1:
                    off = load(sums, 1) / total
                    variance -= off * off
                    variance = 0.0 if variance < 0.0 else variance
                    if load(sums, 2) == INFINITY:
                        variance = INFINITY  # the squares overflowed, as the recorded ones do
                factor = 1.0 / square_root(variance + epsilon)
                factor_here, summand = number(factor), number(-off * factor)
                if wide(factor_here) == INFINITY:  # as in `channel_norm`
                    center, summand = number(wide(center) + off), number(0)
                if scale == 0:
                    plain(out, x, center, factor_here, summand, count, streamed)
                elif shift == 0:
                    scaled(out, x, scale, center, factor_here, summand, count, streamed)
                else:
                    affine(out, x, scale, shift, center, factor_here, summand, count, streamed)
            item = take(args, worker)
        settle()

    return norm


def _sum(emitter: Emitter, operands: Sequence[Any]) -> Any:
    return emitter.add(*operands)


def _exact_deviation(emitter: Emitter, a: Any, b: Any, center: Any) -> Any:
    """Emits a + b - center, with what the sum's rounding lost; nothing is lost where the sum is not finite."""
    total = emitter.add(a, b)
    share = emitter.sub(total, a)
    lost = emitter.add(emitter.sub(a, emitter.sub(total, share)), emitter.sub(b, share))
    known = emitter.builder.fcmp_ordered("ord", lost, lost)
    lost = emitter.builder.select(known, lost, emitter.constant(0.0))
    return emitter.add(emitter.sub(total, center), lost)


def _exact_spread(emitter: Emitter, elements: Sequence[Any], center: Any) -> Sequence[Any]:
    a, b = elements
    deviation = _exact_deviation(emitter, a, b, center)
    return deviation, emitter.mul(deviation, deviation)


def _scaled(emitter: Emitter, operands: Sequence[Any]) -> Any:
    x, scale, center, factor, summand = operands
    return emitter.mul(normalised(emitter, (x, center, factor, summand)), scale)


def _affine(emitter: Emitter, operands: Sequence[Any]) -> Any:
    x, scale, shift, center, factor, summand = operands
    return emitter.fma(normalised(emitter, (x, center, factor, summand)), scale, shift)
