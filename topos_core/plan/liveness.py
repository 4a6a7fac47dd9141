"""Live bytes along a schedule and the buffers that they are: what the run itself allocates, views counted with their base."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from topos_core.cost.memory import Placed, Placement, contiguous_strides, place
from topos_core.kernels.convolution.reading import ReadImage
from topos_core.kernels.kernel import Offer
from topos_core.kernels.margins import Margins
from topos_core.kernels.scratch import Copied, ReadBeside, Reading
from topos_core.matching.match import Match
from topos_core.ops.catalog import definitions
from topos_core.plan.margins import made_in_columns, margins_of
from topos_core.plan.order import reading_order
from topos_core.plan.schedule import Schedule, Step
from topos_core.tape.tape import Tape
from topos_core.tape.type import numpy_dtype


class Buffer(NamedTuple):
    """Memory that the run allocates.

    Args:
        value: The value for which it is made, whose number names it.
        bytes: Its size.
        made: The step that makes it.
        dropped: The last step that reads it; None where the caller gets what lies in it.
    """

    value: int
    bytes: int
    made: int
    dropped: int | None


@dataclass(frozen=True, slots=True)
class Liveness:
    """Bytes of the buffers that a run allocates; inputs, parameters and constants exist before it and count nothing.

    Args:
        bytes: Live bytes after each step of the schedule.
        scratch: What each step holds beside its operands and results while it runs.
        peak_bytes: The most that lives at once, a step's result and scratch beside its operands included.
        peak_step: The step at which that happens; 0 where nothing runs.
        buffers: In the order in which they are made.
        written: Where the values lie that are written rather than looked at: in which buffer, with which strides.
        over: The operands that values are written over, by those values.
        margins: The planes in which values lie, zeros around them, for those that do (`plan/margins.py`).
        spared: Bytes of the copies that are left out for that, by the roots of the kernels that would make them.
    """

    bytes: tuple[int, ...]
    scratch: tuple[int, ...]
    peak_bytes: int
    peak_step: int
    buffers: tuple[Buffer, ...]
    written: Mapping[int, Placed]
    over: Mapping[int, int]
    margins: Mapping[int, Margins]
    spared: Mapping[int, int]


def liveness(
    tape: Tape,
    schedule: Schedule,
    offers: Mapping[int, Offer],
    recorded: Sequence[Placement],
    folded: Collection[int] = (),
    in_place: bool = True,
) -> Liveness:
    """Walks a schedule. Linear in the steps.

    Args:
        tape: The spec.
        schedule: What runs.
        offers: What was offered for taken matches, by root: their scratch, and how their roots may lie.
        recorded: Where every value lies when all ops run as recorded; holds for each op whose operands lie as recorded.
        folded: Values that are computed before the run.
        in_place: Whether results are written over operands that end there; the interpreter does not do that.
    """
    walk = _Walk(tape, schedule, offers, recorded, folded, in_place)
    for position, step in enumerate(schedule.steps):
        walk.step(position, step)
    buffers = tuple(
        Buffer(value, size, made, walk.dropped.get(value)) for value, (size, made) in walk.allocated.items()
    )
    return Liveness(
        bytes=tuple(walk.curve),
        scratch=tuple(walk.scratch),
        peak_bytes=walk.peak,
        peak_step=walk.peak_step,
        buffers=buffers,
        written=walk.written,
        over=walk.over,
        margins=walk.margins,
        spared=walk.spared,
    )


class _Walk:
    def __init__(
        self,
        tape: Tape,
        schedule: Schedule,
        offers: Mapping[int, Offer],
        recorded: Sequence[Placement],
        folded: Collection[int],
        in_place: bool,
    ) -> None:
        self.tape, self.offers, self.recorded, self.folded = tape, offers, recorded, folded
        self.in_place = in_place
        self.places: dict[int, Placed] = {source: recorded[source].placed for source in schedule.sources}
        self.kept = frozenset(schedule.kept)
        self.moved: set[int] = set()  # values that do not lie as recorded
        self.sizes: dict[int, int] = {}  # live buffer -> bytes
        self.readers: dict[int, int] = {}  # buffer -> live values that lie in it
        self.allocated: dict[int, tuple[int, int]] = {}
        self.dropped: dict[int, int] = {}
        self.written: dict[int, Placed] = {}
        self.over: dict[int, int] = {}
        self.margins = margins_of(tape, schedule, offers, folded) if in_place else {}
        self.spared: dict[int, int] = {}
        self.curve: list[int] = []
        self.scratch: list[int] = []
        self.live = self.peak = self.peak_step = 0
        self.steps_by_read: dict[int, list[Step]] = {}
        if any(offer.any_order for offer in offers.values()):
            for step in schedule.steps:
                for value in step.reads:
                    self.steps_by_read.setdefault(value, []).append(step)

    def step(self, position: int, step: Step) -> None:
        if step.match is None:
            temporary, made = self.recorded_step(step)
        else:
            temporary, made = self.taken_step(step)
        self.scratch.append(temporary)
        for value, placed, size in made:
            self.places[value] = placed
            self.readers[placed.base] = self.readers.get(placed.base, 0) + 1
            if size:
                self.sizes[placed.base] = size
                self.allocated[placed.base] = (size, position)
                self.live += size
        if self.live + temporary > self.peak:
            self.peak, self.peak_step = self.live + temporary, position
        for value in step.frees:
            base = self.places[value].base
            self.readers[base] -= 1
            if not self.readers[base]:
                if base in self.sizes:
                    self.dropped[base] = position
                self.live -= self.sizes.pop(base, 0)
        self.curve.append(self.live)

    def recorded_step(self, step: Step) -> tuple[int, list[tuple[int, Placed, int]]]:
        """Gives a recorded op's scratch, and what it makes: the value, where it lies, and the bytes of a new buffer."""
        value = step.value
        placement = self.recorded[value]
        if value in self.folded:
            return 0, [(value, placement.placed, 0)]
        if not self.moved.isdisjoint(step.reads):
            placement = place(self.tape, value, self.places.__getitem__)
            if placement.placed is not self.recorded[value].placed:
                self.moved.add(value)
        op, temporary = self.tape.ops[value], placement.temporary_bytes
        if not placement.allocated_bytes:
            return temporary, [(value, placement.placed, 0)]
        row = definitions()[op.name]
        if row.scratch is not None:
            kinds = [self.tape.ops[operand].type for operand in op.operands]
            temporary = row.scratch(kinds, op.attributes, op.type, temporary)
        if self.in_place and row.in_place:
            over = self.ending(step, op.operands, placement.placed.strides)
            if over is not None:
                return temporary, [self.take_over(value, over)]
        self.written[value] = placement.placed
        return temporary, [(value, placement.placed, placement.allocated_bytes)]

    def taken_step(self, step: Step) -> tuple[int, list[tuple[int, Placed, int]]]:
        """Gives a match's scratch, and what it makes; a named result with several producers is one buffer."""
        match, offer = step.match, self.offers.get(step.value)
        assert match is not None
        self.moved.update(step.produces)
        kind = self.tape.ops[step.value].type
        strides = contiguous_strides(kind.shape)
        if offer is not None and offer.any_order:
            strides = reading_order(self.tape, step.value, self.steps_by_read, self.kept) or strides
        columns = offer.columns if offer is not None else None
        if columns is not None and step.value not in self.kept and not columns.reaches(kind, strides):
            strides = columns.strides(kind) or strides
        over = None
        size = kind.bytes
        if step.value in self.margins:
            strides = self.margins[step.value].strides
            size = self.margins[step.value].size * numpy_dtype(kind.dtype).itemsize
        elif offer is not None and self.in_place:
            over = self.ending(step, [match.bindings[name] for name in offer.in_place], strides)
        root = (step.value, Placed(step.value, strides), size)
        made = [root if over is None else self.take_over(step.value, over)]
        for first, *others in match.named.values():
            for value in (first, *others):
                kind = self.tape.ops[value].type
                made.append(
                    (value, Placed(first, contiguous_strides(kind.shape)), 0 if value in others else kind.bytes)
                )
        self.written.update((value, placed) for value, placed, _ in made)
        return 0 if offer is None else self.scratch_bytes(match, offer, strides), made

    def scratch_bytes(self, match: Match, offer: Offer, written: tuple[int, ...]) -> int:
        """Counts what a kernel holds beside its operands and results: copies of operands that lie otherwise than it reads."""

        def copied(name: str, read: Reading) -> Copied:
            value = match.bindings[name] if name in match.bindings else match.named[name][0]
            kind = self.tape.ops[value].type
            if name in match.named:
                return read.copied(kind, contiguous_strides(kind.shape), written)
            together = read.names if isinstance(read, ReadBeside) else (name,)
            if read.once and all(self.is_known(match.bindings[each]) for each in together):
                return Copied(0, 0)
            copy = read.copied(kind, self.places[value].strides, written)
            if value in self.margins and isinstance(read, ReadImage):
                columns = made_in_columns(value, self.offers)
                if read.margins(kind, columns) == self.margins[value]:
                    dense = read.copied(kind, contiguous_strides(kind.shape), written)
                    self.spared[match.root] = dense.running
                    return copy._replace(running=0)
            return copy

        stages, columns, root = tuple(offer.stages), offer.columns, self.tape.ops[match.root].type
        if columns is not None and not columns.reaches(root, written):
            stages = tuple(columns.elsewhere(stage, root) for stage in stages)
        return offer.temporary_bytes + max((stage.scratch_bytes(copied) for stage in stages), default=0)

    def is_known(self, value: int) -> bool:
        """Tells whether a value is there before the run."""
        return value in self.folded or self.tape.ops[value].name in ("parameter", "constant")

    def ending(self, step: Step, operands: Sequence[int], strides: tuple[int, ...]) -> int | None:
        """Gives an operand that a result may be written over: this step is the last to read its buffer, which it fills."""
        kind = self.tape.ops[step.value].type
        for value in operands:
            placed = self.places[value]
            if (
                value in step.frees
                and placed.strides == strides
                and self.sizes.get(placed.base) == kind.bytes
                and self.readers[placed.base] == 1
            ):
                return value
        return None

    def take_over(self, value: int, operand: int) -> tuple[int, Placed, int]:
        placed = self.written[value] = self.places[operand]
        self.over[value] = operand
        self.moved.add(value)
        return value, placed, 0
