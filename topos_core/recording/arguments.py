"""From specs to placeholders: arguments in the function's order, containers rebuilt, everything else passed as it is."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from topos_core.errors import ConfigurationError
from topos_core.recording.recorder import Recorder
from topos_core.recording.spec import InputSpec, as_spec
from topos_core.recording.value import Value
from topos_core.tape.span import Location


def bind(function: Callable[..., Any], positional: tuple[Any, ...], named: Mapping[str, Any]) -> inspect.BoundArguments:
    """Puts specs in the order in which the function names its arguments.

    Raises:
        ConfigurationError: TP502: the function has other arguments.
    """
    shown = getattr(function, "__name__", type(function).__name__)
    if not callable(function):
        raise ConfigurationError(f"{shown} cannot be called; give a function, or an object with __call__", code="TP502")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # a C function without a signature
        kinds = [inspect.Parameter(f"argument{at}", inspect.Parameter.POSITIONAL_ONLY) for at in range(len(positional))]
        kinds += [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in named]
        signature = inspect.Signature(kinds)
    try:
        bound = signature.bind(*positional, **named)
    except TypeError as error:
        raise ConfigurationError(
            f"input specs do not fit {shown}{signature}: {error}; give one spec per argument", code="TP502"
        ) from None
    bound.arguments = {name: bound.arguments[name] for name in signature.parameters if name in bound.arguments}
    return bound


def place_inputs(
    recorder: Recorder,
    bound: inspect.BoundArguments,
    declared: Callable[[str], Location],
    dims: Mapping[str, int] | None,
) -> None:
    """Replaces every spec among the arguments by an input of the recorder, in order."""
    for name, given in bound.arguments.items():
        row = recorder.locator.add(declared(name))
        kind = bound.signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_KEYWORD:
            bound.arguments[name] = {key: _placed(recorder, each, key, row, dims) for key, each in given.items()}
        elif kind is inspect.Parameter.VAR_POSITIONAL:
            bound.arguments[name] = tuple(
                _placed(recorder, each, f"{name}.{at}", row, dims) for at, each in enumerate(given)
            )
        else:
            bound.arguments[name] = _placed(recorder, given, name, row, dims)


def _placed(recorder: Recorder, given: Any, path: str, row: int, dims: Mapping[str, int] | None) -> Any:
    spec = as_spec(given, dims)
    if spec is not None:
        return _input(recorder, spec, path, row)
    return _rebuilt(recorder, given, path, row)


def _rebuilt(recorder: Recorder, given: Any, path: str, row: int) -> Any:
    """Rebuilds containers that hold specs; a string inside a container is no spec."""
    if isinstance(given, InputSpec):
        return _input(recorder, given, path, row)
    if not _holds_spec(given):
        return given
    if isinstance(given, Mapping):
        return {key: _rebuilt(recorder, each, f"{path}.{key}", row) for key, each in given.items()}
    if isinstance(given, (tuple, list)):
        parts = [_rebuilt(recorder, each, f"{path}.{at}", row) for at, each in enumerate(given)]
        return type(given)(*parts) if hasattr(given, "_fields") else type(given)(parts)
    fields = {field.name: getattr(given, field.name) for field in dataclasses.fields(given)}
    return type(given)(**{key: _rebuilt(recorder, each, f"{path}.{key}", row) for key, each in fields.items()})


def _holds_spec(given: Any) -> bool:
    if isinstance(given, InputSpec):
        return True
    if isinstance(given, Mapping):
        return any(map(_holds_spec, given.values()))
    if isinstance(given, (tuple, list)):
        return any(map(_holds_spec, given))
    if dataclasses.is_dataclass(given) and not isinstance(given, type):
        return any(_holds_spec(getattr(given, field.name)) for field in dataclasses.fields(given))
    return False


def _input(recorder: Recorder, spec: InputSpec, name: str, row: int) -> Value:
    value = recorder.source("input", spec.type, row)
    recorder.inputs.append(value.index)
    recorder.names[value.index] = name
    if spec.below is not None:
        recorder.ranges[value.index] = (0, spec.below)
    return value
