"""Runs an expression on arrays of any strides; what is not dense or repeated along the last axis is copied first."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from topos_core.cost.memory import contiguous_strides
from topos_core.kernels.expressions.loops import Loops, Strides, lay_out
from topos_core.kernels.expressions.programs import program_of
from topos_core.kernels.known import Known
from topos_core.kernels.launch import address_of, launch, streamed, template
from topos_core.kernels.library import Kernel, kernel
from topos_core.kernels.scratch import Copied, Stage
from topos_core.kernels.vocabulary.blocks import EXPRESSION
from topos_core.matching.expression import REDUCTIONS, ExpressionFacts
from topos_core.matching.match import Match
from topos_core.ops.cast import cast_array
from topos_core.ops.catalog import definition
from topos_core.tape.tape import Tape
from topos_core.tape.type import FLOATS, TensorType, numpy_dtype

ITEM_BYTES: Final = 64 << 10
"""Of the largest array, per item."""
PART: Final = 1 << 15
"""Elements of a long row that one item reduces; its result is combined with those of others."""
THREAD_BYTES: Final = 128 << 10
"""Of all arrays together, below which another thread costs more than it does."""
_WORD: Final = {name: place for place, name in enumerate(EXPRESSION)}


class Reading(NamedTuple):
    """How an array lies in the space.

    Args:
        pairs: (its own axis, the space's axis) where it is longer than 1.
        rank: Axes of the space.
        type: As it is recorded.
    """

    pairs: tuple[tuple[int, int], ...]
    rank: int
    type: TensorType

    @property
    def itemsize(self) -> int:
        """Gives the bytes of an element."""
        return numpy_dtype(self.type.dtype).itemsize

    def strides(self, own: Sequence[int]) -> Strides:
        """Gives the strides along the space's axes of an array that has these along its own."""
        found = [0] * self.rank
        for axis, along in self.pairs:
            found[along] = own[axis]
        return tuple(found)

    def fits(self, strides: Strides) -> bool:
        """Tells whether the last axis is dense or repeats."""
        return not strides or strides[-1] in (0, self.itemsize)

    def order(self) -> list[int]:
        """Lists its own axes as they follow each other in the space."""
        order = [axis for axis, _ in sorted(self.pairs, key=lambda pair: pair[1])]
        return [axis for axis in range(len(self.type.shape)) if axis not in order] + order

    def dense(self, values: np.ndarray) -> np.ndarray:
        """Copies an array so that its elements follow the space's axes; its own axes keep their numbers."""
        order = self.order()
        return np.ascontiguousarray(values.transpose(order)).transpose(np.argsort(order))

    @property
    def once(self) -> bool:
        """Tells that nothing is laid out before the run."""
        return False

    def copied(self, kind: TensorType, strides: Sequence[int], written: Sequence[int], /) -> Copied:
        """Counts the copy that `dense` makes of what does not fit; see `kernels/scratch.py`."""
        fits = self.fits(self.strides([stride * self.itemsize for stride in strides]))
        return Copied(0, 0) if fits else Copied(kind.bytes, kind.bytes)

    def is_dense(self) -> bool:
        """Tells whether a C-contiguous array is read where it lies."""
        return self.fits(self._contiguous())

    def _contiguous(self) -> Strides:
        return self.strides([stride * self.itemsize for stride in contiguous_strides(self.type.shape)])

    def usual(self) -> Strides:
        """Gives the strides of a C-contiguous array, or of its copy where that does not fit."""
        shape = self.type.shape
        strides = self._contiguous()
        if self.fits(strides):
            return strides
        order = self.order()
        moved = contiguous_strides(tuple(shape[axis] for axis in order))
        own = [0] * len(shape)
        for axis, stride in zip(order, moved, strict=True):
            own[axis] = stride * self.itemsize
        return self.strides(own)


class _Cut(NamedTuple):
    """One way to run: what it is compiled to, its block, whether rows are cut to parts, what the block points at."""

    kernel: Kernel
    block: array[int]
    threads: int
    partial: bool
    keep: tuple[np.ndarray, ...]


@dataclass(slots=True)
class Runner:
    """Runs one match.

    Args:
        facts: The expression.
        readings: Of bindings, then of results.
    """

    facts: ExpressionFacts
    readings: tuple[Reading, ...]
    constants: np.ndarray = field(init=False)
    cuts: Known[tuple[tuple[Strides, ...], int], _Cut] = field(init=False, default_factory=Known)

    def __post_init__(self) -> None:
        self.constants = np.zeros(len(self.facts.constants) + 1, np.int64)
        for number, (name, value) in enumerate(self.facts.constants.items()):
            dtype = numpy_dtype(self.facts.dtypes[name])
            self.constants[number : number + 1].view(dtype)[0] = dtype.type(value)

    def run(self, bindings: Mapping[str, np.ndarray], out: Mapping[str, np.ndarray], threads: int) -> None:
        """Runs the match; see `Prepared`."""
        produced = [out["result" if name == "root" else name] for name in self.facts.results]
        if not any(result.size for result in produced):
            return
        arrays = [bindings[name] for name in self.facts.layouts]
        targets = list(produced)
        strides = []
        for number, reading in enumerate(self.readings):
            own, place = (arrays, number) if number < len(arrays) else (targets, number - len(arrays))
            found = reading.strides(own[place].strides)
            if not reading.fits(found):
                own[place] = (
                    reading.dense(own[place]) if own is arrays else np.empty(own[place].shape, own[place].dtype)
                )
                found = reading.strides(own[place].strides)
            strides.append(found)
        cut = self._cut(tuple(strides), threads)
        places = [address_of(values) for values in (*arrays, *targets)]
        addresses = np.array(places, np.int64)
        block = array("q", cut.block)
        block[_WORD["addresses"]] = address_of(addresses)
        if not set(places[: len(arrays)]).isdisjoint(places[len(arrays) :]):
            block[_WORD["streamed"]] = 0  # a result over an operand is in the cache already
        if cut.partial:
            totals = np.empty(block[_WORD["items"]], np.int64)
            block[_WORD["totals"]] = address_of(totals)
            launch(cut.kernel, block, cut.threads)
            self._combine(totals, block[_WORD["parts"]], targets[0])
        else:
            launch(cut.kernel, block, cut.threads)
        for target, result in zip(targets, produced, strict=True):
            if target is not result:
                result[...] = target

    def _combine(self, totals: np.ndarray, parts: int, target: np.ndarray) -> None:
        """Combines the accumulators of every row's parts."""
        step = self.facts.steps[-1]
        floating = step.dtype in FLOATS and step.op in ("sum", "prod")
        dtype = "f64" if floating else step.detail or step.dtype
        own = totals.view(np.uint8).reshape(-1, 8)[:, : numpy_dtype(dtype).itemsize]
        values = np.ascontiguousarray(own).view(numpy_dtype(dtype)).reshape(-1, parts)
        attributes = {"axes": (1,), "accumulate": dtype}
        total = definition(step.op).evaluate([values], attributes, TensorType(dtype, values.shape[:1]))
        target[...] = cast_array(total, target.dtype).reshape(target.shape)

    def prepared(self) -> Runner:
        """Compiles for bindings that are C-contiguous; others are compiled for when they come."""
        self._cut(tuple(reading.usual() for reading in self.readings), 1)
        return self

    def _cut(self, strides: tuple[Strides, ...], threads: int) -> _Cut:
        key = strides, threads
        return self.cuts.get(key) or self.cuts.keep(key, self._made(strides, threads))

    def _made(self, strides: tuple[Strides, ...], threads: int) -> _Cut:
        facts = self.facts
        loops = lay_out(facts.extents, facts.reduced, strides)
        count = len(facts.layouts)
        widest = max(reading.itemsize for reading in self.readings)
        partial = self._is_partial(loops)
        program = program_of(facts, loops.form, loops.along[:count], partial=partial)
        rows, chunk_rows, chunk = loops.rows.size, 1, max(1, loops.inner)
        if partial:
            chunk = PART
        elif loops.form != "rows" and loops.inner * widest > ITEM_BYTES:
            chunk = ITEM_BYTES // widest
        else:
            chunk_rows = max(1, ITEM_BYTES // (widest * max(1, loops.inner * loops.blocks.size)))
            chunk_rows = min(chunk_rows, max(1, rows // (4 * threads)))
        parts = max(1, -(-loops.inner // chunk))
        tables = [np.array(values, np.int64) for axes in (loops.rows, loops.blocks) for values in axes]
        moved = sum(reading.type.bytes for reading in self.readings)
        block = template(EXPRESSION, {
            "items": -(-rows // chunk_rows) * parts, "rows": rows, "chunk_rows": chunk_rows, "inner": loops.inner,
            "chunk_inner": chunk, "parts": parts,
            "outer_ranks": len(loops.rows.extents), "outer_extents": address_of(tables[0]),
            "outer_strides": address_of(tables[1]), "blocks": loops.blocks.size,
            "block_ranks": len(loops.blocks.extents), "block_extents": address_of(tables[2]),
            "block_strides": address_of(tables[3]), "constants": address_of(self.constants),
            "streamed": streamed(moved // 2),
        })  # fmt: skip
        threads = min(threads, block[_WORD["items"]]) if moved > THREAD_BYTES else 1
        return _Cut(kernel("expression", program.text()), block, max(1, threads), partial, tuple(tables))

    def _is_partial(self, loops: Loops) -> bool:
        """Tells whether rows are cut to parts: they are long and few, and nothing but the reduction is wanted."""
        last = len(self.facts.steps) - 1
        alone = loops.form == "rows" and list(self.facts.results.values()) == [f"s{last}"]
        alone = alone and self.facts.steps[last].op in REDUCTIONS
        return alone and loops.blocks.size == 1 and loops.inner > PART


def make_runner(tape: Tape, match: Match) -> Runner:
    """Compiles a match's expression."""
    return Runner(match.facts, readings_of(tape, match)).prepared()


def stage_of(tape: Tape, match: Match) -> Stage:
    """Tells what a run copies and makes elsewhere."""
    readings = readings_of(tape, match)
    bound = len(match.facts.layouts)
    reads = tuple(zip(match.facts.layouts, readings[:bound], strict=True))
    return Stage(reads, sum(reading.type.bytes for reading in readings[bound:] if not reading.is_dense()))


def readings_of(tape: Tape, match: Match) -> tuple[Reading, ...]:
    """Tells how bindings, then results, lie in the space of a match's expression."""
    facts: ExpressionFacts = match.facts
    rank = len(facts.extents)
    readings = []
    for name, layout in facts.layouts.items():
        kind = tape.ops[match.bindings[name]].type
        readings.append(Reading(_pairs(kind, [int(role) for role in layout.roles]), rank, kind))
    for name, step in facts.results.items():
        kind = tape.ops[match.root if name == "root" else match.named[name][0]].type
        kept = facts.steps[int(step[1:])].kept
        axes = [axis for axis in range(rank) if not kept or axis not in facts.reduced]
        readings.append(Reading(_pairs(kind, axes), rank, kind))
    return tuple(readings)


def _pairs(kind: TensorType, axes: Sequence[int]) -> tuple[tuple[int, int], ...]:
    longer = [axis for axis, extent in enumerate(kind.shape) if extent != 1]
    return tuple(zip(longer, axes, strict=True))
