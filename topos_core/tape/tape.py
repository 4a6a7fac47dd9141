"""The tape: an immutable record of ordinary ops in execution order. Never edited, never re-ordered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np

from topos_core.tape.op import Op
from topos_core.tape.span import Location
from topos_core.tape.type import TensorType

T = TypeVar("T")

ObservationKind = Literal["output", "observe", "print", "item", "hook", "kept"]


class Observation(NamedTuple):
    """Somebody asked to read a value.

    `location` is the reader's row of `Tape.locations`. `name` is what the reader called it. `assumed` says that the
    importer could not decide whether the value is read.
    """

    value: int
    kind: ObservationKind
    name: str | None
    location: int
    assumed: bool = False


class Note(NamedTuple):
    """Something worth telling about one op that is no verdict (`TP701`: widened by a NumPy scalar)."""

    code: str
    value: int
    message: str


@dataclass(frozen=True, slots=True)
class Structure:
    """How a function's results nest: `kind` is leaf, none, tuple, list, dict or record.

    A leaf's `index` counts into `Tape.results`; `keys` name a dict's or record's children in order.
    """

    kind: Literal["leaf", "none", "tuple", "list", "dict", "record"]
    children: tuple[Structure, ...] = ()
    keys: tuple[str, ...] = ()
    index: int = -1


@dataclass(frozen=True, slots=True)
class Tape:
    """One recorded program.

    Args:
        ops: In execution order; op `i` names value `i`.
        inputs: Values given per run, in the function's order.
        parameters: Values bound at plan time.
        results: Returned values, in `structure`'s leaf order; a value may be returned twice.
        structure: How the results nest.
        names: Names of inputs, parameters and named observations, by value.
        observations: Every reader, outputs first.
        locations: Interned rows that ops and observations point to.
        sources: The text of every file that a location names, as it was when the tape was made, by path.
        defaults: The trace-time snapshots of parameters whose values exist, by value; read-only arrays.
        ranges: `value -> (low, high)` of integer inputs that must stay inside `[low, high)`.
        notes: Things worth telling.
    """

    ops: tuple[Op, ...]
    inputs: tuple[int, ...]
    parameters: tuple[int, ...]
    results: tuple[int, ...]
    structure: Structure
    names: Mapping[int, str]
    observations: tuple[Observation, ...]
    locations: tuple[Location, ...]
    sources: Mapping[str, str]
    defaults: Mapping[int, np.ndarray] = field(default_factory=dict)
    ranges: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    _made: dict[Callable[[Tape], Any], Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def once(self, build: Callable[[Tape], T]) -> T:
        """Gives what `build` makes of this tape, made once and kept with it; not to be changed by who asks."""
        if build not in self._made:
            self._made[build] = build(self)
        known: T = self._made[build]
        return known

    def type_of(self, value: int) -> TensorType:
        """Gives the type of a value."""
        return self.ops[value].type

    def location_of(self, value: int) -> Location:
        """Gives the location at which a value was recorded."""
        return self.locations[self.ops[value].location]

    def users(self) -> list[list[int]]:
        """Lists the readers of every value; every operand link counts, so `mul(x, x)` reads x twice. Linear."""
        users: list[list[int]] = [[] for _ in self.ops]
        for i, op in enumerate(self.ops):
            for operand in op.operands:
                users[operand].append(i)
        return users

    def constant(self, value: int) -> Any:
        """Gives the value of a `constant` op (a NumPy scalar for a splat, an array for a table), else None."""
        op = self.ops[value]
        return op.attributes["value"] if op.name == "constant" else None
