"""The register tile: `sums[r, p] = sum over k of left[r, k] * right[offsets[k] + p]`, every accumulator in a register.

The left operand gives one scalar per row and step, the right one gives `vectors` registers per step, read at an offset
from a list: consecutive rows of a matrix, or the taps of a convolution over an image, without an im2col. The tile keeps
rows * vectors accumulators, so it needs that many registers, plus `vectors`, plus one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import ir

from topos_core.kernels.vocabulary.blocks import TILE, index
from topos_core.kernels.vocabulary.emitter import INT64, Emitter
from topos_core.kernels.vocabulary.scalar import Scalar
from topos_core.kernels.vocabulary.tile_ending import write_ending


def tile_module(
    scalar: Scalar,
    lanes: int,
    rows: int,
    vectors: int,
    symbol: str,
    *,
    packed: bool = False,
    ends: bool = False,
    keeps: int = 0,
) -> Any:
    """Makes a module with one function (block, worker) that runs a tile and leaves it in `sums`.

    With `packed`, the left operand lies as [steps, rows], so that it comes from memory in one stream. With `ends`, a block
    whose `ending` is 1 has the tile finished in its registers and stored through `runs`; needs masked stores. With `keeps`, what it
    reads of the right operand is stored at `kept` too, so many elements from step to step.
    """
    module, function = kernel_function(symbol)
    _Tile(function, scalar, lanes, rows, vectors, packed, ends, keeps).write()
    return module


def kernel_function(symbol: str) -> tuple[Any, Any]:
    """Makes a module with an empty kernel function (int64, int64)."""
    module = ir.Module(symbol)
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [INT64, INT64]), symbol)
    return module, function


@contextmanager
def counted(builder: Any, count: Any) -> Iterator[Any]:
    """Emits a loop whose block runs for 0, 1, ... below `count`, at least once."""
    before = builder.block
    loop, after = builder.append_basic_block("loop"), builder.append_basic_block("after")
    builder.branch(loop)
    builder.position_at_end(loop)
    number = builder.phi(INT64)
    number.add_incoming(ir.Constant(INT64, 0), before)
    yield number
    following = builder.add(number, ir.Constant(INT64, 1))
    number.add_incoming(following, builder.block)
    builder.cbranch(builder.icmp_signed("<", following, count), loop, after)
    builder.position_at_end(after)


class _Tile:
    """Writes the body of one tile function."""

    def __init__(
        self, function: Any, scalar: Scalar, lanes: int, rows: int, vectors: int, packed: bool, ends: bool, keeps: int
    ) -> None:
        self.builder = ir.IRBuilder(function.append_basic_block("entry"))
        self.emitter = Emitter(self.builder, ir.VectorType(scalar.llvm, lanes))
        self.block = self.builder.inttoptr(function.args[0], INT64.as_pointer())
        self.scalar, self.lanes, self.rows, self.vectors = scalar, lanes, rows, vectors
        self.packed, self.ends, self.keeps = packed, ends, keeps

    def write(self) -> None:
        builder = self.builder
        places = self.places()
        sums = self.contract()
        resume = builder.icmp_signed("!=", self.word("resume"), self.number(0))
        if self.ends:
            ending = builder.icmp_signed("!=", self.word("ending"), self.number(0))
            with builder.if_else(ending) as (end, keep):
                with end:
                    write_ending(self, self.resumed(resume, sums, places))
                with keep:
                    self.keep(resume, sums, places)
        else:
            self.keep(resume, sums, places)
        builder.ret_void()

    def keep(self, resume: Any, sums: list[Any], places: list[Any]) -> None:
        builder, emitter = self.builder, self.emitter
        with builder.if_else(resume) as (add, replace):
            with add:
                for value, place in zip(sums, places, strict=True):
                    emitter.store(emitter.add(value, emitter.load(place)), place)
            with replace:
                for value, place in zip(sums, places, strict=True):
                    emitter.store(value, place)

    def resumed(self, resume: Any, sums: list[Any], places: list[Any]) -> list[Any]:
        """Adds what stands in `sums` where there is something."""
        builder, emitter = self.builder, self.emitter
        before = builder.block
        with builder.if_then(resume):
            added = [emitter.add(value, emitter.load(place)) for value, place in zip(sums, places, strict=True)]
            inside = builder.block
        totals = []
        for value, total in zip(sums, added, strict=True):
            merged = builder.phi(emitter.type)
            merged.add_incoming(value, before)
            merged.add_incoming(total, inside)
            totals.append(merged)
        return totals

    def places(self) -> list[Any]:
        builder, sums, stride = self.builder, self.address("sums"), self.word("sums_stride")
        rows = [builder.gep(sums, [builder.mul(stride, self.number(r))]) for r in range(self.rows)]
        return [builder.gep(row, [self.number(v * self.lanes)]) for row in rows for v in range(self.vectors)]

    def contract(self) -> list[Any]:
        builder, emitter = self.builder, self.emitter
        rows = self.packed_rows() if self.packed else self.left_rows()
        right, offsets = self.address("right"), builder.inttoptr(self.word("offsets"), INT64.as_pointer())
        steps, ahead, ahead_step = self.word("steps"), self.word("ahead"), self.word("ahead_step")
        kept = self.address("kept") if self.keeps else None
        before = builder.block
        loop, after = builder.append_basic_block("step"), builder.append_basic_block("done")
        builder.branch(loop)
        builder.position_at_end(loop)
        step = builder.phi(INT64)
        step.add_incoming(self.number(0), before)
        accumulators = [builder.phi(emitter.type) for _ in range(self.rows * self.vectors)]
        soon = builder.add(ahead, builder.mul(step, ahead_step))
        emitter.prefetch(builder.inttoptr(soon, ir.IntType(8).as_pointer()))
        lanes = builder.gep(right, [builder.load(builder.gep(offsets, [step]))])
        values = [emitter.load(builder.gep(lanes, [self.number(v * self.lanes)])) for v in range(self.vectors)]
        if kept is not None:
            line = builder.gep(kept, [builder.mul(step, self.number(self.keeps))])
            for v, value in enumerate(values):
                emitter.store(value, builder.gep(line, [self.number(v * self.lanes)]))
        sums = []
        for r, row in enumerate(rows):
            at = builder.mul(step, self.number(self.rows)) if self.packed else step
            factor = emitter.splat(builder.load(builder.gep(row, [at])))
            sums += [emitter.fma(factor, values[v], accumulators[r * self.vectors + v]) for v in range(self.vectors)]
        following = builder.add(step, self.number(1))
        step.add_incoming(following, loop)
        for accumulator, value in zip(accumulators, sums, strict=True):
            accumulator.add_incoming(emitter.constant(0.0), before)
            accumulator.add_incoming(value, loop)
        builder.cbranch(builder.icmp_signed("<", following, steps), loop, after)
        builder.position_at_end(after)
        return sums

    def packed_rows(self) -> list[Any]:
        """Gives a pointer per row; all rows exist."""
        left = self.address("left")
        return [self.builder.gep(left, [self.number(r)]) for r in range(self.rows)]

    def left_rows(self) -> list[Any]:
        """Gives a pointer per row; a row that does not exist reads the last one again and is never stored."""
        builder = self.builder
        left, stride = self.address("left"), self.word("left_stride")
        last = builder.sub(self.word("rows"), self.number(1))
        rows = []
        for r in range(self.rows):
            row = self.number(r)
            row = builder.select(builder.icmp_signed("<", row, last), row, last)
            rows.append(builder.gep(left, [builder.mul(row, stride)]))
        return rows

    def number(self, value: int) -> Any:
        return ir.Constant(INT64, value)

    def word(self, name: str) -> Any:
        return self.builder.load(self.builder.gep(self.block, [self.number(index(TILE, name))]))

    def address(self, name: str) -> Any:
        return self.builder.inttoptr(self.word(name), self.scalar.llvm.as_pointer())
