"""Reads the text form of a tape; the form is told in `tape.text`."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, Final, get_args

import numpy as np

from topos_core.digest import tape_digest
from topos_core.errors import ConfigurationError
from topos_core.tape.literal import Cursor, read
from topos_core.tape.op import Op
from topos_core.tape.span import Frame, FrameKind, Location, Span
from topos_core.tape.tape import Note, Observation, ObservationKind, Structure, Tape
from topos_core.tape.text import HEADER, TYPED
from topos_core.tape.type import TensorType

_VALUE: Final = re.compile(r"%([0-9]+)")
_ROW: Final = re.compile(r"@([0-9]+)")
_NAME: Final = re.compile(r"[a-z][a-z0-9_]*")
_KEY: Final = re.compile(r"([a-z][a-z0-9_]*)=")
_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*"')
_CODE: Final = re.compile(r"TP[0-9]+")
_INTEGER: Final = re.compile(r"-?[0-9]+")
_HEX: Final = re.compile(r"[0-9a-f]{64}")
_PLACE: Final = re.compile(r":([0-9]+):([0-9]+)-([0-9]+):([0-9]+)")


@dataclass(slots=True)
class _Draft:
    """What has been read so far."""

    ops: list[Op] = field(default_factory=list)
    inputs: tuple[int, ...] | None = None
    parameters: tuple[int, ...] | None = None
    results: list[int] = field(default_factory=list)
    structure: Structure | None = None
    names: dict[int, str] = field(default_factory=dict)
    observations: list[Observation] = field(default_factory=list)
    locations: list[Location] = field(default_factory=list)
    sources: dict[str, str] = field(default_factory=dict)
    defaults: dict[int, np.ndarray] = field(default_factory=dict)
    ranges: dict[int, tuple[int, int]] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)
    seal: str | None = None


def parse_tape(text: str, path: str = "<tape>") -> Tape:
    """Parses a text tape. The ops are not checked against their definitions: `ops.verify` does that.

    Raises:
        ConfigurationError: A line cannot be read, or the seal does not fit the text (TP505).
    """
    draft = _Draft()
    for number, line in enumerate(text.splitlines(), 1):
        cursor = Cursor(line, f"{path}:{number}")
        if cursor.done():
            continue
        _line(cursor, draft)
        if not cursor.done():
            raise cursor.error("end of line expected")
    if draft.structure is None:
        raise ConfigurationError(f"{path}: the tape returns nothing; add a line `return %N`", code="TP505")
    tape = _finish(draft)
    if draft.seal is not None and draft.seal != tape_digest(tape):
        message = f"{path}: the seal is {draft.seal[:12]}, the text has {tape_digest(tape)[:12]}; print the tape anew"
        raise ConfigurationError(message, code="TP505")
    return tape


def _finish(draft: _Draft) -> Tape:
    def named(name: str) -> tuple[int, ...]:
        return tuple(value for value, op in enumerate(draft.ops) if op.name == name)

    observations = draft.observations
    if not any(row.kind == "output" for row in observations):
        outputs = [Observation(value, "output", None, draft.ops[value].location) for value in draft.results]
        observations = outputs + observations
    assert draft.structure is not None
    return Tape(
        ops=tuple(draft.ops),
        inputs=named("input") if draft.inputs is None else draft.inputs,
        parameters=named("parameter") if draft.parameters is None else draft.parameters,
        results=tuple(draft.results),
        structure=draft.structure,
        names=draft.names,
        observations=tuple(observations),
        locations=tuple(draft.locations) or (Location(()),),
        sources=draft.sources,
        defaults=draft.defaults,
        ranges=draft.ranges,
        notes=tuple(draft.notes),
    )


def _line(cursor: Cursor, draft: _Draft) -> None:
    if cursor.accept(HEADER):
        return
    if found := cursor.take(_VALUE):
        _op(cursor, draft, int(found[1]))
        return
    if found := cursor.take(_ROW):
        if int(found[1]) != len(draft.locations):
            raise cursor.error(f"location @{len(draft.locations)} comes next")
        cursor.expect("=")
        draft.locations.append(_location(cursor))
        return
    match cursor.need(_NAME, "an op, a location or a directive")[0]:
        case "inputs":
            draft.inputs = _values(cursor, draft)
        case "parameters":
            draft.parameters = _values(cursor, draft)
        case "return":
            draft.structure = _structure(cursor, draft)
        case "observe":
            draft.observations.append(_observation(cursor, draft))
        case "range":
            value = _value(cursor, draft)
            low, high = (int(cursor.need(_INTEGER, "an integer")[0]) for _ in range(2))
            draft.ranges[value] = (low, high)
        case "note":
            code = cursor.need(_CODE, "a code")[0]
            draft.notes.append(Note(code, _value(cursor, draft), _string(cursor)))
        case "source":
            source = _string(cursor)
            draft.sources[source] = _string(cursor)
        case "default":
            value = _value(cursor, draft)
            snapshot = read(cursor)
            if not isinstance(snapshot, np.ndarray):
                raise cursor.error("an array expected")
            draft.defaults[value] = snapshot
        case "seal":
            draft.seal = cursor.need(_HEX, "a sha256")[0]
        case word:
            raise cursor.error(f"`{word}` is no directive")


def _op(cursor: Cursor, draft: _Draft, value: int) -> None:
    if value != len(draft.ops):
        raise cursor.error(f"value %{len(draft.ops)} comes next")
    if found := cursor.take(_STRING):
        draft.names[value] = json.loads(found[0])
    cursor.expect("=")
    name = cursor.need(_NAME, "an op's name")[0]
    cursor.expect("(")
    operands: list[int] = []
    while not cursor.accept(")"):
        operands.append(_value(cursor, draft))
        if not cursor.accept(","):
            cursor.expect(")")
            break
    attributes: dict[str, Any] = {}
    while found := cursor.take(_KEY):
        attributes[found[1]] = read(cursor)
    cursor.expect(":")
    result = read(cursor)
    if not isinstance(result, TensorType):
        raise cursor.error("a type such as f32[2,3] expected")
    if name in TYPED:
        attributes.setdefault("type", result)
    draft.ops.append(Op(name, tuple(operands), attributes, result, _row(cursor)))


def _value(cursor: Cursor, draft: _Draft) -> int:
    found = cursor.need(_VALUE, "a value such as %0")
    value = int(found[1])
    if value >= len(draft.ops):
        cursor.at = found.start()
        raise cursor.error(f"%{value} is not made before this line")
    return value


def _values(cursor: Cursor, draft: _Draft) -> tuple[int, ...]:
    values: list[int] = []
    while not cursor.done():
        values.append(_value(cursor, draft))
        if not cursor.accept(","):
            break
    return tuple(values)


def _row(cursor: Cursor) -> int:
    found = cursor.take(_ROW)
    return int(found[1]) if found else 0


def _string(cursor: Cursor) -> str:
    text: str = json.loads(cursor.need(_STRING, "a string")[0])
    return text


def _observation(cursor: Cursor, draft: _Draft) -> Observation:
    value = _value(cursor, draft)
    kind: Any = cursor.need(_NAME, "a kind of observation")[0]
    if kind not in get_args(ObservationKind):
        raise cursor.error(f"`{kind}` is none of {' '.join(get_args(ObservationKind))}")
    name = None if cursor.accept("none") else _string(cursor)
    location = _row(cursor)
    return Observation(value, kind, name, location, cursor.accept("assumed"))


def _structure(cursor: Cursor, draft: _Draft) -> Structure:
    """Reads nested results; leaves are numbered in the order in which they stand."""
    if cursor.accept("none"):
        return Structure("none")
    if cursor.accept("("):
        return Structure("tuple", _children(cursor, draft, ")"))
    if cursor.accept("["):
        return Structure("list", _children(cursor, draft, "]"))
    record = cursor.accept("record")
    if cursor.accept("{"):
        keys: list[str] = []
        children: list[Structure] = []
        while not cursor.accept("}"):
            keys.append(_string(cursor))
            cursor.expect(":")
            children.append(_structure(cursor, draft))
            if not cursor.accept(","):
                cursor.expect("}")
                break
        return Structure("record" if record else "dict", tuple(children), tuple(keys))
    draft.results.append(_value(cursor, draft))
    return Structure("leaf", index=len(draft.results) - 1)


def _children(cursor: Cursor, draft: _Draft, end: str) -> tuple[Structure, ...]:
    children: list[Structure] = []
    while not cursor.accept(end):
        children.append(_structure(cursor, draft))
        if not cursor.accept(","):
            cursor.expect(end)
            break
    return tuple(children)


def _location(cursor: Cursor) -> Location:
    frames: list[Frame] = []
    while not cursor.done() and not cursor.accept(";"):
        frames.append(_frame(cursor))
        cursor.accept("<")
    cursor.accept(";")
    scope: tuple[str, ...] = ()
    if cursor.accept("scope"):
        scope = read(cursor)
        if not isinstance(scope, tuple) or not all(isinstance(name, str) for name in scope):
            raise cursor.error("a tuple of strings expected")
    cursor.accept(";")
    return Location(tuple(frames), scope, _frame(cursor) if cursor.accept("built") else None)


def _frame(cursor: Cursor) -> Frame:
    kind: Any = cursor.need(_NAME, "a kind of frame")[0]
    if kind not in get_args(FrameKind):
        raise cursor.error(f"`{kind}` is none of {' '.join(get_args(FrameKind))}")
    function, path = _string(cursor), _string(cursor)
    line, column, end_line, end_column = map(int, cursor.need(_PLACE, "a span such as :1:0-1:9").groups())
    return Frame(Span(path, line, column, end_line, end_column), function, kind)
