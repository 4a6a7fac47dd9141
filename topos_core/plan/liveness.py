"""Live bytes along a schedule: what the run itself allocates, views counted with their base."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from topos_core.cost.memory import Placed, Placement, contiguous_strides, place
from topos_core.plan.schedule import Schedule
from topos_core.tape.tape import Tape


def recorded_places(tape: Tape) -> tuple[Placement, ...]:
    """Says where every value lies when all ops run as recorded. Linear, independent of extents."""
    placed: list[Placed] = []
    placements = []
    for value in range(len(tape.ops)):
        placement = place(tape, value, placed.__getitem__)
        placements.append(placement)
        placed.append(placement.placed)
    return tuple(placements)


@dataclass(frozen=True, slots=True)
class Liveness:
    """Bytes of the buffers that a run allocates; inputs, parameters and constants exist before it and count nothing.

    Args:
        bytes: Live bytes after each step of the schedule.
        peak_bytes: The most that lives at once, a step's result and scratch beside its operands included.
        peak_step: The step at which that happens; 0 where nothing runs.
    """

    bytes: tuple[int, ...]
    peak_bytes: int
    peak_step: int


def liveness(
    tape: Tape, schedule: Schedule, temporary_bytes: Mapping[int, int], recorded: Sequence[Placement]
) -> Liveness:
    """Walks a schedule. Linear in the steps.

    Args:
        tape: The spec.
        schedule: What runs.
        temporary_bytes: The scratch of taken matches, by root.
        recorded: Where every value lies when all ops run as recorded; holds for each op whose operands lie as recorded.
    """
    places: dict[int, Placed] = {source: recorded[source].placed for source in schedule.sources}
    moved: set[int] = set()  # values that do not lie as recorded
    sizes: dict[int, int] = {}  # buffer -> bytes
    readers: dict[int, int] = {}  # buffer -> live values that lie in it
    live = peak = peak_step = 0
    curve: list[int] = []
    for position, step in enumerate(schedule.steps):
        temporary = 0
        value = step.value
        if step.match is None:
            placement = recorded[value]
            if moved and not moved.isdisjoint(step.reads):
                placement = place(tape, value, places.__getitem__)
                if placement.placed is not recorded[value].placed:
                    moved.add(value)
            temporary = placement.temporary_bytes
            made: Sequence[tuple[int, Placed, int]] = ((value, placement.placed, placement.allocated_bytes),)
        else:
            made = [
                (value, Placed(value, contiguous_strides(tape.ops[value].type.shape)), tape.ops[value].type.bytes)
                for value in step.produces
            ]
            moved.update(step.produces)
            temporary = temporary_bytes.get(value, 0)
        for value, placed, allocated in made:
            places[value] = placed
            base = placed.base
            readers[base] = readers.get(base, 0) + 1
            if allocated:
                sizes[base] = allocated
                live += allocated
        if live + temporary > peak:
            peak, peak_step = live + temporary, position
        for value in step.frees:
            base = places[value].base
            left = readers[base] = readers[base] - 1
            if not left:
                live -= sizes.pop(base, 0)
        curve.append(live)
    return Liveness(tuple(curve), peak, peak_step)
