"""Node attributes as Python objects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from topos_core.importers.onnx_model.initializer import array_of


def attributes_of(node: Any, folder: str) -> dict[str, Any]:
    """Reads a node's attributes; graphs, types and sparse tensors stay as they are."""
    return {attribute.name: _read(attribute, folder) for attribute in node.attribute}


def _read(attribute: Any, folder: str) -> Any:
    match attribute.type:
        case 1:
            return float(attribute.f)
        case 2:
            return int(attribute.i)
        case 3:
            return attribute.s.decode("utf-8", "replace")
        case 4:
            return array_of(attribute.t, folder)
        case 5:
            return attribute.g
        case 6:
            return [float(each) for each in attribute.floats]
        case 7:
            return [int(each) for each in attribute.ints]
        case 8:
            return [each.decode("utf-8", "replace") for each in attribute.strings]
        case _:
            return attribute


def graphs_of(node: Any) -> Iterator[Any]:
    """Yields the graphs that a node holds."""
    for attribute in node.attribute:
        if attribute.type == 5:
            yield attribute.g
        elif attribute.type == 10:
            yield from attribute.graphs


def free_names(graphs: Iterable[Any]) -> list[str]:
    """Lists the names that nested graphs read from around them, in order of use."""
    found: dict[str, None] = {}
    for graph in graphs:
        own = {each.name for each in (*graph.input, *graph.initializer)}
        for node in graph.node:
            for name in (*node.input, *free_names(graphs_of(node))):
                if name and name not in own:
                    found[name] = None
            own.update(node.output)
        for output in graph.output:
            if output.name not in own:
                found[output.name] = None
    return list(found)
