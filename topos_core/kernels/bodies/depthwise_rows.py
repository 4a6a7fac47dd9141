"""Makes the right operand of a pointwise convolution row by row: a depthwise convolution whose window slides by one.

Needs a machine with masked loads. Several rows are summed together, so that each row of the image is read once for them.
"""

from __future__ import annotations

from typing import Any

from topos_core.kernels.host import Host
from topos_core.kernels.vocabulary.blocks import DEPTHWISE, TILE
from topos_core.kernels.vocabulary.memory import loader, reader
from topos_core.kernels.vocabulary.scalar import SCALARS
from topos_core.kernels.vocabulary.taps import window_rows

get = reader(DEPTHWISE)
got = reader(TILE)
TOGETHER = 6  # rows: their sums, the weights of a 3x3 window and what is read stay in 32 registers


def kernel(host: Host, dtype: str, name: str, size: str) -> Any:
    """Makes the kernel (tile block, `DEPTHWISE` block) of the window `ROWSxCOLUMNS`."""
    scalar, lanes = SCALARS[dtype], host.lanes(dtype)
    down, across = map(int, size.split("x"))
    bytes_, load = scalar.bytes, loader(scalar)
    several = window_rows(host, scalar, TOGETHER, (down, across), name)
    two = window_rows(host, scalar, 2, (down, across), name)
    one = window_rows(host, scalar, 1, (down, across), name)
    together, entry = TOGETHER, 8 * (across + 1)

    def depthwise(block, args):  # type: ignore[no-untyped-def]
        pitch, multiplier, height = get(args, "row_pitch"), get(args, "multiplier"), get(args, "height")
        low, high = load(get(args, "limits"), 0), load(get(args, "limits"), 1)
        start = got(block, "first") // pitch
        rows = (got(block, "last") - got(block, "first") + pitch - 1) // pitch
        corner = got(block, "source") - (get(args, "row_low") * pitch + get(args, "column_low")) * bytes_
        for channel in range(get(args, "channels")):
            image = corner + channel // multiplier * get(args, "channel_step") * bytes_
            place = got(block, "right") + channel * get(args, "pitch") * bytes_
            weights = get(args, "weights") + channel * down * across * bytes_
            scale, shift = load(get(args, "scale"), channel), load(get(args, "shift"), channel)
            row = 0
            while row < rows:
                at = start + row - get(args, "row_low")
                count = together if rows - row >= together else (2 if rows - row >= 2 else 1)
                for register in range(get(args, "registers")):
                    offset = (row * pitch + register * lanes) * bytes_
                    masks = get(args, "masks") + register * entry
                    here, there = place + offset, image + offset
                    if count == together:
                        several(here, there, pitch, weights, masks, at, height, scale, shift, low, high)
                    elif count == 2:
                        two(here, there, pitch, weights, masks, at, height, scale, shift, low, high)
                    else:
                        one(here, there, pitch, weights, masks, at, height, scale, shift, low, high)
                row += count

    return depthwise
