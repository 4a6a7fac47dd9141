"""Live bytes along a schedule: what the run itself allocates, views counted with their base."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from topos_core.cost.memory import Placed, contiguous_strides, place
from topos_core.plan.schedule import Schedule
from topos_core.tape.tape import Tape


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


def liveness(tape: Tape, schedule: Schedule, temporary_bytes: Mapping[int, int]) -> Liveness:
    """Walks a schedule; `temporary_bytes` is the scratch of taken matches by root. Linear in the steps."""
    places: dict[int, Placed] = {}
    for source in schedule.sources:
        places[source] = place(tape, source, places.__getitem__).placed
    sizes: dict[int, int] = {}  # buffer -> bytes
    readers: dict[int, int] = {}  # buffer -> live values that lie in it
    live = peak = peak_step = 0
    curve: list[int] = []
    for position, step in enumerate(schedule.steps):
        temporary = 0
        if step.match is None:
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
