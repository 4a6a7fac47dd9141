"""Writes zeros around the elements of planes: before the first row, between rows, behind the last one."""

from __future__ import annotations

from typing import Any

from topos_core.kernels.host import Host
from topos_core.kernels.vocabulary.blocks import MARGINS
from topos_core.kernels.vocabulary.memory import reader, storer
from topos_core.kernels.vocabulary.scalar import SCALARS
from topos_core.kernels.vocabulary.sharing import take

get = reader(MARGINS)


def kernel(host: Host, dtype: str) -> Any:
    """Makes the kernel (block, worker) of a `MARGINS` block."""
    size = SCALARS[dtype].bytes
    store = storer(SCALARS[dtype])
    zero = SCALARS[dtype].numba(0)

    def margins(args, worker):  # type: ignore[no-untyped-def]
        pitch, width, height = get(args, "pitch"), get(args, "width"), get(args, "height")
        first, elements = get(args, "first"), get(args, "plane")
        item = take(args, worker)
        while item < get(args, "items"):
            plane = get(args, "planes") + item * elements * size
            for q in range(first):
                store(plane, q, zero)
            for row in range(height - 1):
                between = plane + (first + row * pitch + width) * size
                for q in range(pitch - width):
                    store(between, q, zero)
            last = first + (height - 1) * pitch + width
            count = elements - last + (get(args, "behind") if item + 1 == get(args, "items") else 0)
            for q in range(count):
                store(plane + last * size, q, zero)
            item = take(args, worker)

    return margins
