"""Gathers and scatters."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from topos_core.importers.onnx_model.node import Node, Translate, Unsupported
from topos_core.recording import constant, elementwise, lookup, movement
from topos_core.recording.value import Value


def _indices(node: Node, at: int) -> Any:
    """Gives indices as numbers where they are known: a slice then stays a slice."""
    held = node.held[at]
    return held if isinstance(held, np.ndarray) else node.x(at)


def _gather(node: Node) -> Any:
    x = node.x()
    return lookup.gather(x, _indices(node, 1), node.axis(node.attribute("axis", 0), x.ndim))


def _gather_elements(node: Node) -> Any:
    x = node.x()
    axis = node.axis(node.attribute("axis", 0), x.ndim)
    indices = node.x(1)
    shape = [indices.shape[at] if at != axis else extent for at, extent in enumerate(x.shape)]
    cropped = movement.cut(x, [0] * x.ndim, shape)
    return lookup.take_along_axis(cropped, indices, axis)


def _gather_nd(node: Node) -> Any:
    """Reads slices at index vectors: one gather over the flattened leading axes."""
    x, indices, batch = node.x(0), elementwise.cast(node.x(1), "i64"), node.attribute("batch_dims", 0)
    depth = indices.shape[-1]
    lead, rest = x.shape[batch : batch + depth], x.shape[batch + depth :]
    groups = math.prod(x.shape[:batch])
    flat = movement.reshape(x, (groups * math.prod(lead), *rest))
    place: Any = None
    for at, extent in enumerate(lead):
        part = lookup.inside(indices[..., at], extent)
        place = part if place is None else place * extent + part
    if batch:
        first = np.arange(groups).reshape(*x.shape[:batch], *(1,) * (place.ndim - batch)) * math.prod(lead)
        place = place + first
    return lookup.gather(flat, place, 0)


def _scatter_elements(node: Node) -> Any:
    """Adds elements at indices; whatever replaces would need an op of its own."""
    if node.attribute("reduction", "none") != "add":
        raise Unsupported("it replaces elements; topos has scatter_add only")
    x, indices, updates = node.x(0), elementwise.cast(node.x(1), "i64"), node.x(2)
    axis = node.axis(node.attribute("axis", 0), x.ndim)
    place: Any = None
    for at, extent in enumerate(x.shape):
        column = [-1 if k == at else 1 for k in range(x.ndim)]
        part: Any = (
            lookup.inside(indices, extent)
            if at == axis
            else movement.spread(
                constant.table(node.recorder, np.arange(indices.shape[at]).reshape(column), "i64"), indices.shape
            )
        )
        place = part if place is None else place * extent + part
    return _added(x, place, updates, ())


def _scatter_nd(node: Node) -> Any:
    if node.attribute("reduction", "none") != "add":
        raise Unsupported("it replaces slices; topos has scatter_add only")
    x, indices, updates = node.x(0), elementwise.cast(node.x(1), "i64"), node.x(2)
    depth = indices.shape[-1]
    place: Any = None
    for at, extent in enumerate(x.shape[:depth]):
        part = lookup.inside(indices[..., at], extent)
        place = part if place is None else place * extent + part
    return _added(x, place, updates, x.shape[depth:])


def _added(x: Value, place: Value, updates: Value, rest: tuple[int, ...]) -> Any:
    rows = x.size // math.prod(rest) if math.prod(rest) else 0
    flat = movement.reshape(x, (rows, *rest))
    places = movement.reshape(place, (place.size,))
    total = x.recorder.record(
        "scatter_add", (flat, places, movement.reshape(updates, (place.size, *rest))), {"axis": 0}
    )
    return movement.reshape(total, x.shape)


def _reverse_sequence(node: Node) -> Any:
    """Turns the first elements of each sequence around, by lengths that are numbers."""
    x, lengths = node.x(), node.known(1, "sequence lengths")
    time, batch = node.attribute("time_axis", 0), node.attribute("batch_axis", 1)
    counted = np.arange(x.shape[time])
    rows = np.where(counted[None] < lengths[:, None], lengths[:, None] - 1 - counted[None], counted[None])
    table = rows if (batch, time) == (0, 1) else rows.T
    shape = tuple(extent if at in (time, batch) else 1 for at, extent in enumerate(x.shape))
    return lookup.take_along_axis(x, table.reshape(shape), time)


OPERATORS: Final[Mapping[str, Translate]] = {
    "Gather": _gather, "GatherElements": _gather_elements, "GatherND": _gather_nd,
    "ScatterElements": _scatter_elements, "ScatterND": _scatter_nd, "ReverseSequence": _reverse_sequence,
}  # fmt: skip
