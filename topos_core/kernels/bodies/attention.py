"""Attention of a block of query rows: scores in tiles, softmax in the cache, values in tiles.

A block's whole rows of scores stay in the second-level cache, so there is nothing to rescale. With `causal`, keys behind
the last query of a tile are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from topos_core.kernels.host import Host
from topos_core.kernels.tiles import tiles
from topos_core.kernels.vocabulary.blocks import ATTENTION, TILE
from topos_core.kernels.vocabulary.emitter import Emitter
from topos_core.kernels.vocabulary.memory import call, loader, reader, smaller, storer, word, writer
from topos_core.kernels.vocabulary.rows import row_map
from topos_core.kernels.vocabulary.scalar import SCALARS
from topos_core.kernels.vocabulary.sharing import take
from topos_core.kernels.vocabulary.totals import row_map_total, row_maximum
from topos_core.kernels.vocabulary.transcendental import exp_below

get = reader(ATTENTION)
put = writer(TILE)


def kernel(host: Host, dtype: str) -> Any:
    """Makes the kernel (block, worker) of an `ATTENTION` block; an item is a block of query rows of one batch."""
    scalar, lanes = SCALARS[dtype], host.lanes(dtype)
    size, number = scalar.bytes, scalar.numba
    load, store = loader(scalar), storer(scalar)
    load_double, store_double = loader(SCALARS["f64"]), storer(SCALARS["f64"])
    load_flag = loader(SCALARS["u8"])
    height, most, chain = tiles(host).middle, tiles(host).middle_vectors, tiles(host).chain
    multiply = row_map(host, scalar, (1,), lambda emitter, operands: emitter.mul(*operands), values=1)
    scale_and_add = row_map(host, scalar, (1, 1), _scaled, values=2)
    add = row_map(host, scalar, (1, 1), lambda emitter, operands: emitter.add(*operands))
    drop = row_map(host, scalar, (1, 1), lambda emitter, operands: emitter.mul(*operands))
    clear = row_map(host, scalar, (), lambda emitter, operands: operands[0], values=1)
    largest = row_maximum(host, scalar)
    powers = row_map_total(host, scalar, lambda emitter, x, top: exp_below(emitter, emitter.sub(x, top)))
    scaled_powers = row_map_total(host, scalar, _scaled_power, values=2)

    def attend(args, worker):  # type: ignore[no-untyped-def]
        block = get(args, "scratch") + worker * get(args, "slot_bytes")
        total = block + get(args, "totals_at")
        sums, scores = block + get(args, "sums_at"), block + get(args, "scores_at")
        pitch, panel_keys, table = get(args, "pitch"), get(args, "panel_keys"), get(args, "tiles")
        queries, keys, width, values = get(args, "queries"), get(args, "keys"), get(args, "width"), get(args, "values")
        scale, fill = load(get(args, "numbers"), 0), load(get(args, "numbers"), 1)
        rescale, weight = load(get(args, "numbers"), 2), load(get(args, "numbers"), 3)
        # the largest of scaled scores is the scaled largest one, so that scaling needs no pass of its own
        between = get(args, "mask") | get(args, "keep") | get(args, "also") | get(args, "bias")
        plain = 1 if between == 0 and scale > number(0) else 0
        put(block, "resume", 0)
        put(block, "ending", 0)
        put(block, "ahead", block)
        put(block, "ahead_step", 0)
        item = take(args, worker)
        while item < get(args, "items"):
            batch = item // get(args, "blocks")
            # the last block of a causal mask is the longest: it goes first
            start = (get(args, "blocks") - 1 - item % get(args, "blocks")) * get(args, "block_rows")
            rows = smaller(get(args, "block_rows"), queries - start)
            seen = keys
            if get(args, "causal") != 0:
                seen = smaller(keys, start + rows)
            q = get(args, "q") + (word(get(args, "q_at"), batch) + start * get(args, "q_row")) * size
            packed = get(args, "packed") + word(get(args, "packed_at"), batch) * size
            put(block, "offsets", get(args, "key_offsets"))
            put(block, "left_stride", get(args, "q_row"))
            put(block, "sums_stride", pitch)
            put(block, "steps", width)
            for panel in range((seen + panel_keys - 1) // panel_keys):
                put(block, "right", packed + panel * width * panel_keys * size)
                for row in range(0, rows, height):
                    within = seen - panel * panel_keys
                    if get(args, "causal") != 0:
                        within = smaller(keys, start + row + height) - panel * panel_keys
                        if within <= 0:
                            continue
                    vectors = (smaller(panel_keys, within) + lanes - 1) // lanes
                    put(block, "rows", smaller(height, rows - row))
                    put(block, "left", q + row * get(args, "q_row") * size)
                    put(block, "sums", scores + (row * pitch + panel * panel_keys) * size)
                    call(word(table, vectors), block, 0)
            for row in range(rows):
                line = scores + row * pitch * size
                count = read = seen
                if get(args, "causal") != 0:
                    count = smaller(keys, start + row + 1)
                    read = smaller(keys, start + row // height * height + height)
                store_double(total, row, 0.0)
                if plain == 1:
                    scaled_powers(line, total + row * 8, line, scale, number(largest(line, count) * scale), count)
                else:
                    if get(args, "fill_scaled") == 0:
                        if get(args, "mask") != 0:
                            at = word(get(args, "mask_at"), batch) + (start + row) * get(args, "mask_row")
                            scale_and_add(line, line, get(args, "mask") + at * size, scale, weight, count)
                        else:
                            multiply(line, line, scale, count)
                    for which in range(2):
                        flags, flags_at, flags_row = get(args, "keep"), get(args, "keep_at"), get(args, "keep_row")
                        wanted = get(args, "keep_value")
                        if which == 1:
                            flags, flags_at, flags_row = get(args, "also"), get(args, "also_at"), get(args, "also_row")
                            wanted = 1
                        if flags != 0:
                            at = flags + word(flags_at, batch) + (start + row) * flags_row
                            for j in range(count):
                                kept = load(line, j)
                                flag = 1 if load_flag(at, j) != 0 else 0
                                store(line, j, kept if flag == wanted else fill)
                    if get(args, "bias") != 0:
                        at = word(get(args, "bias_at"), batch) + (start + row) * get(args, "bias_row")
                        add(line, line, get(args, "bias") + at * size, count)
                    if get(args, "fill_scaled") != 0:
                        multiply(line, line, scale, count)
                    powers(line, total + row * 8, line, largest(line, count), count)
                if get(args, "drop") != 0:
                    at = word(get(args, "drop_at"), batch) + (start + row) * get(args, "drop_row")
                    drop(line, line, get(args, "drop") + at * size, count)
                if read > count:
                    clear(line + count * size, number(0), read - count)
            v = get(args, "v") + word(get(args, "v_at"), batch) * size
            out = get(args, "out") + (word(get(args, "out_at"), batch) + start * get(args, "out_row")) * size
            put(block, "left_stride", pitch)
            column = 0
            while column < values:
                left = (values - column + lanes - 1) // lanes
                parts = (left + most - 1) // most
                vectors = (left + parts - 1) // parts
                put(block, "right", v + column * size)
                put(block, "sums_stride", vectors * lanes)
                put(block, "sums", sums)
                for row in range(0, rows, height):
                    put(block, "rows", smaller(height, rows - row))
                    read = seen
                    if get(args, "causal") != 0:
                        read = smaller(keys, start + row + height)
                    step = 0
                    while step < read:
                        put(block, "left", scores + (row * pitch + step) * size)
                        put(block, "offsets", get(args, "value_offsets") + step * 8)
                        put(block, "steps", smaller(chain, read - step))
                        put(block, "resume", step)
                        call(word(table, vectors), block, 0)
                        step += chain
                    put(block, "resume", 0)
                    for k in range(smaller(height, rows - row)):
                        multiply(
                            out + ((row + k) * get(args, "out_row") + column) * size, sums + k * vectors * lanes * size,
                            number(rescale / load_double(total, row + k)), smaller(vectors * lanes, values - column),
                        )  # fmt: skip
                column += vectors * lanes
            item = take(args, worker)

    return attend


def _scaled(emitter: Emitter, operands: Sequence[Any]) -> Any:
    score, mask, scale, weight = operands
    return emitter.fma(score, scale, emitter.mul(mask, weight))


def _scaled_power(emitter: Emitter, score: Any, scale: Any, top: Any) -> Any:
    """The product rounds as the largest one did: large ones would differ by more than exp can take."""
    builder = emitter.builder
    return exp_below(emitter, builder.fsub(builder.fmul(score, scale), top))
