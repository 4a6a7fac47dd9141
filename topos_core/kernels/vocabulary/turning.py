"""Turns square blocks of memory in vector registers: rows become columns."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from topos_core.kernels.host import Host
from topos_core.kernels.vocabulary.emitter import INT64, Emitter
from topos_core.kernels.vocabulary.scalar import Scalar


def turner(host: Host, scalar: Scalar) -> Any:
    """Makes `turn(target, target_stride, source, source_stride)` for a block of lanes x lanes; strides in elements."""
    lanes = host.lanes(scalar.name)

    def turn(context: Any, target: Any, target_stride: Any, source: Any, source_stride: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            target, target_stride, source, source_stride = arguments
            emitter = Emitter(builder, ir.VectorType(scalar.llvm, lanes))
            target = builder.inttoptr(target, scalar.llvm.as_pointer())
            source = builder.inttoptr(source, scalar.llvm.as_pointer())

            def row(base: Any, stride: Any, k: int) -> Any:
                return builder.gep(base, [builder.mul(stride, ir.Constant(INT64, k))])

            registers = [emitter.load(row(source, source_stride, k)) for k in range(lanes)]
            for k, register in enumerate(turned(builder, registers)):
                emitter.store(register, row(target, target_stride, k))
            return context.get_dummy_value()

        return types.void(types.int64, types.int64, types.int64, types.int64), generate

    return intrinsic(turn)


def turned(builder: Any, registers: list[Any]) -> list[Any]:
    """Transposes as many registers as they have lanes, by riffling them log2(lanes) times."""
    count = len(registers)
    while count > 1:
        registers = riffled(builder, registers)
        count //= 2
    return registers


def riffled(builder: Any, registers: list[Any]) -> list[Any]:
    """Interleaves the elements of the first half of all registers with those of the second half."""
    lanes, middle = registers[0].type.count, len(registers) // 2
    low = [k // 2 + (k % 2) * lanes for k in range(lanes)]
    kind = ir.VectorType(ir.IntType(32), lanes)
    result = []
    for a, b in zip(registers[:middle], registers[middle:], strict=True):
        result.append(builder.shuffle_vector(a, b, ir.Constant(kind, low)))
        result.append(builder.shuffle_vector(a, b, ir.Constant(kind, [k + lanes // 2 for k in low])))
    return result
