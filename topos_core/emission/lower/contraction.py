"""Contraction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from topos_core.emission.builder import Builder, Ssa
from topos_core.emission.lower.lowering import Lower
from topos_core.emission.syntax import ints
from topos_core.tape.op import Op
from topos_core.tape.type import FLOATS, TensorType, numpy_dtype


def _matmul(builder: Builder, op: Op, operands: Sequence[Ssa]) -> Ssa:
    """Writes `dot_general` with the accumulation dtype as its result; f16 and bf16 accumulate in f32 at least."""
    if operands[0].shape[-1] == 0:  # a sum of nothing, at which the reference interpreter aborts
        return builder.constant(0, op.type)
    running: str = op.attributes["accumulate"]
    if running in FLOATS and numpy_dtype(running).itemsize == 2:
        running = "f32"
    rank = len(op.type.shape)
    batch = f"batching_dims = [{ints(range(rank - 2))}] x [{ints(range(rank - 2))}], " if rank > 2 else ""
    attributes = f"{batch}contracting_dims = [{rank - 1}] x [{rank - 2}]"
    wide = running != op.type.dtype
    product = builder.call(
        "dot_general", operands, TensorType(running, op.type.shape), attributes, "product" if wide else ""
    )
    return builder.convert(product, op.type.dtype)


LOWERINGS: Final[Mapping[str, Lower]] = {"matmul": _matmul}
