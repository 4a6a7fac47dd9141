"""Groups what the catalogue does not name, as TVM's FuseOps does: by op kind, along immediate post-dominators.

An op merges into its immediate post-dominator if every path between them is made of ops that one loop nest can hold;
then groups that read one common value and nothing of each other merge side by side. A value that somebody else reads (a
result, an observation, a taken match) has no post-dominator inside, so no group ever hides it.

Source: Chen et al., TVM, OSDI 2018, section 3; the conditions are those of `FuseOps` in Apache TVM.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, NamedTuple


class Kind(IntEnum):
    """How an op reads its operands; a smaller kind fuses in more places."""

    ELEMENTWISE = 0
    BROADCAST = 1
    INJECTIVE = 2
    REDUCTION = 3
    OUT_FUSABLE = 4
    OPAQUE = 8


_BY_NAME: Final[Mapping[str, Kind]] = {
    "broadcast": Kind.BROADCAST, "gather": Kind.INJECTIVE, "scatter_add": Kind.OPAQUE, "cumsum": Kind.OPAQUE,
    "within": Kind.OPAQUE, "opaque": Kind.OPAQUE, "pick": Kind.OPAQUE, "iota": Kind.INJECTIVE,
}  # fmt: skip
_BY_FAMILY: Final[Mapping[str, Kind]] = {
    "elementwise": Kind.ELEMENTWISE, "movement": Kind.INJECTIVE, "reduction": Kind.REDUCTION,
    "contraction": Kind.OUT_FUSABLE, "lookup": Kind.INJECTIVE, "opaque": Kind.OPAQUE, "source": Kind.INJECTIVE,
}  # fmt: skip


def kind_of(name: str, family: str) -> Kind:
    """Gives an op's kind by its name, else by its definition's family."""
    return _BY_NAME.get(name, _BY_FAMILY[family])


class Node(NamedTuple):
    """One op, or one taken match (opaque).

    `reads` are nodes before it; `external` says that somebody outside the graph reads it.
    """

    kind: Kind
    reads: tuple[int, ...]
    external: bool = False


@dataclass(frozen=True, slots=True)
class Group:
    """Nodes that one loop nest can run, ascending; `anchor` is the most demanding kind among them."""

    nodes: tuple[int, ...]
    anchor: Kind


def group(nodes: Sequence[Node]) -> tuple[Group, ...]:
    """Groups nodes; every node is in exactly one group, in the order of their first nodes."""
    readers: list[list[int]] = [[] for _ in nodes]
    for number, node in enumerate(nodes):
        for read in dict.fromkeys(node.reads):
            readers[read].append(number)
    return _Grouping(nodes, readers).run()


class _Grouping:
    """The union-find of groups, the post-dominator tree, and the phases that merge."""

    def __init__(self, nodes: Sequence[Node], readers: Sequence[Sequence[int]]) -> None:
        self.nodes, self.readers = nodes, readers
        self.leader = list(range(len(nodes)))
        self.members = [[number] for number in range(len(nodes))]
        self.anchor = [node.kind for node in nodes]
        self.parent: list[int | None] = [None] * len(nodes)
        self.depth = [0] * len(nodes)
        self.on_the_way = [Kind.ELEMENTWISE] * len(nodes)  # the most demanding kind up to and with the parent
        for number in range(len(nodes) - 1, -1, -1):
            self._dominate(number)

    def run(self) -> tuple[Group, ...]:
        # Products take their epilogues first; were movement merged before, it would end between a product and them.
        for phase in (0, 1):
            for number in range(len(self.nodes)):
                self._vertical(number, phase)
        self._horizontal()
        leaders = (number for number in range(len(self.nodes)) if self.find(number) == number)
        return tuple(Group(tuple(sorted(self.members[leader])), self.anchor[leader]) for leader in leaders)

    def find(self, number: int) -> int:
        while self.leader[number] != number:
            self.leader[number] = self.leader[self.leader[number]]
            number = self.leader[number]
        return number

    def _dominate(self, number: int) -> None:
        """Finds the immediate post-dominator: the last common reader of all paths, by walking up from every reader."""
        if self.nodes[number].external or not self.readers[number]:
            return
        first, *others = self.readers[number]
        common: int | None = first
        way = self.nodes[first].kind
        for other in others:
            way = max(way, self.nodes[other].kind)
            common, way = self._meet(common, other, way)
            if common is None:
                return
        self.parent[number] = common
        self.on_the_way[number] = way
        assert common is not None
        self.depth[number] = self.depth[common] + 1

    def _meet(self, a: int | None, b: int | None, way: Kind) -> tuple[int | None, Kind]:
        while a != b:
            if a is None or b is None:
                return None, way
            if self.depth[a] < self.depth[b]:
                a, b = b, a
            way = max(way, self.on_the_way[a])
            a = self.parent[a]
        return a, way

    def _vertical(self, number: int, phase: int) -> None:
        parent = self.parent[number]
        kind = self.anchor[self.find(number)]
        if parent is None or kind is Kind.OPAQUE or self.find(number) == self.find(parent):
            return
        way = self.on_the_way[number]
        if kind is Kind.OUT_FUSABLE:
            if (
                phase == 0
                and way is Kind.ELEMENTWISE
                and self._path_holds(number, parent, Kind.BROADCAST, Kind.BROADCAST)
            ):
                self._merge(number, parent)
        elif kind <= Kind.BROADCAST:
            sink = Kind.OUT_FUSABLE
            if way <= Kind.REDUCTION and self._path_holds(number, parent, Kind.INJECTIVE, sink):
                self._merge(number, parent)
        elif kind is Kind.INJECTIVE and phase == 1 and self._path_holds(number, parent, Kind.INJECTIVE, Kind.INJECTIVE):
            self._merge(number, parent)

    def _path_holds(self, start: int, sink: int, between: Kind, at_sink: Kind) -> bool:
        """Checks the groups of every node between two nodes, and the sink's."""
        if self.anchor[self.find(sink)] > at_sink:
            return False
        seen = {start}
        todo = [start]
        while todo:
            for reader in self.readers[todo.pop()]:
                if reader == sink or reader in seen:
                    continue
                if self.anchor[self.find(reader)] > between:
                    return False
                seen.add(reader)
                todo.append(reader)
        return True

    def _merge(self, start: int, sink: int) -> None:
        """Joins everything between two nodes into one group."""
        seen = {start, sink}
        todo = [start]
        while todo:
            for reader in self.readers[todo.pop()]:
                if reader not in seen:
                    seen.add(reader)
                    todo.append(reader)
        for number in seen:
            self._join(number, sink)

    def _join(self, a: int, b: int) -> None:
        a, b = self.find(a), self.find(b)
        if a != b:
            anchor = max(self.anchor[a], self.anchor[b])
            low, high = min(a, b), max(a, b)
            self.leader[high] = low
            self.anchor[low] = anchor
            self.members[low] += self.members[high]
            self.members[high] = []

    def _horizontal(self) -> None:
        """Joins elementwise groups that read one common value, of which none reads another's, first come first served."""
        for number in range(len(self.nodes)):
            siblings: list[int] = []
            for reader in self.readers[number]:
                leader = self.find(reader)
                fits = self.anchor[leader] <= Kind.BROADCAST and leader != self.find(number) and leader not in siblings
                if fits and not any(self._reaches(leader, other) or self._reaches(other, leader) for other in siblings):
                    siblings.append(leader)
            for sibling in siblings[1:]:
                self._join(sibling, siblings[0])

    def _reaches(self, source: int, target: int) -> bool:
        """Tells whether a group's values lead into another group; nothing behind the other's last node is walked."""
        source, target = self.find(source), self.find(target)
        last = max(self.members[target])
        todo = list(self.members[source])
        seen = set(todo)
        while todo:
            for reader in self.readers[todo.pop()]:
                if self.find(reader) == target:
                    return True
                if reader < last and reader not in seen:
                    seen.add(reader)
                    todo.append(reader)
        return False
