"""Layer norm and root mean square norm along the middle axis of [outer, count, inner]: columns side by side in registers.

A layer norm's two passes go around a rounded centre whose error is corrected, as `channel_norm` does it. Sums of columns are
made in runs, so that no chain of additions is long.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from topos_core.kernels.bodies.channel_norm import INFINITY
from topos_core.kernels.host import Host
from topos_core.kernels.vocabulary.blocks import ROWS
from topos_core.kernels.vocabulary.emitter import Emitter
from topos_core.kernels.vocabulary.memory import loader, reader, settle, smaller
from topos_core.kernels.vocabulary.rows import row_map
from topos_core.kernels.vocabulary.scalar import SCALARS
from topos_core.kernels.vocabulary.sharing import take

get = reader(ROWS)
RUN = 32  # rows whose sum is made before it is added to the whole


def kernel(host: Host, dtype: str, kind: str) -> Any:
    """Makes the kernel (block, worker) of a `ROWS` block; scratch is five rows of `chunk`; `kind` is `layer` or `rms`."""
    scalar = SCALARS[dtype]
    size, number = scalar.bytes, scalar.numba
    load, load_double = loader(scalar), loader(SCALARS["f64"])
    clear = row_map(host, scalar, (), lambda emitter, operands: operands[0], values=1)
    add = row_map(host, scalar, (1, 1), lambda emitter, operands: emitter.add(*operands))
    multiply = row_map(host, scalar, (1,), lambda emitter, operands: emitter.mul(*operands), values=1)
    add_deviation = row_map(host, scalar, (1, 1, 1), _plus_deviation)
    add_square = row_map(host, scalar, (1, 1, 1), _plus_square)
    to_factor = row_map(host, scalar, (1, 1), _factor, values=2)
    to_center = row_map(host, scalar, (1, 1, 1), _center)
    to_summand = row_map(host, scalar, (1, 1), _summand, values=1)
    normalise = row_map(host, scalar, (1, 1, 1, 1), _affine, values=2, streams=True)
    centred, run = 1 if kind == "layer" else 0, RUN

    def norm(args, worker):  # type: ignore[no-untyped-def]
        count, inner, chunk = get(args, "count"), get(args, "inner"), get(args, "chunk")
        center = get(args, "scratch") + worker * get(args, "slot_bytes")
        off, spread = center + chunk * size, center + 2 * chunk * size
        run_off, run_spread = center + 3 * chunk * size, center + 4 * chunk * size
        streamed = get(args, "streamed")
        chunks, share = (inner + chunk - 1) // chunk, number(1.0 / count)
        scale, shift, epsilon = get(args, "scale"), get(args, "shift"), number(load_double(get(args, "epsilon"), 0))
        item = take(args, worker)
        while item < get(args, "items"):
            start = (item % chunks) * chunk
            width = smaller(chunk, inner - start)
            at = (item // chunks * count * inner + start) * size
            x, out, step = get(args, "x") + at, get(args, "out") + at, inner * size
            clear(center, number(0), width)
            clear(off, number(0), width)
            clear(spread, number(0), width)
            if centred == 1:
                for first in range(0, count, run):
                    clear(run_off, number(0), width)
                    for row in range(first, smaller(count, first + run)):
                        add(run_off, run_off, x + row * step, width)
                    add(center, center, run_off, width)
                multiply(center, center, share, width)
            for first in range(0, count, run):
                clear(run_off, number(0), width)
                clear(run_spread, number(0), width)
                for row in range(first, smaller(count, first + run)):
                    if centred == 1:
                        add_deviation(run_off, run_off, x + row * step, center, width)
                    add_square(run_spread, run_spread, x + row * step, center, width)
                add(off, off, run_off, width)
                add(spread, spread, run_spread, width)
            multiply(off, off, share, width)
            to_factor(spread, spread, off, share, epsilon, width)
            to_center(center, center, off, spread, width)
            to_summand(off, off, spread, number(-1), width)
            for row in range(count):
                factor = load(scale, row) if scale != 0 else number(1)
                summand = load(shift, row) if shift != 0 else number(0)
                normalise(out + row * step, x + row * step, center, spread, off, factor, summand, width, streamed)
            item = take(args, worker)
        settle()

    return norm


def _plus_deviation(emitter: Emitter, operands: Sequence[Any]) -> Any:
    total, x, center = operands
    return emitter.add(total, emitter.sub(x, center))


def _plus_square(emitter: Emitter, operands: Sequence[Any]) -> Any:
    total, x, center = operands
    deviation = emitter.sub(x, center)
    return emitter.fma(deviation, deviation, total)


def _factor(emitter: Emitter, operands: Sequence[Any]) -> Any:
    """Gives 1 / sqrt(variance + epsilon); squares that overflowed stay infinite, as the recorded ones do."""
    spread, off, share, epsilon = operands
    variance = emitter.sub(emitter.mul(spread, share), emitter.mul(off, off))
    variance = emitter.at_least(variance, emitter.constant(0.0))
    infinite = emitter.builder.fcmp_ordered("==", spread, emitter.constant(INFINITY))
    variance = emitter.builder.select(infinite, spread, variance)
    return emitter.div(emitter.constant(1.0), emitter.square_root(emitter.add(variance, epsilon)))


def _center(emitter: Emitter, operands: Sequence[Any]) -> Any:
    """Gives the centre, which takes `off` where the factor is infinite: times that it has no value."""
    center, off, factor = operands
    moved = emitter.add(center, off)
    return emitter.builder.select(_finite(emitter, factor), center, moved)


def _summand(emitter: Emitter, operands: Sequence[Any]) -> Any:
    off, factor, minus = operands
    product = emitter.mul(emitter.mul(off, factor), minus)
    return emitter.builder.select(_finite(emitter, factor), product, emitter.constant(0.0))


def _finite(emitter: Emitter, value: Any) -> Any:
    rest = emitter.builder.fsub(value, value)
    return emitter.builder.fcmp_ordered("ord", rest, rest)


def _affine(emitter: Emitter, operands: Sequence[Any]) -> Any:
    x, center, factor, summand, scale, shift = operands
    return emitter.fma(emitter.fma(emitter.sub(x, center), factor, summand), scale, shift)
