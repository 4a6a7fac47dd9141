"""Lookup."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from topos_core.emission.builder import Builder, Ssa
from topos_core.emission.lower.lowering import Lower
from topos_core.emission.syntax import ints, signature, tensor
from topos_core.tape.op import Op
from topos_core.tape.type import TensorType, numpy_dtype


def _gather(builder: Builder, op: Op, operands: Sequence[Ssa]) -> Ssa:
    x, indices = operands
    return builder.gather(x, indices, op.attributes["axis"])


def _within(builder: Builder, op: Op, operands: Sequence[Ssa]) -> Ssa:
    """StableHLO has no errors: an index outside becomes the nearest one inside, as its own lookups do."""
    (x,) = operands
    held = np.iinfo(numpy_dtype(x.dtype))
    first, last = max(op.attributes["low"], int(held.min)), min(op.attributes["high"] - 1, int(held.max))
    capped = builder.same("minimum", x, builder.constant(last, x.type, "last"), word="capped")
    return builder.same("maximum", capped, builder.constant(first, x.type, "first"), word="within")


def _scatter_add(builder: Builder, op: Op, operands: Sequence[Ssa]) -> Ssa:
    x, indices, updates = operands
    if updates.type.size == 0:
        return x
    axis, count = op.attributes["axis"], len(indices.shape)
    windows = [k if k < axis else k + count - 1 for k in range(len(x.shape)) if k != axis]
    numbers = (
        f"#stablehlo.scatter<update_window_dims = [{ints(windows)}], inserted_window_dims = [{axis}],"
        f" scatter_dims_to_operand_dims = [{axis}], index_vector_dim = {count}>"
    )
    scalar = tensor(TensorType(x.dtype, ()))
    name, have, more, total = (builder.fresh(word) for word in ("", "have", "more", "total"))
    arguments = ", ".join(operand.name for operand in operands)
    builder.line(f'{name} = "stablehlo.scatter"({arguments}) ({{', place=False)
    builder.line(f"^bb0({have}: {scalar}, {more}: {scalar}):", place=False)
    builder.line(f"  {total} = stablehlo.add {have}, {more} : {scalar}")
    builder.line(f"  stablehlo.return {total} : {scalar}")
    types = signature([operand.type for operand in operands], op.type)
    builder.line(f"}}) {{scatter_dimension_numbers = {numbers}}} : {types}")
    return Ssa(name, op.type)


LOWERINGS: Final[Mapping[str, Lower]] = {"gather": _gather, "scatter_add": _scatter_add, "within": _within}
