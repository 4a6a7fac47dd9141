"""The epilogue of a register tile: scale, shift, residual, clamp, activation, and a store that puts lanes in place."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from topos_core.kernels.vocabulary.blocks import TILE, index
from topos_core.kernels.vocabulary.emitter import INT64, Emitter
from topos_core.kernels.vocabulary.scalar import Scalar
from topos_core.kernels.vocabulary.tile import counted, kernel_function
from topos_core.kernels.vocabulary.transcendental import activation


def finish_module(scalar: Scalar, lanes: int, name: str, symbol: str) -> Any:
    """Makes a module with one function (block, worker): stores `sums`, finished, through `runs`.

    Needs a machine with masked stores. The lanes of one register may go to two places (the end of an image row and the
    start of the next), hence two offsets and two masks each.
    """
    module, function = kernel_function(symbol)
    _Finish(function, scalar, lanes, name).write()
    return module


class _Finish:
    """Writes the body of the epilogue."""

    def __init__(self, function: Any, scalar: Scalar, lanes: int, name: str) -> None:
        self.builder = ir.IRBuilder(function.append_basic_block("entry"))
        self.emitter = Emitter(self.builder, ir.VectorType(scalar.llvm, lanes))
        self.block = self.builder.inttoptr(function.args[0], INT64.as_pointer())
        self.scalar, self.lanes, self.activation = scalar, lanes, name

    def write(self) -> None:
        builder = self.builder
        self.out, self.residual, limits = self.address("out"), self.address("residual"), self.address("limits")
        self.low, self.high = self.element(limits, self.number(0)), self.element(limits, self.number(1))
        has_residual = builder.icmp_signed("!=", self.word("residual"), self.number(0))
        last = builder.icmp_signed("!=", self.word("residual_last"), self.number(0))
        self.adds_first = builder.and_(has_residual, builder.not_(last))
        self.adds_last = builder.and_(has_residual, last)
        self.runs = builder.inttoptr(self.word("runs"), INT64.as_pointer())
        scale, shift, stride = self.address("scale"), self.address("shift"), self.word("out_stride")
        with counted(builder, self.word("rows")) as row:
            factor, summand = self.element(scale, row), self.element(shift, row)
            self.row(row, factor, summand, builder.mul(row, stride), builder.mul(row, self.word("residual_stride")))
        builder.ret_void()

    def row(self, row: Any, factor: Any, summand: Any, start: Any, added: Any) -> None:
        builder, sums, vectors = self.builder, self.address("sums"), self.word("vectors")
        with counted(builder, vectors) as vector:
            at = builder.add(builder.mul(row, vectors), vector)
            value = self.emitter.load(builder.gep(sums, [builder.mul(at, self.number(self.lanes))]))
            value = self.emitter.fma(value, factor, summand)
            for run in (0, 2):
                place = builder.add(builder.mul(vector, self.number(4)), self.number(run))
                bits = builder.load(builder.gep(self.runs, [builder.add(place, self.number(1))]))
                with builder.if_then(builder.icmp_signed("!=", bits, self.number(0))):
                    offset = builder.load(builder.gep(self.runs, [place]))
                    places = builder.add(start, offset), builder.add(added, offset)
                    self.run(value, self.emitter.mask(bits), *places)

    def run(self, value: Any, mask: Any, target: Any, added: Any) -> None:
        emitter, place = self.emitter, self.builder.gep(self.residual, [added])
        total = self.plus(value, self.adds_first, place, mask)
        total = emitter.at_most(emitter.at_least(total, self.low), self.high)
        if self.activation != "none":
            total = activation(emitter, self.activation, total)
        total = self.plus(total, self.adds_last, place, mask)
        emitter.masked_store(total, self.builder.gep(self.out, [target]), mask)

    def plus(self, value: Any, condition: Any, place: Any, mask: Any) -> Any:
        builder = self.builder
        before = builder.block
        with builder.if_then(condition):
            added = self.emitter.add(value, self.emitter.masked_load(place, mask))
            inside = builder.block
        total = builder.phi(self.emitter.type)
        total.add_incoming(value, before)
        total.add_incoming(added, inside)
        return total

    def element(self, base: Any, at: Any) -> Any:
        return self.emitter.splat(self.builder.load(self.builder.gep(base, [at])))

    def number(self, value: int) -> Any:
        return ir.Constant(INT64, value)

    def word(self, name: str) -> Any:
        return self.builder.load(self.builder.gep(self.block, [self.number(index(TILE, name))]))

    def address(self, name: str) -> Any:
        return self.builder.inttoptr(self.word(name), self.scalar.llvm.as_pointer())
