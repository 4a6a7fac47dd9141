"""A function of JAX becomes a tape: traced by `make_jaxpr` over its specs, no data needed."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np

from topos_core.errors import ConfigurationError
from topos_core.importers.jax_jaxpr.places import Places
from topos_core.importers.jax_jaxpr.walk import Walk
from topos_core.recording.arguments import bind, place_inputs
from topos_core.recording.collector import collector_paused
from topos_core.recording.finish import finish
from topos_core.recording.model import entry_of
from topos_core.recording.randomness import RandomStates, generators_noted
from topos_core.recording.recorder import Recorder, recording
from topos_core.recording.signature import arguments_of, code_of
from topos_core.recording.structure import flatten
from topos_core.recording.trace import guarded
from topos_core.recording.value import Value
from topos_core.tape.span import Location
from topos_core.tape.tape import Tape
from topos_core.tape.type import TensorType, dtype_name


def record_jax(
    found: Any,
    positional: tuple[Any, ...] = (),
    named: Mapping[str, Any] | None = None,
    *,
    sources: Mapping[str, str] | None = None,
    dims: Mapping[str, int] | None = None,
) -> Tape:
    """Records a function, or an object that can be called; arguments as in `recording.trace.record`.

    Raises:
        TraceError: TP402: the function raised, or asked for a number that only a run knows.
        ConfigurationError: TP502: specs do not fit, or a 64-bit one without `jax_enable_x64`.
    """
    import jax

    named = dict(named or {})
    entry = entry_of(found)
    if entry is not None and not positional and not named:
        positional, named = entry.positional, dict(entry.specs)
    recorder = Recorder(sources)
    function = guarded(recorder, found, (), {}) if isinstance(found, type) else found
    bound = bind(function, positional, named)
    code = recorder.locator.entry = code_of(function)
    with collector_paused(), recording(recorder):
        place_inputs(recorder, bound, arguments_of(code, recorder.sources), dims)
        inputs = [Value(recorder, value, recorder.ops[value].type) for value in recorder.inputs]
        at = {value.index: number for number, value in enumerate(inputs)}

        def call(*arrays: Any) -> Any:
            filled = {name: _filled(given, arrays, at) for name, given in bound.arguments.items()}
            again = _with_arguments(bound, filled)
            return function(*again.args, **again.kwargs)

        structs = [jax.ShapeDtypeStruct(value.shape, value.dtype) for value in inputs]
        recorder.random = RandomStates(inspect.unwrap(function))
        with generators_noted(recorder.random):
            closed, shapes = guarded(recorder, jax.make_jaxpr(call, return_shape=True), tuple(structs), {})
        _check_width(recorder, inputs, closed)
        around = Location((), ()) if not inputs else recorder.place(inputs[0])
        leaves = Walk(recorder, Places(recorder.sources)).closed(closed, inputs, around)
        result = jax.tree_util.tree_unflatten(jax.tree_util.tree_structure(shapes), leaves)
        structure, values = flatten(recorder, result)
        recorder.note_last_draws(values)
        return finish(recorder, structure, values, code)


def _with_arguments(bound: Any, arguments: Mapping[str, Any]) -> Any:
    """Gives bound arguments with other values; the signature's own are left as they are."""
    return type(bound)(bound.signature, dict(arguments))


def _filled(given: Any, arrays: tuple[Any, ...], at: Mapping[int, int]) -> Any:
    """Puts JAX's own values where inputs were placed."""
    if isinstance(given, Value):
        return arrays[at[given.index]]
    if isinstance(given, Mapping):
        return {key: _filled(each, arrays, at) for key, each in given.items()}
    if isinstance(given, (tuple, list)):
        parts = [_filled(each, arrays, at) for each in given]
        return type(given)(*parts) if hasattr(given, "_fields") else type(given)(parts)
    if dataclasses.is_dataclass(given) and not isinstance(given, type):
        fields = {field.name: getattr(given, field.name) for field in dataclasses.fields(given)}
        if any(isinstance(each, (Value, Mapping, tuple, list)) for each in fields.values()):
            return dataclasses.replace(given, **{name: _filled(each, arrays, at) for name, each in fields.items()})
    return given


def _check_width(recorder: Recorder, inputs: list[Value], closed: Any) -> None:
    for value, aval in zip(inputs, closed.in_avals, strict=True):
        seen = TensorType(dtype_name(np.dtype(aval.dtype)) or "", tuple(aval.shape))
        if seen != value.type:
            name = recorder.names[value.index]
            raise ConfigurationError(
                f"input {name} is {value.type}, JAX makes it {seen}; write {seen.dtype}, or set jax_enable_x64",
                code="TP502",
            )
