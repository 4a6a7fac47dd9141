"""What the program calls a captured array: looked up in the frames that are running when it is first used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import FrameType, FunctionType, ModuleType
from typing import Any, Final

import numpy as np

from topos_core.recording.location import role_of

_DEEPEST: Final = 8
_MOST: Final = 50_000

Memory = tuple[int, int]
"""Address and bytes: equal for an array and its whole views."""


class Namer:
    """Gives `w`, `encoder.w` or `layers.0.w` to arrays; one for each recording.

    Outer frames are asked first: the entry says `layers.0.weight` where the helper that it calls says `weight`. In one
    frame globals and closures come first, and a plain local variable last: it may be the `each` of a loop over what has a
    name of its own. Every container is walked once, so that naming all parameters is linear in what there is.
    """

    def __init__(self) -> None:
        self._paths: dict[Memory, str] = {}
        self._seen: dict[int, Any] = {}  # containers and arrays by id; kept, so their ids and addresses stay theirs

    def name_for(self, array: np.ndarray, owner: np.ndarray, frame: FrameType | None) -> str | None:
        """Gives a name for an array, or for the array that owns its memory; None where no frame reaches it."""
        wanted = (_memory(array), _memory(owner))
        variable: str | None = None
        for each in reversed(_program_frames(frame)):
            local = _variables(each)
            held = each.f_locals
            self._walk({**_mentioned(each), **{name: held[name] for name in held if name not in local}}, local)
            self._walk({name: held[name] for name in held if name in local}, local)
            for memory in wanted:
                if memory in self._paths:
                    return self._paths[memory]
            variable = variable or next((name for name in local if _holds(held.get(name), wanted)), None)
        return variable

    def _walk(self, names: Mapping[str, Any], variables: frozenset[str]) -> None:
        """Notes the arrays that containers and objects lead to, breadth first: the shortest path wins."""
        level = [("" if name == "self" else name, held) for name, held in names.items()]
        for depth in range(_DEEPEST):
            below: list[tuple[str, Any]] = []
            for path, held in level:
                if isinstance(held, np.ndarray):
                    if path and not (depth == 0 and path in variables):
                        self._seen[id(held)] = held
                        self._paths.setdefault(_memory(held), path)
                elif id(held) not in self._seen and len(self._seen) < _MOST:
                    children = list(_children(path, held))
                    if children:
                        self._seen[id(held)] = held
                        below.extend(children)
            level = below


def _program_frames(frame: FrameType | None) -> list[FrameType]:
    """Lists the frames of the program, innermost first; the recorder's and NumPy's are left out."""
    frames: list[FrameType] = []
    while frame is not None:
        role = role_of(frame.f_code)
        if role == "boundary":
            break
        if role in ("user", "framework"):
            frames.append(frame)
        frame = frame.f_back
    return frames


def _variables(frame: FrameType) -> frozenset[str]:
    return frozenset(frame.f_code.co_varnames) - {"self"}


def _mentioned(frame: FrameType) -> dict[str, Any]:
    """Gives the globals that the frame's code mentions."""
    return {name: frame.f_globals[name] for name in frame.f_code.co_names if name in frame.f_globals}


def _holds(held: Any, wanted: tuple[Memory, ...]) -> bool:
    return isinstance(held, np.ndarray) and _memory(held) in wanted


def _memory(array: np.ndarray) -> Memory:
    return array.__array_interface__["data"][0], array.nbytes


def _children(path: str, held: Any) -> Iterator[tuple[str, Any]]:
    prefix = f"{path}." if path else ""
    if isinstance(held, Mapping):
        for key, child in held.items():
            if isinstance(key, (str, int)):
                yield f"{prefix}{key}", child
    elif isinstance(held, (list, tuple)):
        for at, child in enumerate(held):
            yield f"{prefix}{at}", child
    elif not isinstance(held, (ModuleType, FunctionType, type)):
        attributes = getattr(held, "__dict__", None)
        if isinstance(attributes, dict):
            for key, child in attributes.items():
                if not key.startswith("__"):
                    yield f"{prefix}{key}", child
