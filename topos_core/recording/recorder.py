"""The recorder of one trace: appends ops, keeps observations and notes, and turns problems into errors with a place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from topos_core.errors import RecordingError
from topos_core.ops.catalog import definitions
from topos_core.ops.definition import TypeMismatch
from topos_core.recording.location import Locator
from topos_core.recording.naming import Namer
from topos_core.recording.randomness import RandomStates
from topos_core.recording.source import SourceSnapshot
from topos_core.recording.value import Value
from topos_core.tape.op import Op
from topos_core.tape.span import Location
from topos_core.tape.tape import Note, Observation, ObservationKind
from topos_core.tape.type import TensorType

CURRENT: Final[ContextVar[Recorder | None]] = ContextVar("topos_recorder", default=None)
DRAWN: Final = "random numbers were drawn while recording and are constants of the tape, the same in every run; pass them as an input"
NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


class Recorder:
    """Builds one tape. At most one recorder is current in a context; its values are no one else's."""

    def __init__(self, sources: Mapping[str, str] | None = None) -> None:
        self.ops: list[Op] = []
        self.inputs: list[int] = []
        self.parameters: list[int] = []
        self.names: dict[int, str] = {}
        self.defaults: dict[int, np.ndarray] = {}
        self.ranges: dict[int, tuple[int, int]] = {}
        self.observations: list[Observation] = []
        self.notes: list[Note] = []
        self.locator = Locator()
        self.sources = SourceSnapshot(sources)
        self.namer = Namer()
        self.captured: dict[int, list[Any]] = {}
        self.derived: dict[Any, tuple[int, ...]] = {}
        self.last_error: RecordingError | None = None
        self.last_place = Location(())
        self.random: RandomStates | None = None
        self._infer = {name: row.infer for name, row in definitions().items()}

    def record(self, name: str, operands: tuple[Value, ...], attributes: Mapping[str, Any] = NOTHING) -> Value:
        """Appends one op.

        Raises:
            RecordingError: The operands do not fit, or belong to another trace.
        """
        if CURRENT.get() is not self:
            raise self.foreign(*operands)
        for operand in operands:
            if operand.recorder is not self:
                raise self.foreign(operand)
        try:
            inferred = self._infer[name]([operand.type for operand in operands], attributes)
        except TypeMismatch as error:
            raise self.error(str(error)) from None
        ops = self.ops
        ops.append(Op(name, tuple([operand.index for operand in operands]), attributes, inferred, self.locator.here()))
        return Value(self, len(ops) - 1, inferred)

    def source(self, name: str, type: TensorType, location: int | None = None) -> Value:
        """Appends an input or a parameter."""
        row = self.locator.here() if location is None else location
        self.ops.append(Op(name, (), {"type": type}, type, row))
        return Value(self, len(self.ops) - 1, type)

    def observe(self, value: Value, kind: ObservationKind, name: str | None = None, *, assumed: bool = False) -> None:
        """Records that somebody reads a value here."""
        if value.recorder is not self or CURRENT.get() is not self:
            raise self.foreign(value)
        self.observations.append(Observation(value.index, kind, name, self.locator.here(), assumed))

    def once(self, key: Any, make: Callable[[], tuple[Value, ...]]) -> tuple[Value, ...]:
        """Gives what a formula makes of values that never change, recorded once however many layers ask for it."""
        known = self.derived.get(key)
        if known is None:
            known = self.derived[key] = tuple(value.index for value in make())
        return tuple(Value(self, index, self.ops[index].type) for index in known)

    def note(self, code: str, value: Value, message: str) -> None:
        """Keeps something worth telling about an op."""
        self.notes.append(Note(code, value.index, message))

    def note_randomness(self, value: Value) -> None:
        """Notes TP702 at a value where a random state has moved since the last look."""
        if self.random is not None and self.random.moved():
            self.note("TP702", value, DRAWN)

    def note_last_draws(self, results: Sequence[Value]) -> None:
        """Notes TP702 at the entry where a random state has moved since the last captured array."""
        at = self.inputs[0] if self.inputs else results[0].index if results else None
        if at is not None:
            self.note_randomness(Value(self, at, self.ops[at].type))

    def place(self, value: Value) -> Location:
        """Gives the place at which one of this recorder's values was made."""
        return self.locator.resolve_row(self.ops[value.index].location, self.sources)

    def error(self, message: str, *related: Value) -> RecordingError:
        """Makes an error at the expression that is being run now, and keeps it: NumPy replaces what `__array__` raises."""
        place = self.locator.resolve_row(self.locator.here(), self.sources)
        others = tuple(value.recorder.place(value).span for value in related)
        error = RecordingError(message, span=place.span, related=others)
        current = CURRENT.get() or self
        current.last_error, current.last_place = error, place
        return error

    def foreign(self, *values: Value) -> RecordingError:
        """Makes the error for values that another trace left behind: in a cache, on a module, in another thread."""
        kept = values[:1]
        made = f"{kept[0].type} recorded at {kept[0].recorder.place(kept[0]).span}" if kept else "this operation"
        return self.error(f"{made} belongs to another trace, or to one that has ended; pass it as an input", *kept)

    @contextmanager
    def at(self, location: Location) -> Iterator[None]:
        """Records what follows at one given place: importers name the node that they translate."""
        before, self.locator.pinned = self.locator.pinned, self.locator.add(location)
        try:
            yield
        finally:
            self.locator.pinned = before


@contextmanager
def recording(recorder: Recorder) -> Iterator[Recorder]:
    """Makes a recorder the current one."""
    token = CURRENT.set(recorder)
    try:
        yield recorder
    finally:
        CURRENT.reset(token)


def recorder_of(*operands: Any) -> Recorder:
    """Gives the recorder of the first Value among the operands, looking into lists and tuples.

    Raises:
        RecordingError: No operand is a Value and nothing is being recorded.
    """
    for operand in operands:
        if isinstance(operand, Value):
            return operand.recorder
        if isinstance(operand, (list, tuple)):
            for each in operand:
                if isinstance(each, Value):
                    return each.recorder
    current = CURRENT.get()
    if current is None:
        raise RecordingError("nothing is being recorded here; call this inside a traced function, or on NumPy arrays")
    return current
