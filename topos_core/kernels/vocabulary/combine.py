"""Two values to one: sum, maximum and minimum by the numeric rules (NaN wins, -0 < +0; integers wrap)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir

from topos_core.kernels.vocabulary.emitter import Emitter
from topos_core.kernels.vocabulary.rows import Step
from topos_core.kernels.vocabulary.scalar import Scalar


def combiner(reducer: str, scalar: Scalar, *, numbers: bool = False) -> Step:
    """Makes the step that combines its operands, left to right, by `sum`, `max` or `min`; `numbers`: none of them is NaN."""

    def combine(emitter: Emitter, operands: Sequence[Any]) -> Any:
        total = operands[0]
        for operand in operands[1:]:
            total = _pair(emitter, reducer, scalar, total, operand, numbers)
        return total

    return combine


def _pair(emitter: Emitter, reducer: str, scalar: Scalar, a: Any, b: Any, numbers: bool) -> Any:
    builder = emitter.builder
    if reducer == "sum":
        return builder.fadd(a, b) if scalar.is_float else builder.add(a, b)
    if scalar.is_float:
        return _ordered_extreme(emitter, reducer, scalar, a, b, numbers)
    compare = builder.icmp_signed if scalar.is_signed else builder.icmp_unsigned
    return builder.select(compare(">" if reducer == "max" else "<", a, b), a, b)


def _ordered_extreme(emitter: Emitter, reducer: str, scalar: Scalar, a: Any, b: Any, numbers: bool) -> Any:
    """IEEE 754-2019 maximum and minimum."""
    if isinstance(emitter.type, ir.VectorType) and emitter.type.count * scalar.bytes == 64:
        return _in_whole_registers(emitter, reducer, scalar, a, b, numbers)
    lanes = f"v{emitter.type.count}" if isinstance(emitter.type, ir.VectorType) else ""
    name = f"llvm.{reducer}imum.{lanes}f{8 * scalar.bytes}"
    function = emitter.builder.module.globals.get(name)
    if function is None:
        kind = ir.FunctionType(emitter.type, [emitter.type, emitter.type])
        function = ir.Function(emitter.builder.module, kind, name)
    return emitter.builder.call(function, [a, b])


def _in_whole_registers(emitter: Emitter, reducer: str, scalar: Scalar, a: Any, b: Any, numbers: bool) -> Any:
    """Uses AVX-512's range instruction, which orders zeros by sign and passes NaN over: three instructions, not six."""
    builder, count = emitter.builder, emitter.type.count
    name = f"llvm.x86.avx512.mask.range.{'ps' if scalar.bytes == 4 else 'pd'}.512"
    function = builder.module.globals.get(name)
    bits, word = ir.IntType(count), ir.IntType(32)
    if function is None:
        kind = ir.FunctionType(emitter.type, [emitter.type, emitter.type, word, emitter.type, bits, word])
        function = ir.Function(builder.module, kind, name)
    which = 5 if reducer == "max" else 4  # with the chosen operand's own sign
    everywhere, rounding = ir.Constant(bits, -1), ir.Constant(word, 4)
    chosen = builder.call(function, [a, b, ir.Constant(word, which), emitter.constant(0.0), everywhere, rounding])
    if numbers:
        return chosen
    return builder.select(builder.fcmp_unordered("uno", a, b), builder.fadd(a, b), chosen)
