"""A document as a graph of networkx: a node per value, an edge per operand link, regions on the nodes they hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import networkx


def graph(document: Mapping[str, Any]) -> networkx.MultiDiGraph[int]:
    """Gives the ops of a document as a graph.

    Node data: `op`, `type`, `attributes`, `name`, `scope`, `span` (path, line, column, end_line, end_column),
    `region` (the id of the region that decides it, the taken one first) and `verdict`. Edge data: `operand`, its
    position. The graph's own data has `target`, `consumer` and `regions` by id.
    """
    import networkx

    made: networkx.MultiDiGraph[int] = networkx.MultiDiGraph(
        target=document["target"],
        consumer=document["consumer"],
        regions={region["id"]: region for region in document["regions"]},
    )
    ops, frames = document["ops"], document["frames"]
    names = {row["value"]: row["name"] for row in (*document["inputs"], *document["parameters"])}
    holds = _holders(document["regions"])
    for value in range(len(ops["name"])):
        location = ops["location"][value]
        path, *place = frames[document["spans"][location]][:5]
        region = holds.get(value)
        made.add_node(
            value,
            op=document["names"][ops["name"][value]],
            type=document["types"][ops["type"][value]],
            attributes=ops["attributes"][value],
            name=names.get(value),
            scope=tuple(document["scopes"][document["locations"][location][0]]),
            span=(document["paths"][path], *place),
            region=region["id"] if region is not None else None,
            verdict=region["verdict"] if region is not None else None,
        )
    for value, operands in enumerate(ops["operands"]):
        for position, operand in enumerate(operands):
            made.add_edge(operand, value, operand=position)
    return made


def _holders(regions: Sequence[Mapping[str, Any]]) -> dict[int, Mapping[str, Any]]:
    """Picks one region per value: taken before blocked before declined, the larger before the smaller."""
    order = {"taken": 0, "blocked": 1, "declined": 2}
    holds: dict[int, Mapping[str, Any]] = {}
    shown = [region for region in regions if region["verdict"] in order]
    for region in sorted(shown, key=lambda r: (order[r["verdict"]], -len(r["nodes"]), r["root"])):
        for value in region["nodes"]:
            holds.setdefault(value, region)
    return holds
