"""The epilogue of a register tile whose rows lie beside each other in the result: channels last.

A tile has positions in its lanes; here they are turned so that a position's rows are stored together. Riffling the rows
log2(rows) times (the first half of all registers into the second) moves the row number from the top of an element's
address to its bottom.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from topos_core.kernels.vocabulary.blocks import TILE, index
from topos_core.kernels.vocabulary.emitter import INT64, Emitter
from topos_core.kernels.vocabulary.scalar import Scalar
from topos_core.kernels.vocabulary.tile import counted, kernel_function
from topos_core.kernels.vocabulary.transcendental import activation
from topos_core.kernels.vocabulary.turning import riffled


def across_module(scalar: Scalar, lanes: int, rows: int, masked: bool, name: str, symbol: str) -> Any:
    """Makes a module with one function (block, worker) that stores tiles of `rows` rows, a power of two.

    Lane p of register v goes to `out + places[v * lanes + p]`, all rows of it; a place below zero goes nowhere. Where
    `masked` is false, the tile must have all its rows. The activation `name` runs before the rows are turned, so with one
    a residual can only come last.
    """
    module, function = kernel_function(symbol)
    _Across(function, scalar, lanes, rows, masked, name).write()
    return module


class _Across:
    """Writes the body of the epilogue."""

    def __init__(self, function: Any, scalar: Scalar, lanes: int, rows: int, masked: bool, name: str) -> None:
        self.builder = ir.IRBuilder(function.append_basic_block("entry"))
        self.wide = Emitter(self.builder, ir.VectorType(scalar.llvm, lanes))
        self.tall = Emitter(self.builder, ir.VectorType(scalar.llvm, rows))
        self.block = self.builder.inttoptr(function.args[0], INT64.as_pointer())
        self.scalar, self.lanes, self.rows, self.masked, self.activation = scalar, lanes, rows, masked, name

    def write(self) -> None:
        builder = self.builder
        self.out, self.residual, limits = self.address("out"), self.address("residual"), self.address("limits")
        one = self.number(1)
        self.low = self.tall.splat(builder.load(limits))
        self.high = self.tall.splat(builder.load(builder.gep(limits, [one])))
        self.finished = builder.icmp_signed("!=", self.word("finished"), self.number(0))
        residual = builder.icmp_signed("!=", self.word("residual"), self.number(0))
        has_residual = builder.and_(residual, builder.not_(self.finished))  # what is finished has it already
        last = builder.icmp_signed("!=", self.word("residual_last"), self.number(0))
        self.adds_first = builder.and_(has_residual, builder.not_(last))
        self.adds_last = builder.and_(has_residual, last)
        present = self.word("rows")
        self.mask = self.tall.mask(builder.sub(builder.shl(one, present), one)) if self.masked else None
        self.places = builder.inttoptr(self.word("places"), INT64.as_pointer())
        scale, shift, sums = self.address("scale"), self.address("shift"), self.address("sums")
        vectors = self.word("vectors")
        factors = []
        for r in range(self.rows):
            row = self.number(r)
            row = builder.select(builder.icmp_signed("<", row, present), row, self.number(0))
            factors.append([builder.load(builder.gep(base, [row])) for base in (scale, shift)])
        with counted(builder, vectors) as vector:
            registers = []
            for r, (factor, summand) in enumerate(factors):
                at = builder.add(builder.mul(self.number(r), vectors), vector)
                value = self.wide.load(builder.gep(sums, [builder.mul(at, self.number(self.lanes))]))
                scaled = self.wide.fma(value, self.wide.splat(factor), self.wide.splat(summand))
                if self.activation != "none":
                    scaled = activation(self.wide, self.activation, scaled)
                registers.append(builder.select(self.finished, value, scaled))
            half = self.rows
            while half > 1:
                registers = riffled(builder, registers)
                half //= 2
            self.store(registers, builder.mul(vector, self.number(self.lanes)))
        builder.ret_void()

    def store(self, registers: list[Any], first: Any) -> None:
        builder = self.builder
        flat = [self.split(register, k) for register in registers for k in range(self.lanes // self.rows)]
        for position, value in enumerate(flat):
            place = builder.load(builder.gep(self.places, [builder.add(first, self.number(position))]))
            with builder.if_then(builder.icmp_signed(">=", place, self.number(0)), likely=True):
                target, other = builder.gep(self.out, [place]), builder.gep(self.residual, [place])
                total = self.plus(value, self.adds_first, other)
                clamped = self.tall.at_most(self.tall.at_least(total, self.low), self.high)
                total = self.plus(builder.select(self.finished, total, clamped), self.adds_last, other)
                if self.mask is not None:
                    self.tall.masked_store(total, target, self.mask)
                else:
                    self.tall.store(total, target)

    def split(self, register: Any, part: int) -> Any:
        if self.rows == self.lanes:
            return register
        picked = [part * self.rows + k for k in range(self.rows)]
        lanes = ir.Constant(ir.VectorType(ir.IntType(32), self.rows), picked)
        return self.builder.shuffle_vector(register, ir.Constant(register.type, ir.Undefined), lanes)

    def plus(self, value: Any, condition: Any, place: Any) -> Any:
        builder = self.builder
        before = builder.block
        with builder.if_then(condition):
            loaded = self.tall.load(place) if self.mask is None else self.tall.masked_load(place, self.mask)
            added = self.tall.add(value, loaded)
            inside = builder.block
        total = builder.phi(self.tall.type)
        total.add_incoming(value, before)
        total.add_incoming(added, inside)
        return total

    def number(self, value: int) -> Any:
        return ir.Constant(INT64, value)

    def word(self, name: str) -> Any:
        return self.builder.load(self.builder.gep(self.block, [self.number(index(TILE, name))]))

    def address(self, name: str) -> Any:
        return self.builder.inttoptr(self.word(name), self.scalar.llvm.as_pointer())
