"""A module's text becomes a tape: its `main`, else its only public function."""

from __future__ import annotations

import os
from typing import Any, Final

from topos_core.errors import ConfigurationError, TraceError
from topos_core.importers.stablehlo_text.foreign import without_foreign
from topos_core.importers.stablehlo_text.places import Places
from topos_core.importers.stablehlo_text.types import type_of
from topos_core.importers.stablehlo_text.walk import Walk
from topos_core.recording.collector import collector_paused
from topos_core.recording.finish import finish
from topos_core.recording.recorder import Recorder, recording
from topos_core.recording.value import Value
from topos_core.tape.span import Location
from topos_core.tape.tape import Structure, Tape

_MAX_BYTES: Final = 2**28


def record_stablehlo(path: str, *, root: str | None = None) -> Tape:
    """Reads a module's file.

    Raises:
        ConfigurationError: TP505, it is too long or no text.
        TraceError: TP409, jaxlib is missing; TP402, the parser refuses it; TP209, an argument has an open extent.
    """
    size = os.path.getsize(path)
    if size > _MAX_BYTES:
        raise ConfigurationError(f"{os.path.basename(path)} has {size} bytes, topos reads {_MAX_BYTES}", code="TP505")
    try:
        with open(path, encoding="utf-8", newline="") as stream:
            text = stream.read()
    except UnicodeDecodeError:
        raise ConfigurationError(
            f"{os.path.basename(path)} is no text; write the module as text", code="TP505"
        ) from None
    return record_text(text, path, root=root)


def record_text(text: str, path: str, *, root: str | None = None) -> Tape:
    """Does what `record_stablehlo` does, for a text that was read already."""
    recorder = Recorder({path: text})
    places = Places(path, root, recorder.sources)
    module = parse_module(without_foreign(text, places.shows), path)
    functions = functions_of(module)
    name = _entry(functions, os.path.basename(path))
    walk = Walk(recorder, places, functions)
    with collector_paused(), recording(recorder):
        operands = [
            _input(walk, argument, at) for at, argument in enumerate(functions[name].regions[0].blocks[0].arguments)
        ]
        leaves = walk.function(name, operands, Location(()))
        children = tuple(Structure("leaf", index=at) for at in range(len(leaves)))
        return finish(recorder, children[0] if len(children) == 1 else Structure("tuple", children), leaves)


def functions_of(module: Any) -> dict[str, Any]:
    """Gives a module's functions by name."""
    return {
        each.operation.attributes["sym_name"].value: each.operation
        for each in module.body.operations
        if each.operation.name == "func.func"
    }


def parse_module(text: str, path: str) -> Any:
    """Parses a text with the official parser.

    Raises:
        TraceError: TP409, jaxlib is missing; TP402, the parser refuses it.
    """
    try:
        from jaxlib.mlir import ir
        from jaxlib.mlir._mlir_libs import _jax_mlir_ext
        from jaxlib.mlir.dialects import chlo, stablehlo
    except ImportError:
        raise TraceError(
            "reading a .mlir file needs the official parser in jaxlib; pip install 'topos-inspector[jax]'", code="TP409"
        ) from None
    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    context = ir.Context()
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    stablehlo.register_dialect(context)
    chlo.register_dialect(context)
    try:
        with context, ir.Location.unknown():
            return ir.Module.parse(text)
    except ir.MLIRError as error:
        said = next((line for line in str(error).splitlines() if "error" in line), str(error))
        raise TraceError(f"{os.path.basename(path)} is no StableHLO module: {said.strip()}", code="TP402") from None


def _entry(functions: dict[str, Any], file: str) -> str:
    if "main" in functions:
        return "main"
    public = [
        name
        for name, each in functions.items()
        if "sym_visibility" not in each.attributes or each.attributes["sym_visibility"].value == "public"
    ]
    if len(public) != 1:
        listed = ", ".join(public) or "none"
        raise TraceError(
            f"{file} has no function main and its public functions are {listed}; name one main", code="TP402"
        )
    return public[0]


def _input(walk: Walk, argument: Any, at: int) -> Value:
    recorder = walk.recorder
    kind = type_of(argument.type)
    if kind is None and "?" not in str(argument.type):
        raise TraceError(f"argument {at} is {argument.type}, a type that topos does not have", code="TP402")
    if kind is None:
        raise TraceError(
            f"unknown extent: argument {at} is {argument.type}; specialise the module for fixed extents", code="TP209"
        )
    value = recorder.source("input", kind, recorder.locator.add(walk.places.of(argument.location, Location(()))))
    recorder.inputs.append(value.index)
    location = argument.location
    named = type(location).__name__ == "NameLoc" and location.name_str
    taken = set(recorder.names.values())
    recorder.names[value.index] = named if named and named not in taken else f"argument{at}"
    return value
