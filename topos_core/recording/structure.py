"""How results nest: taken apart into leaves and described so that a run can build them again."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from topos_core.recording import constant
from topos_core.recording.recorder import Recorder
from topos_core.recording.value import Value
from topos_core.tape.tape import Structure


def flatten(recorder: Recorder, result: Any) -> tuple[Structure, list[Value]]:
    """Takes a function's results apart.

    Raises:
        RecordingError: A leaf is neither a recorded value, a number, an array nor None.
    """
    leaves: list[Value] = []
    return _describe(recorder, result, leaves, "the result"), leaves


def _describe(recorder: Recorder, result: Any, leaves: list[Value], path: str) -> Structure:
    if result is None:
        return Structure("none")
    if isinstance(result, (Value, np.ndarray, np.generic, bool, int, float)):
        value = constant.lift(recorder, result)
        if value.recorder is not recorder:
            raise recorder.foreign(value)
        leaves.append(value)
        return Structure("leaf", index=len(leaves) - 1)
    if dataclasses.is_dataclass(result) and not isinstance(result, type):
        fields = {field.name: getattr(result, field.name) for field in dataclasses.fields(result)}
        return _children(recorder, "record", fields, leaves, path)
    if isinstance(result, Mapping):
        return _children(recorder, "dict", {str(key): each for key, each in result.items()}, leaves, path)
    if isinstance(result, tuple) and hasattr(result, "_fields"):
        return _children(recorder, "record", dict(zip(result._fields, result, strict=True)), leaves, path)
    if isinstance(result, (tuple, list)):
        kind = "tuple" if isinstance(result, tuple) else "list"
        children = tuple(_describe(recorder, each, leaves, f"{path}[{at}]") for at, each in enumerate(result))
        return Structure(kind, children)  # type: ignore[arg-type]
    raise recorder.error(
        f"{path} is a {type(result).__name__}; return recorded values, arrays, numbers or None, in tuples, lists, dicts or dataclasses"
    )


def _children(recorder: Recorder, kind: Any, parts: Mapping[str, Any], leaves: list[Value], path: str) -> Structure:
    children = tuple(_describe(recorder, each, leaves, f"{path}[{key!r}]") for key, each in parts.items())
    return Structure(kind, children, tuple(parts))
