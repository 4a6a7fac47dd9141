"""A tape as text. `tape.parse` reads it back: the two lose nothing.

    topos.tape/1
    %0 "image" = input() : f32[1,1,6,6] @0
    %1 = unfold(%0) axis=2 size=3 step=1 dilation=1 : f32[1,1,4,6,3] @1
    return (%1,)
    observe %1 output "" @2
    @0 =
    @1 = user "main" "model.py":12:4-12:40 < framework "Block" "net.py":3:0-3:9; scope ("encoder", "layer0")
    @2 = user "forward" "model.py":9:8-9:20; scope ("conv",); built user "__init__" "model.py":5:20-5:38
    seal 5f0c...

`inputs` and `parameters` lines stand only where their order is not that of the ops. The attribute `type` of a source is
left out where it is the op's own type. A hand-written text needs no header, locations, output observations or seal.
`#` starts a comment.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from topos_core.digest import tape_digest
from topos_core.tape.literal import write
from topos_core.tape.op import Op
from topos_core.tape.span import Frame, Location
from topos_core.tape.tape import Structure, Tape

HEADER: Final = "topos.tape/1"

TYPED: Final = frozenset({"input", "parameter", "constant", "iota", "pick"})
"""Ops whose attribute `type` is the op's own type."""


def tape_text(tape: Tape, *, locations: bool = True, sources: bool = True, defaults: bool = True) -> str:
    """Prints a tape. Without locations, sources or defaults (parameter snapshots) it is shorter and tells less."""
    return "\n".join(_lines(tape, locations=locations, sources=sources, defaults=defaults)) + "\n"


def _lines(tape: Tape, *, locations: bool, sources: bool, defaults: bool) -> Iterator[str]:
    yield HEADER
    for value, op in enumerate(tape.ops):
        name = f" {json.dumps(tape.names[value])}" if value in tape.names else ""
        yield f"%{value}{name} = {op_text(op)}" + (f" @{op.location}" if locations else "")
    for word, values in (("input", tape.inputs), ("parameter", tape.parameters)):
        if values != tuple(value for value, op in enumerate(tape.ops) if op.name == word):
            yield f"{word}s {', '.join(f'%{value}' for value in values)}"
    yield f"return {_structure(tape.structure, tape.results)}"
    for row in tape.observations:
        name = "none" if row.name is None else json.dumps(row.name)
        place = f" @{row.location}" if locations else ""
        yield f"observe %{row.value} {row.kind} {name}{place}{' assumed' if row.assumed else ''}"
    for value, (low, high) in tape.ranges.items():
        yield f"range %{value} {low} {high}"
    for note in tape.notes:
        yield f"note {note.code} %{note.value} {json.dumps(note.message)}"
    if locations:
        for row_number, location in enumerate(tape.locations):
            yield f"@{row_number} = {_location(location)}".rstrip()
    if sources:
        for path, text in tape.sources.items():
            yield f"source {json.dumps(path)} {json.dumps(text)}"
    if defaults:
        for value, array in tape.defaults.items():
            yield f"default %{value} {write(array)}"
    yield f"seal {tape_digest(tape)}"


def op_text(op: Op) -> str:
    """Prints one op without its number and location."""
    operands = ", ".join(f"%{operand}" for operand in op.operands)
    attributes = "".join(
        f" {key}={write(value)}"
        for key, value in op.attributes.items()
        if not (key == "type" and op.name in TYPED and value == op.type)
    )
    return f"{op.name}({operands}){attributes} : {op.type}"


def _structure(structure: Structure, results: tuple[int, ...]) -> str:
    children = [_structure(child, results) for child in structure.children]
    match structure.kind:
        case "leaf":
            return f"%{results[structure.index]}"
        case "none":
            return "none"
        case "tuple":
            return f"({', '.join(children)}{',' if len(children) == 1 else ''})"
        case "list":
            return f"[{', '.join(children)}]"
        case "dict" | "record":
            pairs = [f"{json.dumps(key)}: {child}" for key, child in zip(structure.keys, children, strict=True)]
            return ("record" if structure.kind == "record" else "") + "{" + ", ".join(pairs) + "}"


def _location(location: Location) -> str:
    frames = " < ".join(map(_frame, location.frames))
    scope = f"; scope {write(location.scope)}" if location.scope else ""
    return frames + scope + (f"; built {_frame(location.built)}" if location.built is not None else "")


def _frame(frame: Frame) -> str:
    span = frame.span
    where = f"{span.line}:{span.column}-{span.end_line}:{span.end_column}"
    return f"{frame.kind} {json.dumps(frame.function)} {json.dumps(span.path)}:{where}"
