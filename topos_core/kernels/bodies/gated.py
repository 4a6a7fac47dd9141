"""The product of two values, one of them activated first, row by row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from topos_core.kernels.host import Host
from topos_core.kernels.vocabulary.blocks import GATED
from topos_core.kernels.vocabulary.emitter import Emitter
from topos_core.kernels.vocabulary.memory import reader, smaller, word
from topos_core.kernels.vocabulary.rows import row_map
from topos_core.kernels.vocabulary.scalar import SCALARS
from topos_core.kernels.vocabulary.sharing import take
from topos_core.kernels.vocabulary.transcendental import activation

get = reader(GATED)


def kernel(host: Host, dtype: str, name: str) -> Any:
    """Makes the kernel (block, worker) of a `GATED` block."""
    size = SCALARS[dtype].bytes

    def opened(emitter: Emitter, operands: Sequence[Any]) -> Any:
        gate, up = operands
        return emitter.mul(activation(emitter, name, gate), up)

    apply = row_map(host, SCALARS[dtype], (1, 1), opened)

    def gated(args, worker):  # type: ignore[no-untyped-def]
        count = get(args, "count")
        item = take(args, worker)
        while item < get(args, "items"):
            first = item * get(args, "chunk")
            for row in range(first, smaller(get(args, "rows"), first + get(args, "chunk"))):
                gate = get(args, "gate") + word(get(args, "gate_at"), row) * size
                up = get(args, "up") + word(get(args, "up_at"), row) * size
                apply(get(args, "out") + row * count * size, gate, up, count)
            item = take(args, worker)

    return gated
