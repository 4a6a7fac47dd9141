"""An activation over a run of memory, in place: what a contraction calls between its sums and its stores."""

from __future__ import annotations

from typing import Any

from topos_core.kernels.host import Host
from topos_core.kernels.vocabulary.rows import row_map
from topos_core.kernels.vocabulary.scalar import SCALARS
from topos_core.kernels.vocabulary.transcendental import activation


def kernel(host: Host, dtype: str, name: str) -> Any:
    """Makes the kernel (address, count)."""
    in_place = row_map(host, SCALARS[dtype], (1,), lambda emitter, operands: activation(emitter, name, operands[0]))

    def activate(address, count):  # type: ignore[no-untyped-def]
        in_place(address, address, count)

    return activate
