"""An expression of elementwise ops with at most one reduction, as loops over operands of any outer strides.

Whole registers run along the inner loop; what is left is masked where the machine can do that, else done one by one.
Sums and products of floats are accumulated in f64. A reduction along the inner loop makes a second pass over a row that is
still in the cache; one along the blocks keeps its accumulators in registers, some columns at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from llvmlite import ir

from topos_core.kernels.host import Host
from topos_core.kernels.vocabulary.blocks import EXPRESSION, LINE
from topos_core.kernels.vocabulary.emitter import INT64
from topos_core.kernels.vocabulary.expression_registers import Reader, Registers, accumulator
from topos_core.kernels.vocabulary.loops import Slot, ranged
from topos_core.kernels.vocabulary.memory import settled
from topos_core.kernels.vocabulary.program import Program, parse
from topos_core.kernels.vocabulary.steps import Steps
from topos_core.kernels.vocabulary.tile import kernel_function

BLOCK: Final = EXPRESSION
SHORT: Final = 4
"""Steps before a reduction up to which several registers are summed side by side: additions overlap."""
UNROLLED: Final = 4


def module(host: Host, symbol: str, text: str) -> Any:
    """Makes the kernel (block, worker) of an `EXPRESSION` block for a program's text."""
    made, function = kernel_function(symbol)
    _Writer(host, function, parse(text)).write()
    return made


class _Writer(Registers):
    """Writes the loops of one kernel."""

    def __init__(self, host: Host, function: Any, program: Program) -> None:
        super().__init__(host, function, program)
        self.reduction = program.reduction

    # -- the items

    def write(self) -> None:
        builder, words = self.builder, self.words
        item = Slot(builder, self.take())
        condition, body = builder.append_basic_block("items"), builder.append_basic_block("item")
        after = builder.append_basic_block("done")
        builder.branch(condition)
        builder.position_at_end(condition)
        builder.cbranch(builder.icmp_signed("<", item.get(), words["items"]), body, after)
        builder.position_at_end(body)
        self.item(item.get())
        item.set(self.take())
        builder.branch(condition)
        builder.position_at_end(after)
        if self.program.form == "map":
            settled(builder)
        builder.ret_void()

    def item(self, item: Any) -> None:
        builder, words = self.builder, self.words
        group = builder.sdiv(item, words["parts"])
        part = builder.sub(item, builder.mul(group, words["parts"]))
        first = builder.mul(part, words["chunk_inner"])
        end = self.smaller(words["inner"], builder.add(first, words["chunk_inner"]))
        row = builder.mul(group, words["chunk_rows"])
        last = self.smaller(words["rows"], builder.add(row, words["chunk_rows"]))
        with ranged(builder, row, last) as at:
            places = self.moved(self.bases, at, "outer")
            match self.program.form:
                case "map":
                    self.map(places, first, end)
                case "rows":
                    self.along_rows(places, first, end, item)
                case "columns":
                    self.along_columns(places, first, end)

    def moved(self, places: Sequence[Any], position: Any, which: str) -> list[Any]:
        """Adds the strides of a position, which counts through the axes of `outer` or `block`, last axis fastest."""
        builder, words = self.builder, self.words
        ranks = words[f"{which}_ranks"]
        extents = builder.inttoptr(words[f"{which}_extents"], INT64.as_pointer())
        strides = builder.inttoptr(words[f"{which}_strides"], INT64.as_pointer())
        slots = [Slot(builder, place) for place in places]
        rest = Slot(builder, position)
        with ranged(builder, self.number(0), ranks) as k:
            axis = builder.sub(builder.sub(ranks, self.number(1)), k)
            before = rest.get()
            following = builder.sdiv(before, builder.load(builder.gep(extents, [axis])))
            along = builder.sub(before, builder.mul(following, builder.load(builder.gep(extents, [axis]))))
            rest.set(following)
            for number, slot in enumerate(slots):
                at = builder.add(builder.mul(ranks, self.number(number)), axis)
                stride = builder.load(builder.gep(strides, [at]))
                slot.set(builder.add(slot.get(), builder.mul(stride, along)))
        return [slot.get() for slot in slots]

    # -- one pass without a reduction

    def map(self, places: Sequence[Any], first: Any, end: Any) -> None:
        """Makes one pass; results go past the caches where the block asks for it and they lie on cache lines."""
        targets = {k: self.memory(dtype).bytes for k, dtype in enumerate(self.stored)}
        if any(size != LINE for size in targets.values()):
            self.pass_over(places, first, end, {})
            return
        builder = self.builder
        streamed = builder.icmp_signed("!=", self.words["streamed"], self.number(0))
        for k in targets:
            place = self.at(places, len(self.program.operands) + k, first)
            off = builder.and_(place, self.number(LINE - 1))
            streamed = builder.and_(streamed, builder.icmp_signed("==", off, self.number(0)))
        with builder.if_else(streamed) as (past, through):
            with past:
                self.pass_over(places, first, end, {}, streamed=True)
            with through:
                self.pass_over(places, first, end, {})

    def pass_over(
        self, places: Sequence[Any], first: Any, end: Any, kept: Mapping[int, Any], *, streamed: bool = False
    ) -> None:
        """Computes and stores the results that have all axes, from `first` to `end` of the inner loop."""
        builder = self.builder
        results = [k for k, number in enumerate(self.program.results) if not self.program.steps[number].kept]
        repeated = self.repeated(places)
        rows = {
            number: self.spread(self.vector, value, self.program.steps[number].dtype) for number, value in kept.items()
        }

        def whole(at: Any, mask: Any) -> None:
            reader = self.reader(places, repeated, at, mask, rows)
            for k in results:
                self.store(reader.value(f"s{self.program.results[k]}"), places, k, at, mask, streamed=streamed)
            if streamed and mask is None:
                self.ask(places, at)

        done = self.registers(first, end, whole)
        if not self.host.masked:
            with ranged(builder, done, end) as at:
                reader = self.single_reader(places, at, kept)
                for k in results:
                    value = reader.value(f"s{self.program.results[k]}")
                    self.store_single(value, self.stored[k], self.at(places, len(self.program.operands) + k, at))

    def registers(self, first: Any, end: Any, body: Callable[[Any, Any], None]) -> Any:
        """Runs a body for whole registers, and for a masked one where the machine can; gives what is done."""
        builder = self.builder
        step = self.number(self.lanes)
        done = builder.add(first, builder.mul(builder.sdiv(builder.sub(end, first), step), step))
        with ranged(builder, first, done, self.lanes) as at:
            body(at, None)
        if self.host.masked:
            with builder.if_then(builder.icmp_signed("<", done, end)):
                body(done, self.mask(builder.sub(end, done)))
        return done

    # -- a reduction along the inner loop

    def along_rows(self, places: Sequence[Any], first: Any, end: Any, item: Any) -> None:
        assert self.reduction is not None
        program, builder = self.program, self.builder
        step = program.steps[self.reduction]
        kind = accumulator(program, self.reduction)
        count = UNROLLED if self.reduction <= SHORT else 1
        chains = [Slot(builder, self.identity(self.vector, step.op, kind)) for _ in range(count)]
        rest = Slot(builder, self.identity(self.single, step.op, kind))
        with ranged(builder, self.number(0), self.words["blocks"]) as block:
            inside = self.moved(places, block, "block")
            repeated = self.repeated(inside)

            def add(chain: Slot, at: Any, mask: Any) -> None:
                reader = self.reader(inside, repeated, at, mask, {})
                value = self.accumulated(self.vector, reader, step, kind)
                if mask is not None:
                    value = builder.select(mask, value, self.identity(self.vector, step.op, kind))
                chain.set(self.vector.combine(step.op, kind, chain.get(), value))

            done = first
            if count > 1:
                width = self.number(count * self.lanes)
                done = builder.add(first, builder.mul(builder.sdiv(builder.sub(end, first), width), width))
                with ranged(builder, first, done, count * self.lanes) as at:
                    for k, chain in enumerate(chains):
                        add(chain, builder.add(at, self.number(k * self.lanes)), None)
            done = self.registers(done, end, lambda at, mask: add(chains[0], at, mask))
            if not self.host.masked:
                with ranged(builder, done, end) as at:
                    reader = self.single_reader(inside, at, {})
                    value = self.accumulated(self.single, reader, step, kind)
                    rest.set(self.single.combine(step.op, kind, rest.get(), value))
        total = chains[0].get()
        for chain in chains[1:]:
            total = self.vector.combine(step.op, kind, total, chain.get())
        total = self.single.combine(step.op, kind, self.folded(step.op, kind, total), rest.get())
        if program.partial:
            place = builder.add(self.words["totals"], builder.mul(item, self.number(8)))
            self.store_single(total, kind, place)
            return
        kept = self.kept_steps(
            self.single, places, {self.reduction: self.single.apply("cast", [total], [kind], step.dtype)}
        )
        for k, number in enumerate(program.results):
            if program.steps[number].kept:
                self.store_single(kept[number], self.stored[k], places[len(program.operands) + k])
        if any(not program.steps[number].kept for number in program.results):
            with ranged(builder, self.number(0), self.words["blocks"]) as block:
                self.pass_over(self.moved(places, block, "block"), first, end, kept)

    def kept_steps(self, steps: Steps, places: Sequence[Any], known: Mapping[int, Any]) -> dict[int, Any]:
        """Computes the steps that stand on the reduction's result, for one row."""
        reader = Reader(self, steps, lambda number: self.load_single(number, places[number]), known)
        wanted = (number for number, step in enumerate(self.program.steps) if step.kept)
        return {number: reader.value(f"s{number}") for number in wanted}

    def folded(self, op: str, dtype: str, total: Any) -> Any:
        """Combines the lanes of a register pairwise."""
        builder, lanes = self.builder, self.lanes
        word = ir.IntType(32)
        while lanes > 1:
            lanes //= 2
            undefined = ir.Constant(total.type, ir.Undefined)
            halves = [
                builder.shuffle_vector(
                    total, undefined, ir.Constant(ir.VectorType(word, lanes), list(range(at, at + lanes)))
                )
                for at in (0, lanes)
            ]
            total = Steps(builder, lanes, self.single.flags).combine(op, dtype, *halves)
        return builder.extract_element(total, ir.Constant(word, 0))

    # -- a reduction along the blocks

    def along_columns(self, places: Sequence[Any], first: Any, end: Any) -> None:
        builder = self.builder
        step = self.number(self.lanes)
        wide = UNROLLED * self.lanes
        done = builder.add(
            first, builder.mul(builder.sdiv(builder.sub(end, first), self.number(wide)), self.number(wide))
        )
        with ranged(builder, first, done, wide) as at:
            self.columns(
                self.vector, places, [builder.add(at, self.number(k * self.lanes)) for k in range(UNROLLED)], None
            )
        whole = builder.add(done, builder.mul(builder.sdiv(builder.sub(end, done), step), step))
        with ranged(builder, done, whole, self.lanes) as at:
            self.columns(self.vector, places, [at], None)
        if self.host.masked:
            with builder.if_then(builder.icmp_signed("<", whole, end)):
                self.columns(self.vector, places, [whole], self.mask(builder.sub(end, whole)))
        else:
            with ranged(builder, whole, end) as at:
                self.columns(self.single, places, [at], None)

    def columns(self, steps: Steps, places: Sequence[Any], positions: Sequence[Any], mask: Any) -> None:
        """Reduces and finishes some registers of columns."""
        assert self.reduction is not None
        program, builder = self.program, self.builder
        step = program.steps[self.reduction]
        kind = accumulator(program, self.reduction)
        chains = [Slot(builder, self.identity(steps, step.op, kind)) for _ in positions]

        def reader(inside: Sequence[Any], at: Any, kept: Mapping[int, Any]) -> Reader:
            if not steps.lanes:
                return self.single_reader(inside, at, kept)
            return self.reader(inside, self.repeated(inside), at, mask, kept)

        with ranged(builder, self.number(0), self.words["blocks"]) as block:
            inside = self.moved(places, block, "block")
            for chain, at in zip(chains, positions, strict=True):
                value = self.accumulated(steps, reader(inside, at, {}), step, kind)
                chain.set(steps.combine(step.op, kind, chain.get(), value))
        kept: list[dict[int, Any]] = []
        for chain, at in zip(chains, positions, strict=True):
            known = {self.reduction: steps.apply("cast", [chain.get()], [kind], step.dtype)}
            own = reader(places, at, known)
            kept.append({number: own.value(f"s{number}") for number, one in enumerate(program.steps) if one.kept})
        self.store_columns(steps, places, positions, mask, kept, kept_results=True)
        if any(not program.steps[number].kept for number in program.results):
            with ranged(builder, self.number(0), self.words["blocks"]) as block:
                inside = self.moved(places, block, "block")
                values = []
                for at, known in zip(positions, kept, strict=True):
                    own = reader(inside, at, known)
                    wanted = (number for number in program.results if not program.steps[number].kept)
                    values.append({number: own.value(f"s{number}") for number in wanted})
                self.store_columns(steps, inside, positions, mask, values, kept_results=False)

    def store_columns(
        self,
        steps: Steps,
        places: Sequence[Any],
        positions: Sequence[Any],
        mask: Any,
        values: Sequence[Mapping[int, Any]],
        *,
        kept_results: bool,
    ) -> None:
        for k, number in enumerate(self.program.results):
            if self.program.steps[number].kept is kept_results:
                for at, known in zip(positions, values, strict=True):
                    if steps.lanes:
                        self.store(known[number], places, k, at, mask)
                    else:
                        place = self.at(places, len(self.program.operands) + k, at)
                        self.store_single(known[number], self.stored[k], place)
