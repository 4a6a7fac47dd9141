"""Lookup."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from topos_core.emission.builder import Builder, Ssa
from topos_core.emission.lower.lowering import Lower
from topos_core.emission.syntax import ints, signature, tensor
from topos_core.tape.op import Op
from topos_core.tape.type import TensorType


def _gather(builder: Builder, op: Op, operands: Sequence[Ssa]) -> Ssa:
    x, indices = operands
    return builder.gather(x, indices, op.attributes["axis"])


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


LOWERINGS: Final[Mapping[str, Lower]] = {"gather": _gather, "scatter_add": _scatter_add}
