"""Which recorded steps run once, when a plan is made ready: those that depend on parameters and constants alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from topos_core.cost.memory import Placement
from topos_core.ops.catalog import definitions
from topos_core.plan.schedule import Schedule
from topos_core.tape.tape import Tape
from topos_core.tape.type import numpy_dtype

FOLDED_GROWTH: Final = 4
"""A folded value may hold so many times the bytes of what it is made of; a splat must not become a large array."""


def folded(tape: Tape, schedule: Schedule, recorded: Sequence[Placement]) -> frozenset[int]:
    """Collects the values of those steps. Linear in the steps.

    Args:
        tape: The spec.
        schedule: What runs.
        recorded: Where every value lies when all ops run as recorded; an axis of stride 0 holds nothing.
    """
    table = definitions()
    known = {value for value in schedule.sources if tape.ops[value].name != "input"}
    found = set()
    for step in schedule.steps:
        op = tape.ops[step.value]
        if step.match is not None or op.name == "opaque" or not known.issuperset(op.operands):
            continue
        limit = FOLDED_GROWTH * sum(_held(tape, operand, recorded) for operand in op.operands)
        if op.type.bytes <= limit or table[op.name].kind == "movement" or op.name == "iota":  # which holds one axis
            known.add(step.value)
            found.add(step.value)
    return frozenset(found)


def _held(tape: Tape, value: int, recorded: Sequence[Placement]) -> int:
    """Counts the bytes that a value's elements occupy."""
    kind = tape.ops[value].type
    elements = 1
    for extent, stride in zip(kind.shape, recorded[value].placed.strides, strict=True):
        elements *= extent if stride else min(extent, 1)
    return elements * numpy_dtype(kind.dtype).itemsize
