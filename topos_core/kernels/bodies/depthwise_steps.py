"""Makes the right operand of a pointwise convolution as `depthwise` does it, each recorded step behind the sums on its own.

For when no factor and summand can stand for them: a row of sums is stored, and the steps are taken on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from topos_core.kernels.host import Host
from topos_core.kernels.vocabulary.blocks import DEPTHWISE, TILE
from topos_core.kernels.vocabulary.emitter import Emitter
from topos_core.kernels.vocabulary.memory import loader, reader
from topos_core.kernels.vocabulary.rows import row_map
from topos_core.kernels.vocabulary.scalar import SCALARS
from topos_core.kernels.vocabulary.taps import window_sums
from topos_core.kernels.vocabulary.transcendental import activation

get = reader(DEPTHWISE)
got = reader(TILE)
INFINITY = float("inf")


def kernel(host: Host, dtype: str, name: str, edges: str) -> Any:
    """Makes the kernel (tile block, `DEPTHWISE` block); `edges` is `masked` where taps may lie outside of the image."""
    scalar, lanes = SCALARS[dtype], host.lanes(dtype)
    size, number, load = scalar.bytes, scalar.numba, loader(scalar)
    sums = window_sums(host, scalar, 1, "none", edges == "masked")
    take_step = row_map(host, scalar, (1,), _step, values=3)

    def ended(emitter: Emitter, operands: Sequence[Any]) -> Any:
        value, low, high = operands
        value = emitter.at_most(emitter.at_least(value, low), high)
        return value if name == "none" else activation(emitter, name, value)

    end = row_map(host, scalar, (1,), ended, values=2)

    def depthwise(block, args):  # type: ignore[no-untyped-def]
        source, target, vectors = got(block, "source"), got(block, "right"), got(block, "vectors")
        taps, offsets, multiplier = get(args, "taps"), get(args, "offsets"), get(args, "multiplier")
        low, high = load(get(args, "limits"), 0), load(get(args, "limits"), 1)
        masks = get(args, "masks") + got(block, "first") // lanes * taps * 8
        times = get(args, "times")
        for channel in range(get(args, "channels")):
            image = source + channel // multiplier * get(args, "channel_step") * size
            place = target + channel * get(args, "pitch") * size
            weights = get(args, "weights") + channel * taps * size
            steps = get(args, "steps") + channel * times * 3 * size
            for vector in range(vectors):
                at = vector * lanes * size
                sums(
                    place + at, image + at, offsets, weights, taps, masks + vector * taps * 8, number(1.0), number(0.0),
                    number(-INFINITY), number(INFINITY),
                )  # fmt: skip
            for time in range(times):
                a, b, c = load(steps, 3 * time), load(steps, 3 * time + 1), load(steps, 3 * time + 2)
                take_step(place, place, a, b, c, vectors * lanes)
            end(place, place, low, high, vectors * lanes)

    return depthwise


def _step(emitter: Emitter, operands: Sequence[Any]) -> Any:
    """Emits (x + a) * b / c as it stands: nothing is contracted, and c is divided by."""
    builder, (value, a, b, c) = emitter.builder, operands
    return builder.fdiv(builder.fmul(builder.fadd(value, a), b), c)
