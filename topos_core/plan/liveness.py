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
    sizes: dict[int, int] = {}  # buffer -> bytes
    readers: dict[int, int] = {}  # buffer -> live values that lie in it
    live = peak = peak_step = 0
    curve: list[int] = []
    for position, step in enumerate(schedule.steps):
        temporary = 0
        if step.match is None:
            placement = recorded[step.value]
            if any(places[o] is not recorded[o].placed for o in step.reads):
                placement = place(tape, step.value, places.__getitem__)
            made = [(step.value, placement.placed, placement.allocated_bytes)]
            temporary = placement.temporary_bytes
        else:
            made = [
                (value, Placed(value, contiguous_strides(tape.ops[value].type.shape)), tape.ops[value].type.bytes)
                for value in step.produces
            ]
            temporary = temporary_bytes.get(step.value, 0)
        for value, placed, allocated in made:
            places[value] = placed
            readers[placed.base] = readers.get(placed.base, 0) + 1
            if allocated:
                sizes[placed.base] = allocated
                live += allocated
        if live + temporary > peak:
            peak, peak_step = live + temporary, position
        for value in step.frees:
            base = places[value].base
            readers[base] -= 1
            if not readers[base]:
                live -= sizes.pop(base, 0)
        curve.append(live)
    return Liveness(tuple(curve), peak, peak_step)
