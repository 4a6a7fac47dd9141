"""The end of a recording: places are resolved, sources are taken, and the tape is made."""

from __future__ import annotations

from collections.abc import Sequence
from types import CodeType
from typing import Any

from topos_core.recording.recorder import Recorder
from topos_core.recording.signature import returned_at
from topos_core.recording.value import Value
from topos_core.tape.op import Op
from topos_core.tape.span import Location
from topos_core.tape.tape import Observation, Structure, Tape


def finish(recorder: Recorder, structure: Structure, leaves: Sequence[Value], code: CodeType | None = None) -> Tape:
    """Turns what a recorder holds into a tape.

    Args:
        recorder: Nothing is recorded with it any more.
        structure: How the results nest.
        leaves: The results, in the structure's leaf order.
        code: The entry's code, whose only `return` is where results are read; without one it is where they are made.
    """
    returned = returned_at(code, recorder.sources)
    row = None if returned is None else recorder.locator.add(returned)
    outputs = [
        Observation(leaf.index, "output", None, recorder.ops[leaf.index].location if row is None else row)
        for leaf in leaves
    ]
    locations, rows = recorder.locator.resolve(recorder.sources)
    ops: list[Op] = recorder.ops
    if rows != list(range(len(rows))):
        ops = [Op(op.name, op.operands, op.attributes, op.type, rows[op.location]) for op in ops]
    paths = dict.fromkeys(frame.span.path for location in locations for frame in location.frames)
    return Tape(
        ops=tuple(ops),
        inputs=tuple(recorder.inputs),
        parameters=tuple(recorder.parameters),
        results=tuple(leaf.index for leaf in leaves),
        structure=structure,
        names=dict(recorder.names),
        observations=(
            *(each._replace(location=rows[each.location]) for each in outputs),
            *_distinct([each._replace(location=rows[each.location]) for each in recorder.observations], locations),
        ),
        locations=locations,
        sources={path: recorder.sources.text(path) for path in paths},
        defaults=dict(recorder.defaults),
        ranges=dict(recorder.ranges),
        notes=tuple(recorder.notes),
    )


def _distinct(observations: list[Observation], locations: Sequence[Location]) -> list[Observation]:
    """Keeps one observation of a value per reader: a logger with two handlers formats a value twice at one place."""
    found: dict[tuple[Any, ...], Observation] = {}
    for each in observations:
        place = locations[each.location]
        found.setdefault((each.value, each.kind, each.name, place.span, place.scope), each)
    return list(found.values())
