"""Groups of elementwise ops that lie side by side: they read one value at the same positions and nothing of each other."""

from __future__ import annotations

from collections.abc import Iterator

from topos_core.matching.chains import MOVES, Group, Grouping, groupings, squeezed
from topos_core.matching.context import Context
from topos_core.matching.gathering import Gathering
from topos_core.matching.match import Match
from topos_core.tape.tape import Tape

LARGEST = 64
"""Ops of all siblings together."""
MOST = 8
"""Results of one match."""


def siblings(context: Context) -> dict[int, Match]:
    """Gives, by its last exit, every set of siblings; a group is in one set."""
    found: dict[int, Match] = {}
    for groups in context.once(sets):
        *others, last = (group.exit for group in groups)
        members = sorted(value for group in groups for value in group.members)
        gathering = Gathering(context.tape, squeezed(context.op(last).type.shape), members)
        named = {f"sibling{number}": value for number, value in enumerate(others)}
        match = gathering.match("sibling_elementwise", last, named)
        if match is not None:
            found[last] = match
    return found


def sets(context: Context) -> tuple[list[Group], ...]:
    """Gives sets of two or more groups, in the order of the values that they share."""
    return tuple(_sets(context, context.once(groupings)[0]))


def _sets(context: Context, grouping: Grouping) -> Iterator[list[Group]]:
    used: set[int] = set()
    for value in range(len(context.tape.ops)):
        if len(context.readers[value]) < 2 or not context.is_live(value):
            continue
        groups = [group for group in _reading(context, grouping, value) if group.exit not in used]
        for chosen in _apart(context.tape, groups):
            if len(chosen) > 1:
                used.update(group.exit for group in chosen)
                yield chosen


def _reading(context: Context, grouping: Grouping, value: int) -> list[Group]:
    """Lists the groups that read a value at every position, in the order of their exits."""
    shape = squeezed(context.op(value).type.shape)
    exits: set[int] = set()
    todo = [value]
    while todo:
        for reader in context.readers[todo.pop()]:
            if grouping.tables.is_still(reader):
                todo.append(reader)
            elif reader in grouping.exits:
                exits.add(grouping.exits[reader])
    exits.discard(grouping.exits.get(value, -1))  # the group that makes the value
    return [grouping.groups[exit] for exit in sorted(exits) if squeezed(context.op(exit).type.shape) == shape]


def _apart(tape: Tape, groups: list[Group]) -> Iterator[list[Group]]:
    """Splits groups into sets of which nothing feeds another: all that a set reads is made before its first exit."""
    chosen: list[Group] = []
    ops = 0
    for group in groups:
        fits = chosen and _last_read(tape, group) < chosen[0].exit
        if chosen and not (fits and len(chosen) < MOST and ops + len(group.members) <= LARGEST):
            yield chosen
            chosen, ops = [], 0
        chosen.append(group)
        ops += len(group.members)
    if chosen:
        yield chosen


def _last_read(tape: Tape, group: Group) -> int:
    """Gives the latest value that a group reads, seen through movement."""
    inside = set(group.members)
    latest = -1
    for member in group.members:
        for operand in tape.ops[member].operands:
            if operand not in inside:
                while tape.ops[operand].name in MOVES:
                    operand = tape.ops[operand].operands[0]
                if operand not in inside and tape.ops[operand].operands:  # what has none exists before the run
                    latest = max(latest, operand)
    return latest
