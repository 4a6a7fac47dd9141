"""Matches out of groups: walks from members to what they read, and writes the group down as an expression."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from topos_core.matching.chains import MOVES, squeezed
from topos_core.matching.expression import REDUCTIONS, ExpressionFacts, Number, Step, number_of
from topos_core.matching.facts import Layout
from topos_core.matching.match import Match
from topos_core.tape.op import Op
from topos_core.tape.tape import Tape

Roles = tuple[int, ...]
"""Per axis of a value: the axis of the space along which it runs, -1 for an axis of extent 1."""


@dataclass(slots=True)
class Gathering:
    """Collects one expression.

    Args:
        tape: Where it stands.
        extents: Of the space.
        members: What is computed, ascending.
        kept: Members that have the kept axes only; the reduction is one.
        reduced: Axes of the space that the reduction takes away.
    """

    tape: Tape
    extents: tuple[int, ...]
    members: Sequence[int]
    kept: frozenset[int] = frozenset()
    reduced: tuple[int, ...] = ()
    layouts: dict[str, Layout] = field(init=False, default_factory=dict)
    bindings: dict[str, int] = field(init=False, default_factory=dict)
    constants: dict[str, Number] = field(init=False, default_factory=dict)
    dtypes: dict[str, str] = field(init=False, default_factory=dict)
    steps: list[Step] = field(init=False, default_factory=list)
    walked: set[int] = field(init=False, default_factory=set)
    _numbers: dict[int, int] = field(init=False, default_factory=dict)
    _known: dict[tuple[int, Roles], str] = field(init=False, default_factory=dict)
    _same: dict[tuple[str, bytes], str] = field(init=False, default_factory=dict)

    def match(self, pattern: str, root: int, named: Mapping[str, int] | None = None) -> Match | None:
        """Gives the match of a pattern; None where a member is read along other axes than it has, or nothing is read."""
        for value in self.members:
            if not self._step(value):
                return None
        if not self.bindings:
            return None
        named = named or {}
        produced = {root, *named.values()}
        results = {"root": root, **named}
        facts = ExpressionFacts(
            self.extents, self.layouts, self.dtypes, self.constants, tuple(self.steps),
            {name: f"s{self._numbers[value]}" for name, value in results.items()}, self.reduced,
        )  # fmt: skip
        members = frozenset(self.members)
        return Match(
            pattern, root, self.bindings, (members | self.walked) - produced, members - set(named.values()),
            {name: (value,) for name, value in named.items()}, facts,
        )  # fmt: skip

    def _step(self, value: int) -> bool:
        op = self.tape.ops[value]
        kept = value in self.kept
        whole = not kept or op.name in REDUCTIONS
        names = []
        for operand in op.operands:
            name = self._operand(operand, self._frame(operand if whole and kept else value, whole=whole))
            if name is None:
                return False
            names.append(name)
        self._numbers[value] = len(self.steps)
        self.steps.append(Step(op.name, tuple(names), op.type.dtype, _detail(op), kept))
        return True

    def _frame(self, value: int, *, whole: bool) -> Roles:
        """Gives a member's own roles: its longer axes run along the space's axes in order."""
        axes = range(len(self.extents))
        along = iter(axes if whole else [axis for axis in axes if axis not in self.reduced])
        return tuple([-1 if extent == 1 else next(along) for extent in self.tape.ops[value].type.shape])

    def _operand(self, value: int, roles: Roles) -> str | None:
        """Follows an operand through movement to a member, a constant or what is bound."""
        ops = self.tape.ops
        while True:
            op = ops[value]
            if value in self._numbers:
                own = self._frame(value, whole=value not in self.kept)
                same = [role for role in roles if role >= 0] == [role for role in own if role >= 0]
                return f"s{self._numbers[value]}" if same else None
            if op.name == "constant" and isinstance(op.attributes["value"], np.generic):
                self.walked.add(value)
                return self._constant(op)
            if op.name not in MOVES:
                break
            below = _below(op, ops[op.operands[0]], roles)
            if below is None:
                break
            self.walked.add(value)
            value, roles = op.operands[0], below
        return self._bound(value, roles)

    def _constant(self, op: Op) -> str:
        value: np.generic = op.attributes["value"]
        key = op.type.dtype, value.tobytes()
        if key not in self._same:
            name = self._same[key] = f"c{len(self.constants)}"
            self.constants[name] = number_of(value)
            self.dtypes[name] = op.type.dtype
        return self._same[key]

    def _bound(self, value: int, roles: Roles) -> str:
        key = value, roles
        if key not in self._known:
            name = self._known[key] = f"x{len(self.bindings)}"
            kind = self.tape.ops[value].type
            axes = [axis for axis, role in enumerate(roles) if role >= 0]
            shape = tuple([kind.shape[axis] for axis in axes])
            self.layouts[name] = Layout(shape, tuple([str(roles[axis]) for axis in axes]), tuple(range(len(axes))))
            self.bindings[name] = value
            self.dtypes[name] = kind.dtype
        return self._known[key]


def space_of(tape: Tape, value: int) -> tuple[int, ...]:
    """Gives a value's extents without those of 1."""
    return squeezed(tape.ops[value].type.shape)


def _below(op: Op, operand: Op, roles: Roles) -> Roles | None:
    """Gives the roles of a movement's operand; None where it has no such simple roles."""
    shape = operand.type.shape
    if op.name == "permute":
        back: list[int] = [-1] * len(shape)
        for axis, source in enumerate(op.attributes["order"]):
            back[source] = roles[axis]
        return tuple(back)
    if op.name == "broadcast":
        lead = len(op.type.shape) - len(shape)
        return tuple([-1 if extent == 1 else roles[lead + axis] for axis, extent in enumerate(shape)])
    if squeezed(shape) != squeezed(op.type.shape):
        return None
    along = iter([role for role, extent in zip(roles, op.type.shape, strict=True) if extent != 1])
    return tuple([-1 if extent == 1 else next(along) for extent in shape])


def _detail(op: Op) -> str:
    return str(op.attributes.get("kind") or op.attributes.get("accumulate") or "")


def members_of(groups: Iterable[Sequence[int]]) -> list[int]:
    """Gives the members of several groups, ascending."""
    return sorted({value for group in groups for value in group})
