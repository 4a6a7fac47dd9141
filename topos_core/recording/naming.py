"""What the program calls a captured array: looked up once per parameter in the frames that are running."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import FrameType, FunctionType, ModuleType
from typing import Any, Final

import numpy as np

from topos_core.recording.location import role_of

_DEEPEST: Final = 4
_MOST: Final = 20_000


def name_for(array: np.ndarray, frame: FrameType | None) -> str | None:
    """Gives `w`, `encoder.w` or `layers.0.w`, from the outermost frame that holds the array; None where none does.

    Outer frames are asked first: the entry says `layers.0.weight` where the helper that it calls says `weight`. In one
    frame a local variable comes last: it may be the `each` of a loop over what has a name of its own.
    """
    frames: list[FrameType] = []
    while frame is not None:
        role = role_of(frame.f_code)
        if role == "boundary":
            break
        if role in ("user", "framework"):
            frames.append(frame)
        frame = frame.f_back
    owner = array
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    for each in reversed(frames):
        names = {**_mentioned(each), **each.f_locals}  # globals first: they name more than a local alias does
        found = _search(names, frozenset(each.f_code.co_varnames), array, owner)
        if found is not None:
            return found
    return None


def _mentioned(frame: FrameType) -> dict[str, Any]:
    """Gives the globals that the frame's code mentions."""
    return {name: frame.f_globals[name] for name in frame.f_code.co_names if name in frame.f_globals}


def _search(names: Mapping[str, Any], local: frozenset[str], array: np.ndarray, owner: np.ndarray) -> str | None:
    """Walks containers and objects breadth first: the shortest path wins, `self.` is left out."""
    level: list[tuple[str, Any]] = [(_without_self(name), held) for name, held in names.items()]
    seen: set[int] = set()
    variable: str | None = None
    for _ in range(_DEEPEST):
        below: list[tuple[str, Any]] = []
        for path, held in level:
            if held is array or held is owner or _same_memory(held, array):
                if path not in local:
                    return path
                variable = variable or path
            if id(held) in seen or len(seen) > _MOST:
                continue
            seen.add(id(held))
            below.extend(_children(path, held))
        level = below
    return variable


def _same_memory(held: Any, array: np.ndarray) -> bool:
    if not isinstance(held, np.ndarray) or held.size != array.size or held.base is None:
        return False
    return bool(held.__array_interface__["data"][0] == array.__array_interface__["data"][0])


def _without_self(name: str) -> str:
    return "" if name == "self" else name


def _children(path: str, held: Any) -> Iterator[tuple[str, Any]]:
    prefix = f"{path}." if path else ""
    if isinstance(held, Mapping):
        for key, child in held.items():
            if isinstance(key, (str, int)):
                yield f"{prefix}{key}", child
    elif isinstance(held, (list, tuple)):
        for at, child in enumerate(held):
            yield f"{prefix}{at}", child
    elif not isinstance(held, (np.ndarray, ModuleType, FunctionType, type)):
        attributes = getattr(held, "__dict__", None)
        if isinstance(attributes, dict):
            for key, child in attributes.items():
                if not key.startswith("__"):
                    yield f"{prefix}{key}", child
