"""Reduces short windows over rows and dense columns of [outer, rows, columns] without leaving the registers.

Some result rows are made together, so that a row of the image which several of them read is loaded once: first down, then
across, where a window's earlier columns are lanes of the registers before. What lies outside counts as `fill`; masks keep
loads inside of the image, so this needs a machine that has them.

NaN wins over numbers, and one instruction cannot see to that. A sum of all that was read tells whether there is any; rows
that have one, or infinities of both signs, are reduced again by the rule for NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from llvmlite import ir

from topos_core.kernels.host import Host
from topos_core.kernels.vocabulary.blocks import WINDOW, index
from topos_core.kernels.vocabulary.combine import combiner
from topos_core.kernels.vocabulary.emitter import INT32, INT64, Emitter
from topos_core.kernels.vocabulary.loops import Slot, ranged
from topos_core.kernels.vocabulary.rows import Step
from topos_core.kernels.vocabulary.scalar import SCALARS
from topos_core.kernels.vocabulary.sharing import take_item
from topos_core.kernels.vocabulary.tile import kernel_function

BLOCK: Final = WINDOW
ROWS: Final = 2
"""Result rows that are made together."""


def module(host: Host, symbol: str, dtype: str, reducer: str, *windows: str) -> Any:
    """Makes the kernel (block, worker) of a `WINDOW` block whose sizes and strides are `windows`: down, then across.

    Dilations are 1, and across, strides are 1 or 2. A worker's scratch is a row of the image.
    """
    made, function = kernel_function(symbol)
    _Writer(host, function, dtype, reducer, *map(int, windows)).write()
    return made


class _Writer:
    """Writes one kernel."""

    def __init__(
        self, host: Host, function: Any, dtype: str, reducer: str, down: int, down_step: int, across: int, step: int
    ) -> None:
        self.builder = ir.IRBuilder(function.append_basic_block("entry"))
        self.arguments = function.args
        self.block = self.builder.inttoptr(function.args[0], INT64.as_pointer())
        self.worker = function.args[1]
        self.scalar, self.lanes = SCALARS[dtype], host.lanes(dtype)
        self.emitter = Emitter(self.builder, ir.VectorType(self.scalar.llvm, self.lanes))
        self.sums = reducer == "sum"
        self.by_rule, self.of_numbers = combiner(reducer, self.scalar), combiner(reducer, self.scalar, numbers=True)
        self.down, self.down_step, self.across, self.step = down, down_step, across, step

    def write(self) -> None:
        builder = self.builder
        self.words = {name: self.word(name) for name in BLOCK if name != "counter"}
        values = self.pointer(self.words["values"])
        fill, column_fill, scale = (builder.load(builder.gep(values, [self.number(k)])) for k in range(3))
        self.column_fill, self.scale = self.emitter.splat(column_fill), self.emitter.splat(scale)
        slot = builder.mul(self.worker, self.words["slot_bytes"])
        self.outside = self.pointer(builder.add(self.words["scratch"], slot))
        with ranged(builder, self.number(0), self.words["columns"]) as at:
            builder.store(fill, builder.gep(self.outside, [at]))
        item = Slot(builder, self.take())
        condition, body = builder.append_basic_block("items"), builder.append_basic_block("item")
        after = builder.append_basic_block("done")
        builder.branch(condition)
        builder.position_at_end(condition)
        builder.cbranch(builder.icmp_signed("<", item.get(), self.words["items"]), body, after)
        builder.position_at_end(body)
        self.item(item.get())
        item.set(self.take())
        builder.branch(condition)
        builder.position_at_end(after)
        builder.ret_void()

    def item(self, item: Any) -> None:
        builder, words = self.builder, self.words
        outer = builder.sdiv(item, words["chunks"])
        chunk = builder.sub(item, builder.mul(outer, words["chunks"]))
        first = builder.mul(chunk, words["chunk_rows"])
        last = builder.add(first, words["chunk_rows"])
        last = builder.select(builder.icmp_signed("<", last, words["result_rows"]), last, words["result_rows"])
        image = builder.gep(self.pointer(words["x"]), [builder.mul(outer, words["x_outer"])])
        result = builder.gep(self.pointer(words["out"]), [builder.mul(outer, words["out_outer"])])
        with ranged(builder, first, last, ROWS) as row:
            sources = self.sources(image, row)
            targets = [builder.gep(result, [builder.mul(self.plus(row, r), words["out_row"])]) for r in range(ROWS)]
            present = [builder.icmp_signed("<", self.plus(row, r), last) for r in range(ROWS)]
            total = self.rows(sources, targets, present, self.of_numbers)
            if not self.sums:
                with builder.if_then(self.has_nan(total), likely=False):
                    self.rows(sources, targets, present, self.by_rule)

    def sources(self, image: Any, row: Any) -> list[Any]:
        """Gives where the image's rows start that the windows of some result rows read, at the first window's last step.

        That is the column of lane 0 for result column 0; rows outside of the image are a row of `fill`.
        """
        builder, words = self.builder, self.words
        top = builder.sub(builder.mul(row, self.number(self.down_step)), words["down_low"])
        places = []
        for k in range((ROWS - 1) * self.down_step + self.down):
            y = self.plus(top, k)
            inside = builder.icmp_unsigned("<", y, words["rows"])  # a row above the image is a large number
            there = builder.gep(image, [builder.mul(y, words["x_row"])])
            places.append(builder.select(inside, there, self.outside))
        return places

    def rows(self, sources: Sequence[Any], targets: Sequence[Any], present: Sequence[Any], combine: Step) -> Any:
        """Makes some result rows; gives the sum of all that was read."""
        builder, lanes = self.builder, self.lanes
        results = self.words["result_columns"]
        first = builder.sub(self.number(self.across - self.step), self.words["across_low"])
        read = Slot(builder, self.column_fill)
        # of every result row and residue of the stride, the columns of the registers before
        earlier = [[Slot(builder, self.column_fill) for _ in range(self.step)] for _ in range(ROWS)]
        if self.across > self.step:
            with builder.if_then(builder.icmp_signed(">", first, self.number(0))):
                start = builder.sub(first, self.number(self.step * lanes))
                for slots, streams in zip(earlier, self.streams(sources, start, combine, read), strict=True):
                    for slot, stream in zip(slots, streams, strict=True):
                        slot.set(stream)
        with ranged(builder, self.number(0), results, lanes) as at:
            start = builder.add(first, builder.mul(at, self.number(self.step)))
            stored = self.below(at, results)
            for r, streams in enumerate(self.streams(sources, start, combine, read)):
                taps = []
                for tap in range(self.across):
                    back = self.across - 1 - tap
                    which = self.step - 1 - back % self.step
                    taps.append(self.shifted(earlier[r][which].get(), streams[which], back // self.step))
                total = combine(self.emitter, taps)
                if self.sums:
                    total = self.emitter.mul(total, self.scale)
                mask = builder.select(present[r], stored, ir.Constant(stored.type, [0] * lanes))
                self.emitter.masked_store(total, builder.gep(targets[r], [at]), mask)
                for slot, stream in zip(earlier[r], streams, strict=True):
                    slot.set(stream)
        return read.get()

    def streams(self, sources: Sequence[Any], start: Any, combine: Step, read: Slot) -> list[list[Any]]:
        """Reduces down from column `start` on; gives registers by result row and residue of the stride."""
        builder = self.builder
        registers: list[list[Any]] = [[] for _ in range(ROWS)]
        for v in range(self.step):
            column = self.plus(start, v * self.lanes)
            mask = self.below(column, self.words["columns"])
            loaded = [self.emitter.masked_load(builder.gep(source, [column]), mask) for source in sources]
            for value in loaded:
                read.set(self.emitter.add(read.get(), value))
            for r in range(ROWS):
                taps = loaded[r * self.down_step : r * self.down_step + self.down]
                registers[r].append(builder.select(mask, combine(self.emitter, taps), self.column_fill))
        return registers if self.step == 1 else [self.parted(*pair) for pair in registers]

    def parted(self, a: Any, b: Any) -> list[Any]:
        """Gives the even lanes of two registers, then the odd ones."""
        picks = [[2 * k + odd for k in range(self.lanes)] for odd in (0, 1)]
        kind = ir.VectorType(INT32, self.lanes)
        return [self.builder.shuffle_vector(a, b, ir.Constant(kind, pick)) for pick in picks]

    def shifted(self, earlier: Any, now: Any, lanes: int) -> Any:
        """Gives the register that stands some lanes before `now`."""
        if not lanes:
            return now
        picks = [self.lanes - lanes + k for k in range(self.lanes)]
        return self.builder.shuffle_vector(earlier, now, ir.Constant(ir.VectorType(INT32, self.lanes), picks))

    def below(self, start: Any, end: Any) -> Any:
        """Flags the lanes from `start` on that lie in [0, end)."""
        kind = ir.VectorType(INT32, self.lanes)
        words = Emitter(self.builder, kind)
        lanes = self.builder.add(
            words.splat(self.builder.trunc(start, INT32)), ir.Constant(kind, list(range(self.lanes)))
        )
        return self.builder.icmp_unsigned("<", lanes, words.splat(self.builder.trunc(end, INT32)))

    def has_nan(self, register: Any) -> Any:
        builder = self.builder
        flags = builder.bitcast(builder.fcmp_unordered("uno", register, register), ir.IntType(self.lanes))
        return builder.icmp_unsigned("!=", flags, ir.Constant(flags.type, 0))

    def take(self) -> Any:
        return take_item(self.builder, *self.arguments)

    def word(self, name: str) -> Any:
        return self.builder.load(self.builder.gep(self.block, [self.number(index(BLOCK, name))]))

    def pointer(self, address: Any) -> Any:
        return self.builder.inttoptr(address, self.scalar.llvm.as_pointer())

    def plus(self, value: Any, summand: int) -> Any:
        return self.builder.add(value, self.number(summand))

    def number(self, value: int) -> Any:
        return ir.Constant(INT64, value)
