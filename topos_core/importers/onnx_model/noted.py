"""Shapes that a model notes for its results, set against those that were recorded: one of the two counts windows otherwise.

Runtimes only warn there. Where ONNX's own inference gives what topos recorded, at every node, the note is wrong, and is told; where it gives
something else, or nothing, the importer may be wrong, so the model is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from topos_core.errors import TraceError
from topos_core.importers.onnx_model.attributes import free_names, graphs_of
from topos_core.importers.onnx_model.dtypes import static_type
from topos_core.importers.onnx_model.extents import Extents
from topos_core.importers.onnx_model.foreign import inferred
from topos_core.importers.onnx_model.graph import Walk
from topos_core.recording.value import Value


def check_noted(walk: Walk, model: Any, results: Sequence[Value], extents: Extents) -> None:
    """Compares every result with its note, once the model is walked.

    Raises:
        TraceError: TP402, a note contradicts a shape that ONNX's inference does not confirm; with both shapes.
    """
    for each, value in zip(model.graph.output, results, strict=True):
        noted = _noted(each, value, extents)
        if noted is None or _fits(noted, value.shape):
            continue
        own, said = _listed(value.shape), _listed(noted)
        if not _confirmed(walk, model, each.name):
            raise TraceError(
                f"{each.name} has the shape {own}, the model says {said};"
                " export it again, or remove the shape that it notes for this output",
                code="TP402",
            )
        value.recorder.note(
            "TP704", value, f"{each.name} has the shape {own}, by ONNX's inference too; the model notes {said}"
        )


def _noted(given: Any, value: Value, extents: Extents) -> list[int | None] | None:
    tensor = given.type.tensor_type
    foreign = value.recorder.ops[value.index].name in (
        "opaque",
        "pick",
    )  # its shape is what the model says, or not known
    if foreign or not given.type.HasField("tensor_type") or not tensor.HasField("shape"):
        return None
    return [extents.of_result(dim) for dim in tensor.shape.dim]


def _fits(noted: list[int | None], shape: tuple[int, ...]) -> bool:
    return len(noted) == len(shape) and all(said is None or said == own for said, own in zip(noted, shape, strict=True))


def _listed(extents: Sequence[int | None]) -> str:
    return f"[{','.join('?' if each is None else str(each) for each in extents)}]"


def _confirmed(walk: Walk, model: Any, name: str) -> bool:
    """Tells whether ONNX infers the recorded shape of a result, and of every node before it, from their operands.

    A node is looked at alone, with the numbers that it reads: inference over a whole model knows few of them.
    """
    makers = {output: node for node in model.graph.node for output in node.output}
    pending, seen, known = [name], set[str](), False
    while pending:
        each = pending.pop()
        node = makers.get(each)
        if each in seen or node is None:
            continue
        seen.update(node.output)
        read = [*node.input, *free_names(graphs_of(node))]
        held = {one: walk.get(one) for one in dict.fromkeys(read) if one}
        types = inferred(node, held, {}, walk.opsets, walk.ir_version)
        for output in node.output:
            type = static_type(types[output]) if output in types else None
            own = walk.held.get(output)
            if type is not None and isinstance(own, Value | np.ndarray) and type.shape != own.shape:
                return False
            known |= output == name and type is not None
        pending += [one for one in read if one]
    return known
