"""Batch norm of [outer, channels, inner], one channel an item: its mean, its variance, its result.

Two passes around a rounded centre, and the first pass' error is corrected: with d = x - centre, the mean is
centre + sum(d) / n and the variance (sum(d * d) - sum(d)^2 / n) / n, summed in f64 over rows (Chan, Golub, LeVeque 1983).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from topos_core.kernels.folding import limits_of
from topos_core.kernels.host import Host
from topos_core.kernels.vocabulary.blocks import NORM
from topos_core.kernels.vocabulary.emitter import Emitter
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

get = reader(NORM)
INFINITY = float("inf")
RUN = 8192  # elements that are summed before a double takes over


def kernel(host: Host, dtype: str) -> Any:
    """Makes the kernel (block, worker) of a `NORM` block; scratch is three doubles."""
    scalar, double = SCALARS[dtype], SCALARS["f64"]
    size, number, wide = scalar.bytes, scalar.numba, double.numba
    load = loader(scalar)
    load_double, store_double = loader(double), storer(double)
    add_up = row_totals(host, scalar, lambda emitter, x, _: x, 1)
    add_up_spread = row_totals(host, scalar, spread_terms, 2)
    normalise = row_map(host, scalar, (1,), normalised, values=3, streams=True)
    affine = row_map(host, scalar, (1,), lambda emitter, operands: emitter.fma(*operands), values=2)
    run, (least, most, _) = RUN, limits_of(numpy_dtype(dtype))

    def norm(args, worker):  # type: ignore[no-untyped-def]
        outer, channels, inner = get(args, "outer"), get(args, "channels"), get(args, "inner")
        sums = get(args, "scratch") + worker * get(args, "slot_bytes")
        count = wide(outer * inner)
        epsilon = load_double(get(args, "epsilon"), 0)
        channel = take(args, worker)
        while channel < channels:
            for k in range(3):
                store_double(sums, k, 0.0)
            for plane in range(outer):
                source = get(args, "x") + (plane * channels + channel) * inner * size
                at = 0
                while at < inner:
                    add_up(sums, source + at * size, number(0), smaller(run, inner - at))
                    at += run
            center = number(load_double(sums, 0) / count)
            for plane in range(outer):
                source = get(args, "x") + (plane * channels + channel) * inner * size
                at = 0
                while at < inner:
                    add_up_spread(sums + 8, source + at * size, center, smaller(run, inner - at))
                    at += run
            off = load_double(sums, 1) / count
            variance = load_double(sums, 2) / count - off * off
            variance = 0.0 if variance < 0.0 else variance
            if load_double(sums, 2) == INFINITY:
                variance = INFINITY  # the squares overflowed, as the recorded ones do
            factor = 1.0 / square_root(variance + epsilon)
            scale, shift, apart = number(1.0), number(0.0), 0
            if get(args, "shift") != 0:
                shift = load(get(args, "shift"), channel)
            if get(args, "scale") != 0:
                scale = load(get(args, "scale"), channel)
                folded = factor * wide(scale)
                if wide(scale) == 0.0 or within(wide(number(folded)), least, most):
                    factor = folded
                else:
                    apart = 1  # no factor stands for both: the scale waits for a pass of its own
            summand = wide(shift) if apart == 0 else 0.0
            # an infinite element makes its own deviation NaN, not the mean
            store_double(
                get(args, "mean"), channel, wide(center) + (off if center - center == center - center else 0.0)
            )
            store_double(get(args, "variance"), channel, variance)
            factor_here = number(factor)
            # times an infinite factor `off` has no value: the centre takes it
            summand_here = number(summand - where_finite(wide(factor_here), off * factor, 0.0))
            center = number(wide(center) + where_finite(wide(factor_here), 0.0, off))
            for plane in range(outer):
                at = (plane * channels + channel) * inner * size
                normalise(
                    get(args, "out") + at, get(args, "x") + at, center, factor_here, summand_here, inner,
                    get(args, "streamed"),
                )  # fmt: skip
            if apart == 1:
                for plane in range(outer):
                    at = get(args, "out") + (plane * channels + channel) * inner * size
                    affine(at, at, scale, shift, inner)
            channel = take(args, worker)
        settle()

    return norm


def spread_terms(emitter: Emitter, elements: Sequence[Any], center: Any) -> Sequence[Any]:
    """Gives a deviation and its square."""
    deviation = emitter.sub(elements[0], center)
    return deviation, emitter.mul(deviation, deviation)


def normalised(emitter: Emitter, operands: Sequence[Any]) -> Any:
    """Gives (x - center) * factor + summand."""
    x, center, factor, summand = operands
    return emitter.fma(emitter.sub(x, center), factor, summand)
