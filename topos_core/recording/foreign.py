"""Which function of another package the program called, where one of its values is asked for numbers deep inside."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Final, NamedTuple

from topos_core.recording.location import role_of

_NOT_FOREIGN: Final = ("topos_core", "numpy")


class Foreign(NamedTuple):
    """A function as its package offers it: `scipy.special`, `softmax`; the name is None where none is offered."""

    module: str
    name: str | None


def called(frame: FrameType | None) -> Foreign | None:
    """Finds the function of another package that the program called last; None where it is the program that asks, or NumPy.

    NumPy hands a value over as it is: what it asks for numbers is a list of values, or an index. Packages define functions in
    private modules and wrap them, so the name that counts is one that a public module has.
    """
    inside: list[FrameType] = []
    while frame is not None and role_of(frame.f_code) not in ("user", "boundary"):
        inside.append(frame)
        frame = frame.f_back
    modules = [(str(one.f_globals.get("__name__", "")), one.f_code.co_name) for one in reversed(inside)]
    foreign = [(module, name) for module, name in modules if module.partition(".")[0] not in _NOT_FOREIGN]
    for module, name in foreign:
        offered = None if name.startswith("_") else _offering(module, name)
        if offered is not None:
            return Foreign(offered, name)
    return Foreign(foreign[0][0].partition(".")[0], None) if foreign else None


def _offering(module: str, name: str) -> str | None:
    """Gives the outermost public package or module above a module that has a function of that name."""
    parts = module.split(".")
    for count in range(1, len(parts) + 1):
        if parts[count - 1].startswith("_"):
            return None
        path = ".".join(parts[:count])
        if callable(getattr(sys.modules.get(path), name, None)):
            return path
    return None
