"""Two values to one: sum, maximum and minimum by the numeric rules (NaN wins, -0 < +0; integers wrap)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir

from topos_core.kernels.vocabulary.emitter import Emitter
from topos_core.kernels.vocabulary.rows import Step
from topos_core.kernels.vocabulary.scalar import Scalar


def combiner(reducer: str, scalar: Scalar) -> Step:
    """Makes the step that combines its operands, left to right, by `sum`, `max` or `min`."""

    def combine(emitter: Emitter, operands: Sequence[Any]) -> Any:
        total = operands[0]
        for operand in operands[1:]:
            total = _pair(emitter, reducer, scalar, total, operand)
        return total

    return combine


def _pair(emitter: Emitter, reducer: str, scalar: Scalar, a: Any, b: Any) -> Any:
    builder = emitter.builder
    if reducer == "sum":
        return builder.fadd(a, b) if scalar.is_float else builder.add(a, b)
    if scalar.is_float:
        return _ordered_extreme(emitter, reducer, scalar, a, b)
    compare = builder.icmp_signed if scalar.is_signed else builder.icmp_unsigned
    return builder.select(compare(">" if reducer == "max" else "<", a, b), a, b)


def _ordered_extreme(emitter: Emitter, reducer: str, scalar: Scalar, a: Any, b: Any) -> Any:
    """IEEE 754-2019 maximum and minimum."""
    lanes = f"v{emitter.type.count}" if isinstance(emitter.type, ir.VectorType) else ""
    name = f"llvm.{reducer}imum.{lanes}f{8 * scalar.bytes}"
    function = emitter.builder.module.globals.get(name)
    if function is None:
        kind = ir.FunctionType(emitter.type, [emitter.type, emitter.type])
        function = ir.Function(emitter.builder.module, kind, name)
    return emitter.builder.call(function, [a, b])
