"""Copies an image into padded planes, one per channel and residue of the stride, so that every tap reads runs of lanes.

Position q of the plane of residue a holds the padded, base-dilated image at q * stride + a. Rows stand `pitch` apart;
where the pitch is below the plane's width, a row's trailing zeros are the next row's leading ones.
"""

from __future__ import annotations

from typing import Any

from topos_core.kernels.host import Host
from topos_core.kernels.vocabulary.blocks import PLANES
from topos_core.kernels.vocabulary.memory import larger, loader, reader, smaller, storer, word
from topos_core.kernels.vocabulary.rows import row_map
from topos_core.kernels.vocabulary.scalar import SCALARS
from topos_core.kernels.vocabulary.sharing import take

get = reader(PLANES)


def kernel(host: Host, dtype: str) -> Any:
    """Makes the kernel (block, worker) of a `PLANES` block."""
    size = SCALARS[dtype].bytes
    load, store = loader(SCALARS[dtype]), storer(SCALARS[dtype])
    zero = SCALARS[dtype].numba(0)
    # image rows are short: a vectorised loop would spend its time on a scalar remainder
    copy = row_map(host, SCALARS[dtype], (1,), lambda emitter, operands: operands[0])
    every_second = row_map(host, SCALARS[dtype], (2,), lambda emitter, operands: operands[0])

    def planes(args, worker):  # type: ignore[no-untyped-def]
        pitch, columns = get(args, "pitch"), get(args, "plane_width")
        stride, base, low = get(args, "width_stride"), get(args, "width_base"), get(args, "width_low")
        phases = get(args, "depth_phases") * get(args, "height_phases") * get(args, "width_phases")
        depth_base, height_base = get(args, "depth_base"), get(args, "height_base")
        height, down_stride, down_low = get(args, "plane_height"), get(args, "height_stride"), get(args, "height_low")
        y_last = (get(args, "height") - 1) * height_base
        step = get(args, "x_width") * stride
        item = take(args, worker)
        while item < get(args, "items"):
            image = (item // get(args, "channels")) * get(args, "x_batch")
            image += (item % get(args, "channels")) * get(args, "x_channel")
            for phase in range(phases):
                across = phase % get(args, "width_phases")
                down = phase // get(args, "width_phases") % get(args, "height_phases")
                inward = phase // get(args, "width_phases") // get(args, "height_phases")
                residues = get(args, "residues")
                inward = word(residues, inward)
                down = word(residues, get(args, "depth_phases") + down)
                across = word(residues, get(args, "depth_phases") + get(args, "height_phases") + across)
                plane = get(args, "planes") + (item * phases + phase) * get(args, "phase") * size
                # columns [begin, end) stand in the image: 0 <= q * stride + across - low <= (width - 1) * base
                begin = smaller(columns, larger(0, (low - across + stride - 1) // stride))
                end = larger(begin, smaller(columns, ((get(args, "width") - 1) * base + low - across) // stride + 1))
                for slab in range(get(args, "plane_depth")):
                    z = slab * get(args, "depth_stride") + inward - get(args, "depth_low")
                    deep = z >= 0 and z <= (get(args, "depth") - 1) * depth_base
                    deep = deep and (depth_base == 1 or z % depth_base == 0)
                    layer = (
                        image + z // depth_base * get(args, "x_depth")
                        if depth_base != 1
                        else image + z * get(args, "x_depth")
                    )
                    for line in range(height):
                        y = line * down_stride + down - down_low
                        target = plane + (slab * get(args, "slice") + line * pitch) * size
                        inside = deep and y >= 0 and y <= y_last and (height_base == 1 or y % height_base == 0)
                        first, last = (begin, end) if inside else (columns, columns)
                        for q in range(first):
                            store(target, q, zero)
                        if last > first:
                            if height_base != 1:
                                y //= height_base
                            at = layer + y * get(args, "x_height")
                            if base == 1:
                                at += (first * stride + across - low) * get(args, "x_width")
                                source, place = get(args, "x") + at * size, target + first * size
                                if step == 1:
                                    copy(place, source, last - first)
                                elif step == 2:
                                    every_second(place, source, last - first)
                                else:
                                    for q in range(last - first):
                                        store(place, q, load(source, q * step))
                            else:
                                source = get(args, "x") + at * size
                                for q in range(first, last):
                                    x = q * stride + across - low
                                    there = load(source, x // base * get(args, "x_width"))
                                    store(target, q, there if x % base == 0 else zero)
                        for q in range(last, columns):
                            store(target, q, zero)
                end_of_plane = plane + (get(args, "phase") - get(args, "tail")) * size
                for q in range(get(args, "tail")):
                    store(end_of_plane, q, zero)
            item = take(args, worker)

    return planes
