"""Convolves 3x3 windows by Winograd's F(4x4, 3x3), 36 products for 16 results of 144, or F(2x2, 3x3), 16 for 4 of 36.

An item is a block of tile rows: their operands are made for all channels, then for a few rows of the left operand at a
time all contractions run in register tiles and are turned into results at once, so that sums never leave the cache.

Lanes that no tile fills are zero: what happens to lie in scratch memory may be too small a number for the usual form
(denormal), and Intel's processors take a hundred times as long for a product with one in any lane.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numba.extending import register_jitable

from topos_core.kernels.host import Host
from topos_core.kernels.tiles import tiles
from topos_core.kernels.vocabulary.blocks import LINE, OVERLAP, TILE, WINOGRAD
from topos_core.kernels.vocabulary.emitter import Emitter
from topos_core.kernels.vocabulary.memory import ask, call, loader, reader, smaller, word, writer
from topos_core.kernels.vocabulary.rows import row_map
from topos_core.kernels.vocabulary.scalar import SCALARS
from topos_core.kernels.vocabulary.sharing import take
from topos_core.kernels.vocabulary.tile_transforms import backward as backward_of
from topos_core.kernels.vocabulary.tile_transforms import blank as blank_of
from topos_core.kernels.vocabulary.tile_transforms import finishing
from topos_core.kernels.vocabulary.tile_transforms import forward as forward_of

get = reader(WINOGRAD)
put = writer(TILE)


def kernel(host: Host, dtype: str, rows_of_a_tile: str) -> Any:
    """Makes the kernel (block, worker) of a `WINOGRAD` block; results come in tiles of so many rows."""
    scalar, side = SCALARS[dtype], int(rows_of_a_tile)
    products = (side + OVERLAP) ** 2
    size, lanes = scalar.bytes, host.lanes(dtype)
    tall, widest = tiles(host).tall, tiles(host).tall_vectors
    load = loader(scalar)
    forward, backward, blank = (
        forward_of(host, scalar, side),
        backward_of(host, scalar, side),
        blank_of(host, scalar, side),
    )
    affine = row_map(host, scalar, (1,), _affine, values=2)
    forward_two = forward_of(host, scalar, side, 2)
    finish = finishing(host, scalar, side) if host.masked else _nothing
    finish_two = finishing(host, scalar, side, 2) if host.masked else _nothing
    masked = int(host.masked)
    clamp = row_map(host, scalar, (1,), _clamp, values=2)
    plus = row_map(host, scalar, (1, 1), lambda emitter, operands: emitter.add(*operands))
    copy = row_map(host, scalar, (1,), lambda emitter, operands: operands[0])

    def winograd(args, worker):  # type: ignore[no-untyped-def]
        block = get(args, "scratch") + worker * get(args, "slot_bytes")
        right, sums, lines = (
            block + get(args, "right_at"),
            block + get(args, "sums_at"),
            block + get(args, "lines_at"),
        )
        across, channels, rows = get(args, "across"), get(args, "channels"), get(args, "rows")
        pitch, right_pitch = get(args, "pitch"), get(args, "right_pitch")
        image_height, zeros, masks = get(args, "image_height"), get(args, "zeros"), get(args, "masks")
        together = get(args, "together")
        right_apart, sums_apart = (channels * right_pitch + lanes) * size, together * right_pitch * size
        line = (across + lanes - 1) // lanes * lanes * side
        width, table, limits = get(args, "width"), get(args, "tiles"), get(args, "limits")
        low, high, checks = load(limits, 0), load(limits, 1), get(args, "checks") + worker * 64
        residual, last_of_all = get(args, "residual"), get(args, "residual_last")
        fused = masked == 1 and get(args, "activation") == 0 and (residual == 0 or last_of_all == 0)
        few = 2 * across <= lanes  # two rows of tiles share a register
        put(block, "offsets", get(args, "offsets"))
        put(block, "steps", channels)
        put(block, "sums_stride", right_pitch)
        put(block, "resume", 0)
        item = take(args, worker)
        while item < get(args, "items"):
            part_of_rows = item % get(args, "splits")
            first = item // get(args, "splits") * get(args, "block_rows")
            first_row = part_of_rows * get(args, "split_rows")
            last = smaller(get(args, "tile_rows"), first + get(args, "block_rows"))
            filled = (last - first) * across
            vectors = (filled + lanes - 1) // lanes
            for channel in range(channels):
                corner = get(args, "image") + (channel * get(args, "image_channel") - get(args, "column_low")) * size
                tile_row = first
                while tile_row < last:
                    image = tile_row // get(args, "down")
                    top = (tile_row - image * get(args, "down")) * side - get(args, "row_low")
                    source = corner + (image * get(args, "image_batch") + top * pitch) * size
                    target = right + (channel * right_pitch + (tile_row - first) * across) * size
                    for at in range(0, get(args, "asked"), LINE):  # the same rows of the next channel
                        ask(source + get(args, "image_channel") * size + at)
                    if few and tile_row + 1 < last:
                        image = (tile_row + 1) // get(args, "down")
                        under = (tile_row + 1 - image * get(args, "down")) * side - get(args, "row_low")
                        other = corner + (image * get(args, "image_batch") + under * pitch) * size
                        forward_two(
                            source, other, top, under, target, target + across * size, pitch, image_height, zeros, masks,
                            right_apart,
                        )  # fmt: skip
                        tile_row += 2
                        continue
                    for tile in range(0, across, lanes):
                        forward(
                            source + tile * side * size, top, target + tile * size, pitch, image_height, zeros,
                            masks + tile // lanes * (side + 1) * 8, right_apart,
                        )  # fmt: skip
                    tile_row += 1
                if filled < vectors * lanes:  # what this reaches of the next channel is written after it
                    blank(right + (channel * right_pitch + filled) * size, right_apart)
            row, last_row = first_row, smaller(rows, first_row + get(args, "split_rows"))
            while row < last_row:
                present = smaller(together, last_row - row)
                for product in range(products):
                    left = get(args, "left") + (row * products + product * tall) * channels * size
                    vector = 0
                    while vector < vectors:
                        count = smaller(widest, vectors - vector)
                        put(block, "right", right + product * right_apart + vector * lanes * size)
                        for part in range(0, present, tall):
                            here = left + part * products * channels * size
                            put(block, "rows", smaller(tall, present - part))
                            put(block, "left", here)
                            put(block, "ahead", here + tall * channels * size)  # the next product's, in one stream
                            put(block, "ahead_step", tall * size if vector == 0 else 0)
                            put(
                                block,
                                "sums",
                                sums + product * sums_apart + (part * right_pitch + vector * lanes) * size,
                            )
                            call(word(table, count), block, 0)
                        vector += count
                for part in range(present):
                    factor, summand = load(get(args, "scale"), row + part), load(get(args, "shift"), row + part)
                    tile_row = first - 1
                    while tile_row + 1 < last:
                        tile_row += 1
                        source = sums + (part * right_pitch + (tile_row - first) * across) * size
                        image = tile_row // get(args, "down")
                        top = (tile_row - image * get(args, "down")) * side
                        place = image * get(args, "out_batch") + (row + part) * get(args, "out_row")
                        place = (place + top * get(args, "out_height")) * size
                        height = smaller(side, get(args, "height") - top)
                        if fused and few and tile_row + 1 < last:
                            tile_row += 1
                            image = tile_row // get(args, "down")
                            top = (tile_row - image * get(args, "down")) * side
                            at = image * get(args, "out_batch") + (row + part) * get(args, "out_row")
                            at = (at + top * get(args, "out_height")) * size
                            finish_two(
                                source,
                                source + across * size,
                                get(args, "out") + place,
                                get(args, "out") + at,
                                height,
                                smaller(side, get(args, "height") - top),
                                residual + place if residual != 0 else 0,
                                residual + at if residual != 0 else 0,
                                sums_apart,
                                get(args, "out_height"),
                                across,
                                checks,
                                width,
                                factor,
                                summand,
                                low,
                                high,
                            )
                            continue
                        if fused:
                            for tile in range(0, across, lanes):
                                at = place + tile * side * size
                                finish(
                                    source + tile * size,
                                    get(args, "out") + at,
                                    height,
                                    residual + at if residual != 0 else 0,
                                    sums_apart,
                                    get(args, "out_height"),
                                    across - tile,
                                    checks,
                                    width - tile * side,
                                    factor,
                                    summand,
                                    low,
                                    high,
                                )
                            continue
                        for tile in range(0, across, lanes):
                            backward(
                                source + tile * size,
                                sums_apart,
                                lines + tile * side * size,
                                line,
                                across - tile,
                                checks,
                            )
                        for k in range(height):
                            values = lines + k * line * size
                            at = place + k * get(args, "out_height") * size
                            affine(values, values, factor, summand, width)
                            if residual != 0 and last_of_all == 0:
                                plus(values, values, residual + at, width)
                            clamp(values, values, low, high, width)
                            if get(args, "activation") != 0:
                                call(get(args, "activation"), values, width)
                            if residual != 0 and last_of_all == 1:
                                plus(values, values, residual + at, width)
                            copy(get(args, "out") + at, values, width)
                row += together
            item = take(args, worker)

    return winograd


def _affine(emitter: Emitter, operands: Sequence[Any]) -> Any:
    return emitter.fma(*operands)


def _clamp(emitter: Emitter, operands: Sequence[Any]) -> Any:
    value, low, high = operands
    return emitter.at_most(emitter.at_least(value, low), high)


@register_jitable  # type: ignore[untyped-decorator]
def _nothing(*_: Any) -> None:
    """Stands where a host cannot finish in registers."""
