"""Connected groups of elementwise ops with one exit, all groups of a tape in one pass.

Walked from its end, an op joins the group of its readers if they are all in one, and starts a group of its own where
somebody outside reads it, so no group has an inner value that is read elsewhere. Movement that only adds or drops axes of
extent 1 lies between members as if it were not there.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from topos_core.matching.context import Context
from topos_core.ops.catalog import definitions
from topos_core.tape.leading import leads_out
from topos_core.tape.op import Op

LIMIT: Final = 64
"""Ops of a group: what one kernel is compiled for. A longer chain is cut, and each part reads what the one before made."""

ELEMENTWISE: Final = frozenset(name for name, row in definitions().items() if row.kind == "elementwise")
MOVES: Final = frozenset(("reshape", "broadcast", "permute"))

Shape = tuple[int, ...]


def squeezed(shape: Shape) -> Shape:
    """Drops extents of 1."""
    return tuple([extent for extent in shape if extent != 1]) if 1 in shape else shape


@dataclass(frozen=True, slots=True)
class Group:
    """Elementwise ops of one space, ascending; the last is the exit, the only one that is read outside."""

    members: tuple[int, ...]

    @property
    def exit(self) -> int:
        """Gives the value that is read outside."""
        return self.members[-1]


@dataclass(slots=True)
class Tables:
    """What groups ask of a tape: who reads whom, seen through movement that keeps every position."""

    context: Context
    observed: bool
    results: frozenset[int] = field(init=False)
    leads: bytearray = field(init=False)
    _still: dict[int, bool] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        tape = self.context.tape
        self.results = frozenset(tape.results)
        self.leads = tape.once(leads_out)

    def is_still(self, value: int) -> bool:
        """Says whether an op is movement that keeps every position: axes of extent 1 come and go."""
        known = self._still.get(value)
        if known is None:
            op = self.context.op(value)
            known = self._still[value] = op.name in MOVES and self._keeps(op)
        return known

    def _keeps(self, op: Op) -> bool:
        shape = self.context.op(op.operands[0]).type.shape
        if squeezed(shape) != squeezed(op.type.shape):
            return False
        if op.name != "permute":
            return True
        moved = [axis for axis in op.attributes["order"] if shape[axis] != 1]
        return moved == sorted(moved)

    def readers(self, value: int, *, spread: bool = False) -> list[int] | None:
        """Lists who reads a value, seen through still movement; None where a result or an observation does.

        A reader that leads to observations alone counts only where `observed` is set, or where the value does too. With
        `spread`, repeating along further axes is seen through too.
        """
        found: list[int] = []
        todo = [value]
        leads, still, readers = self.leads, self._still, self.context.readers
        while todo:
            at = todo.pop()
            if at in self.results or (self.observed and at in self.context.observed):
                return None
            for reader in readers[at]:
                if not self.observed and leads[at] and not leads[reader]:
                    continue
                passes = still[reader] if reader in still else self.is_still(reader)
                if passes or (spread and self.context.op(reader).name == "broadcast"):
                    todo.append(reader)
                else:
                    found.append(reader)
        return found

    def source(self, value: int) -> int:
        """Gives what a value is but for still movement."""
        while self.is_still(value):
            value = self.context.op(value).operands[0]
        return value


@dataclass(frozen=True, slots=True)
class Grouping:
    """One way to see a tape: what is left out, the groups of the rest by their exits, and every member's exit."""

    tables: Tables
    excluded: frozenset[int]
    groups: Mapping[int, Group]
    exits: Mapping[int, int]

    def one_group(self, readers: Collection[int] | None) -> Group | None:
        """Gives the one group that all readers are in."""
        found = _only(readers, self.exits)
        return None if found is None else self.groups[found]


def grouped(tables: Tables, excluded: frozenset[int]) -> Grouping:
    """Finds every maximal group; `excluded` ops are in none."""
    context = tables.context
    exits: dict[int, int] = {}
    members: dict[int, list[int]] = {}
    for value in reversed(context.made_by(ELEMENTWISE)):
        if value in excluded or not context.is_live(value):
            continue
        target = _only(tables.readers(value), exits)
        if target is None or len(members[target]) >= LIMIT:
            target = value
            members[value] = []
        exits[value] = target
        members[target].append(value)
    found = {exit: Group(tuple(reversed(values))) for exit, values in members.items()}
    return Grouping(tables, excluded, found, exits)


def _only(readers: Collection[int] | None, exits: Mapping[int, int]) -> int | None:
    """Gives the exit of the one group that all readers are in."""
    if not readers:
        return None
    found = {exits.get(reader, -1) for reader in readers}
    return found.pop() if len(found) == 1 and -1 not in found else None


def groupings(context: Context) -> tuple[Grouping, ...]:
    """Gives the ways to see a tape, best first: what no other pattern has, everything, and what ends where it is observed.

    The second is for ops whose own pattern cannot run: under `exact`, with a value observed, without a kernel.
    """
    held = frozenset().union(*(match.computing | match.produced for match in context.matched()))
    plain = Tables(context, observed=False)
    found = [grouped(plain, held)]
    if held:
        found.append(grouped(plain, frozenset()))
    if context.observed:
        found.append(grouped(Tables(context, observed=True), held))
    return tuple(found)
