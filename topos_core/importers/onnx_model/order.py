"""Nodes in an order in which each finds what it reads: the model's own where that will do."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Any

from topos_core.errors import TraceError
from topos_core.importers.onnx_model.attributes import free_names, graphs_of


def in_order(nodes: Sequence[Any]) -> list[Any]:
    """Sorts a graph's nodes; among those that are ready, the first in the model comes first.

    Raises:
        TraceError: TP402, nodes read each other in a circle, or two make one value.
    """
    maker: dict[str, int] = {}
    for at, node in enumerate(nodes):
        for name in filter(None, node.output):
            if name in maker:
                raise TraceError(f"two nodes make {name!r}; export the model again", code="TP402")
            maker[name] = at
    needs = [
        {maker[name] for name in (*node.input, *free_names(graphs_of(node))) if maker.get(name, at) != at}
        for at, node in enumerate(nodes)
    ]
    if all(max(each, default=-1) < at for at, each in enumerate(needs)):
        return list(nodes)
    readers: list[list[int]] = [[] for _ in nodes]
    for at, each in enumerate(needs):
        for made in each:
            readers[made].append(at)
    waiting = [len(each) for each in needs]
    ready = [at for at, count in enumerate(waiting) if not count]
    order: list[Any] = []
    while ready:
        at = heapq.heappop(ready)
        order.append(nodes[at])
        for reader in readers[at]:
            waiting[reader] -= 1
            if not waiting[reader]:
                heapq.heappush(ready, reader)
    if len(order) < len(nodes):
        stuck = next(node for node, count in zip(nodes, waiting, strict=True) if count)
        raise TraceError(f"nodes read each other in a circle, {stuck.name or stuck.op_type!r} among them", code="TP402")
    return order
