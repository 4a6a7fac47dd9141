"""Writes into tensors: what an in-place op changes, through every other name of the same memory.

Nodes of a graph that share memory share torch's storage. A view knows how it is made from its base (`replay`) and how the
base follows from a changed view (`restore`); where either is unknown, the other names become opaque: never a stale value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from topos_core.recording.value import Value

Replay = Callable[[Value], Value]
Restore = Callable[[Value, Value], "Value | None"]


@dataclass(frozen=True, slots=True)
class View:
    """How one node sees another node's memory.

    Args:
        base: The node seen.
        replay: Makes the view's value from the base's.
        restore: Makes the base's value from its old value and the view's new one; None where that has no formula.
    """

    base: Any
    replay: Replay
    restore: Restore


class Memory:
    """The values of the nodes of one graph, kept true under writes."""

    def __init__(self) -> None:
        self.values: dict[Any, Any] = {}
        self._views: dict[Any, View] = {}
        self._order: list[Any] = []

    def see(self, node: Any, view: View) -> None:
        """Notes that a node is a view."""
        self._views[node] = view
        self._order.append(node)

    def write(self, node: Any, value: Value, pending: Callable[[Any], bool], unknown: Callable[[Value], Value]) -> None:
        """Gives a node a new value, and with it every node that shares its memory.

        Args:
            node: The node written to.
            value: Its new value.
            pending: Says whether a node is still going to be read.
            unknown: Makes an opaque value for a node whose new value has no formula.
        """
        self.values[node] = value
        path = {node}
        top = node
        lost = False
        while top in self._views:
            view = self._views[top]
            old = self.values[view.base]
            restored = None if lost or not isinstance(old, Value) else view.restore(old, self.values[top])
            lost = restored is None
            top = view.base
            path.add(top)
            self.values[top] = unknown(old) if restored is None and isinstance(old, Value) else restored
        self._refresh(path, pending)

    def _refresh(self, path: set[Any], pending: Callable[[Any], bool]) -> None:
        """Makes the views of what was written again, where they, or views of them, are going to be read."""
        needed: set[Any] = set()
        for each in reversed(self._order):
            if each in needed or pending(each):
                needed |= {each, self._views[each].base}
        stale = set(path)
        for each in self._order:
            view = self._views[each]
            if view.base in stale and each not in path:
                stale.add(each)
                if each in needed:
                    self.values[each] = view.replay(self.values[view.base])

    def root_of(self, node: Any) -> Any:
        """Gives the node whose memory a node sees."""
        while node in self._views:
            node = self._views[node].base
        return node
