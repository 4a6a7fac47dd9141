"""Makes the right operand of a pointwise convolution: the depthwise convolution in front of it, for a chunk of positions."""

from __future__ import annotations

from typing import Any

from topos_core.kernels.host import Host
from topos_core.kernels.tiles import tiles
from topos_core.kernels.vocabulary.blocks import DEPTHWISE, TILE
from topos_core.kernels.vocabulary.memory import loader, reader
from topos_core.kernels.vocabulary.scalar import SCALARS
from topos_core.kernels.vocabulary.taps import window_sums

get = reader(DEPTHWISE)
got = reader(TILE)


def kernel(host: Host, dtype: str, name: str, edges: str) -> Any:
    """Makes the kernel (tile block, `DEPTHWISE` block); `edges` is `masked` where taps may lie outside of the image."""
    scalar, lanes, widest = SCALARS[dtype], host.lanes(dtype), tiles(host).tall_vectors
    size, load = scalar.bytes, loader(scalar)
    several = window_sums(host, scalar, widest, name, edges == "masked")
    one = window_sums(host, scalar, 1, name, edges == "masked")

    def depthwise(block, args):  # type: ignore[no-untyped-def]
        source, target, vectors = got(block, "source"), got(block, "right"), got(block, "vectors")
        taps, offsets, multiplier = get(args, "taps"), get(args, "offsets"), get(args, "multiplier")
        low, high = load(get(args, "limits"), 0), load(get(args, "limits"), 1)
        masks = get(args, "masks") + got(block, "first") // lanes * taps * 8
        for channel in range(get(args, "channels")):
            image = source + channel // multiplier * get(args, "channel_step") * size
            place = target + channel * get(args, "pitch") * size
            weights = get(args, "weights") + channel * taps * size
            scale, shift = load(get(args, "scale"), channel), load(get(args, "shift"), channel)
            vector = 0
            while vector + widest <= vectors:
                at = vector * lanes * size
                here = masks + vector * taps * 8
                several(place + at, image + at, offsets, weights, taps, here, scale, shift, low, high)
                vector += widest
            while vector < vectors:
                at = vector * lanes * size
                here = masks + vector * taps * 8
                one(place + at, image + at, offsets, weights, taps, here, scale, shift, low, high)
                vector += 1

    return depthwise
