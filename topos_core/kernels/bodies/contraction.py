"""The contraction kernel: register tiles over (rows, positions), any shape, epilogue included.

Work is cut into items (batch, group, slice, chunk of positions, part of the rows) that workers take one at a time.
One long function, because numba optimises every function that it calls once more at every level.
"""

from __future__ import annotations

from typing import Any

from topos_core.kernels.host import Host
from topos_core.kernels.tiles import tiles
from topos_core.kernels.vocabulary.blocks import ACROSS, CONTRACTION, FINISH, KEEPS, RUNS, TILE
from topos_core.kernels.vocabulary.memory import (
    ask_to_write,
    call,
    larger,
    loader,
    reader,
    set_word,
    smaller,
    storer,
    word,
    writer,
)
from topos_core.kernels.vocabulary.scalar import SCALARS
from topos_core.kernels.vocabulary.sharing import take

get = reader(CONTRACTION)
put = writer(TILE)


def kernel(host: Host, dtype: str) -> Any:
    """Makes the kernel (block, worker) of a `CONTRACTION` block."""
    tall, tall_vectors, short, short_vectors, flat_vectors, _, _, chain = tiles(host)
    lanes, size = host.lanes(dtype), SCALARS[dtype].bytes
    load, store = loader(SCALARS[dtype]), storer(SCALARS[dtype])
    masked = 1 if host.masked else 0

    def contract(args, worker):  # type: ignore[no-untyped-def]
        block = get(args, "scratch") + worker * get(args, "slot_bytes")
        runs = block + get(args, "runs_at")
        table = get(args, "tiles")
        rows, steps = get(args, "rows"), get(args, "steps")
        pitch, width, height_step = get(args, "pitch"), get(args, "width"), get(args, "out_height")
        width_step = get(args, "out_width")
        widest = tall_vectors
        if rows <= short:
            widest = short_vectors if rows > 1 else flat_vectors
        slack = larger(widest, 4)  # no tile of a block reads further than so many registers
        put(block, "left_stride", steps)
        put(block, "sums", block + get(args, "sums_at"))
        put(block, "out_stride", get(args, "out_row"))
        put(block, "limits", get(args, "limits"))
        put(block, "residual_last", get(args, "residual_last"))
        put(block, "residual_stride", get(args, "residual_row"))
        put(block, "runs", runs)
        put(block, "residual", 0)
        put(block, "finished", 0)
        # tall tiles are finished in their registers
        ends = get(args, "fused") == 1 and get(args, "mode") == RUNS and get(args, "activation") == 0
        item = take(args, worker)
        while item < get(args, "items"):
            if get(args, "part_by_part") == 1:
                chunk = item % get(args, "chunks")
                item //= get(args, "chunks")
                split = item % get(args, "splits")
                item //= get(args, "splits")
            else:
                split = item % get(args, "splits")
                item //= get(args, "splits")
                chunk = item % get(args, "chunks")
                item //= get(args, "chunks")
            part = item % get(args, "depth")
            item //= get(args, "depth")
            group = item % get(args, "groups")
            batch = item // get(args, "groups")
            first_row = split * get(args, "split_rows")
            last_row = smaller(rows, first_row + get(args, "split_rows"))
            first = chunk * get(args, "chunk_positions")
            last = smaller(get(args, "positions"), first + get(args, "chunk_positions"))
            right = (
                batch * get(args, "right_batch") + group * get(args, "right_group") + part * get(args, "right_depth")
            )
            right += chunk * get(args, "right_chunk") - first
            out = batch * get(args, "out_batch") + group * get(args, "out_group") + part * get(args, "out_depth")
            left = get(args, "left") + group * rows * steps * size
            if get(args, "mode") == ACROSS:
                image_row = first // pitch
                column = first - image_row * pitch
                for position in range((last - first + lanes - 1) // lanes * lanes + flat_vectors * lanes):
                    exists = column < width and first + position < last
                    set_word(runs, position, image_row * height_step + column * width_step if exists else -1)
                    column += 1
                    if column == pitch:
                        column = 0
                        image_row += 1
            elif get(args, "mode") == RUNS:
                for vector in range((last - first + lanes - 1) // lanes + flat_vectors):
                    at = runs + vector * 32
                    position = first + vector * lanes
                    count = smaller(lanes, larger(0, last - position))
                    image_row = position // pitch
                    column = position - image_row * pitch
                    ahead = larger(0, smaller(count, width - column))
                    following = smaller(lanes, pitch - column)  # the lane at which the next image row starts
                    end = larger(following, smaller(count, following + width))
                    set_word(at, 0, image_row * height_step + column)
                    set_word(at, 1, (1 << ahead) - 1)
                    set_word(at, 2, (image_row + 1) * height_step - following)
                    set_word(at, 3, (1 << end) - (1 << following))
            if get(args, "producer") != 0:
                put(block, "source", get(args, "right") + (right + first) * size)
                put(block, "right", block + get(args, "copied_at"))
                put(block, "first", first)
                put(block, "last", last)
                put(block, "vectors", (last - first + lanes - 1) // lanes)
                call(get(args, "producer"), block, get(args, "produced"))
            asked = 0
            following = get(args, "right") + (right + first + get(args, "chunk_positions")) * size
            position = first
            while position < last:
                left_over = (last - position + lanes - 1) // lanes
                block_vectors = smaller(left_over, widest)
                if left_over == tall_vectors + 1 and widest == tall_vectors:
                    block_vectors = 2  # a tile of one register waits for its loads
                end = smaller(last, position + block_vectors * lanes)
                source = get(args, "right") + (right + position) * size
                offsets = get(args, "offsets")
                if get(args, "producer") != 0:
                    source = block + get(args, "copied_at") + (position - first) * size
                    offsets = get(args, "copied_offsets")
                elif right + position + get(args, "reach") + slack * lanes > get(args, "right_size"):
                    target = block + get(args, "copied_at")
                    for step in range(steps):
                        place = target + step * get(args, "copied_pitch") * size
                        from_place = source + word(offsets, step) * size
                        for i in range(end - position):
                            store(place, i, load(from_place, i))
                    source = target
                    offsets = get(args, "copied_offsets")
                put(block, "right", source)
                put(block, "places", runs + (position - first) * 8)
                put(block, "runs", runs + (position - first) // lanes * 32)
                put(block, "first", position)
                put(block, "last", end)
                keeps = get(args, "keeps") == 1 and offsets == get(args, "offsets")
                if get(args, "producer") == 0:
                    asked, following = 0, source + block_vectors * lanes * size
                row = first_row
                while row < last_row:
                    kind, height, vectors = 0, tall, block_vectors
                    if last_row - row <= short:
                        kind, height = 1, short
                        if last_row - row == 1:
                            kind, height = 2, 1
                        if (
                            vectors > 1
                        ):  # the tiles that exist are 1, 3 and all wide for a few rows; 1, 4 and all for one
                            vectors = (
                                2 + kind if vectors <= 2 + kind else (short_vectors if kind == 1 else flat_vectors)
                            )
                    present = smaller(height, last_row - row)
                    put(block, "rows", present)
                    put(block, "vectors", vectors)
                    put(block, "sums_stride", vectors * lanes)
                    put(block, "scale", get(args, "scale") + (group * rows + row) * size)
                    put(block, "shift", get(args, "shift") + (group * rows + row) * size)
                    start = out + row * get(args, "out_row")
                    put(block, "out", get(args, "out") + start * size)
                    if get(args, "residual") != 0:
                        put(block, "residual", get(args, "residual") + (out + row * get(args, "residual_row")) * size)
                    if get(args, "out_ahead") == 1:
                        for vector in range((end - position + lanes - 1) // lanes):
                            place = word(runs + ((position - first) // lanes + vector) * 32, 0)
                            for r in range(present):
                                ask_to_write(get(args, "out") + (start + place + r * get(args, "out_row")) * size)
                    step = 0
                    while step < steps:
                        put(block, "ending", 1 if ends and kind == 0 and steps - step <= chain else 0)
                        put(block, "left", left + (row * steps + step) * size)
                        put(block, "offsets", offsets + step * 8)
                        put(block, "steps", smaller(chain, steps - step))
                        put(block, "resume", step)
                        # what is read next and lies far away comes meanwhile: the next panel, or the next rows
                        if asked < get(args, "panel_bytes"):
                            put(block, "ahead", source + get(args, "panel_bytes") + asked)
                            put(block, "ahead_step", 64)
                            asked += 64 * smaller(chain, steps - step)
                        elif asked < get(args, "next_lines"):
                            put(block, "ahead", following + asked * 64 + step * get(args, "next_step"))
                            put(block, "ahead_step", get(args, "next_step"))
                            asked += 1 if steps - step <= chain else 0
                        elif get(args, "left_ahead") == 1:
                            put(block, "ahead", left + ((row + present) * steps + step * height) * size)
                            put(block, "ahead_step", height * size)
                        else:
                            put(block, "ahead", block)
                            put(block, "ahead_step", 0)
                        tile = word(table, 16 * kind + vectors)
                        if keeps and kind == 0 and word(table, KEEPS + vectors) != 0:
                            put(block, "kept", block + get(args, "copied_at") + step * get(args, "copied_pitch") * size)
                            tile = word(table, KEEPS + vectors)
                            if steps - step <= chain:
                                offsets = get(args, "copied_offsets")
                        call(tile, block, 0)
                        step += chain
                    if keeps and offsets == get(args, "copied_offsets"):
                        put(block, "right", block + get(args, "copied_at"))
                    keeps = False
                    row += present
                    if ends and kind == 0:
                        continue
                    turn = 0
                    if get(args, "mode") == ACROSS and kind < 2 and (masked == 1 or present == height):
                        turn = word(table, FINISH + 2 + kind)
                    put(block, "turn", turn)
                    if get(args, "fused") == 1 and get(args, "mode") == RUNS:
                        call(word(table, FINISH), block, 0)
                    elif get(args, "fused") == 1 and turn != 0:
                        call(turn, block, 0)
                    else:
                        call(word(table, FINISH + 1), block, args)
                position += block_vectors * lanes
            item = take(args, worker)

    return contract
