"""One function of one value over dense memory."""

from __future__ import annotations

from typing import Any

from topos_core.kernels.host import Host
from topos_core.kernels.vocabulary.blocks import MAP
from topos_core.kernels.vocabulary.memory import reader, settle, smaller
from topos_core.kernels.vocabulary.rows import row_map
from topos_core.kernels.vocabulary.scalar import SCALARS
from topos_core.kernels.vocabulary.sharing import take
from topos_core.kernels.vocabulary.transcendental import activation

get = reader(MAP)


def kernel(host: Host, dtype: str, name: str) -> Any:
    """Makes the kernel (block, worker) of a `MAP` block."""
    size = SCALARS[dtype].bytes
    apply = row_map(
        host, SCALARS[dtype], (1,), lambda emitter, operands: activation(emitter, name, operands[0]), streams=True
    )

    def unary(args, worker):  # type: ignore[no-untyped-def]
        item = take(args, worker)
        while item < get(args, "items"):
            start = item * get(args, "chunk")
            count = smaller(get(args, "chunk"), get(args, "count") - start)
            apply(get(args, "out") + start * size, get(args, "x") + start * size, count, get(args, "streamed"))
            item = take(args, worker)
        settle()

    return unary
