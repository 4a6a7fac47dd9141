"""Ops that lie in memory and cost alike: what is worked out of one op holds for all of its kind.

Where a value lies and what its op costs follow from the op's name, attributes and type and from the types and strides of its
operands. No two networks have many of those: blocks repeat, and within a block most arrays share one shape.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from topos_core.cost.memory import Placed, Placement, place
from topos_core.matching.tuples import new_tuple
from topos_core.tape.op import Op
from topos_core.tape.signs import signs
from topos_core.tape.tape import Tape


@dataclass(frozen=True, slots=True)
class Kinds:
    """The kinds of a tape's ops when all run as recorded.

    Args:
        of: The kind of each value.
        examples: A value of each kind.
        placements: What making that one did.
        bases: For each value, the value in whose buffer it lies.
    """

    of: list[int]
    examples: list[int]
    placements: list[Placement]
    bases: list[int]

    def places(self) -> tuple[Placement, ...]:
        """Says where every value lies."""
        known = self.placements
        return tuple(
            known[kind]._replace(placed=Placed(base, known[kind].placed.strides))
            for kind, base in zip(self.of, self.bases, strict=True)
        )


def kinds(tape: Tape) -> Kinds:
    """Sorts a tape's ops. Linear, independent of extents."""
    found = Kinds([], [], [], [])
    of, bases, placements = found.of, found.bases, found.placements
    numbers: dict[Any, int] = {}
    told = tape.once(signs)
    lies: dict[Any, int] = {}
    lie_of: list[int] = []  # by kind: equal where type and strides are
    lie: list[int] = []  # by value
    at = lie.__getitem__
    viewed: list[bool] = []  # by kind: whether its values lie in their operand's buffer
    for value, op in enumerate(tape.ops):
        name, operands, _, kind, _ = op
        key = (told[value], *map(at, operands)) if name not in _TOLD_APART else _told(op, value)
        number = numbers.get(key)
        if number is None:
            number = numbers[key] = len(placements)
            placement = place(tape, value, lambda v: new_tuple(Placed, (bases[v], placements[of[v]].placed.strides)))
            found.examples.append(value)
            placements.append(placement)
            viewed.append(placement.placed.base != value)
            lie_of.append(lies.setdefault((kind, placement.placed.strides), len(lies)))
        of.append(number)
        lie.append(lie_of[number])
        bases.append(bases[operands[0]] if viewed[number] else value)
    return found


_TOLD_APART: Final = frozenset(("constant", "opaque"))


def _told(op: Op, value: int) -> Any:
    """Tells a constant by its type alone; a foreign op may hold anything and is a kind of its own."""
    if op.name == "constant":
        return "constant", op.type, getattr(op.attributes["value"], "ndim", 0) > 0
    return "opaque", value
