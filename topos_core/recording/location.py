"""Where ops are recorded: exact expressions from CPython's `co_positions`, interned while recording, resolved at its end.

While a program is recorded, a place costs one walk over the stack: its key is `(id(code), f_lasti)` of every frame that is
kept, and the same key is the same row. Positions are read when the trace ends or an error asks. The code object is kept
alive and never hashed: hashing one hashes its constants.

CPython 3.12 moves `f_lasti` into an instruction's cache entries once it is specialised, so two keys can be one place;
rows are therefore made equal by position when they are resolved. Instructions without columns (`-X no_debug_ranges`)
fall back to their line.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from types import CodeType
from typing import Any, Final, Literal

import numpy as np

import topos_core
from topos_core.recording.source import SourceSnapshot
from topos_core.tape.span import Frame, FrameKind, Location, Span

Role = Literal["boundary", "internal", "library", "framework", "user"]

_TOPOS: Final = os.path.dirname(os.path.abspath(topos_core.__file__)) + os.sep
_INTERNAL: Final = (
    *(f"{_TOPOS}{part}{os.sep}" for part in ("recording", "ops", "tape")),
    os.path.dirname(np.__file__) + os.sep,
)
_LIBRARY: Final = f"{_TOPOS}nn{os.sep}"
_STANDARD: Final = sysconfig.get_paths()["stdlib"] + os.sep
_PACKAGES: Final = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")


def call_user(function: Callable[..., Any], arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """Calls the recorded function; no frame above this one belongs to the program."""
    return function(*arguments, **keywords)


def role_of(code: CodeType) -> Role:
    """Sorts a frame by its code: the recorder and NumPy are never shown, formulas and frameworks are passed through."""
    if code is call_user.__code__:
        return "boundary"
    path = code.co_filename
    if path.startswith(_INTERNAL):
        return "internal"
    if path.startswith(_LIBRARY):
        return "library"
    if path.startswith((_STANDARD, "<frozen ")) or any(part in path for part in _PACKAGES):
        return "framework"
    return "user"


@lru_cache(1 << 16)  # torch and transformers alone have more than 4,096 files, asked for at every recording
def role_of_path(path: str) -> FrameKind:
    """Sorts a frame of which only the file is known."""
    if path.startswith(_LIBRARY):
        return "library"
    return (
        "framework" if path.startswith((_STANDARD, "<frozen ")) or any(part in path for part in _PACKAGES) else "user"
    )


class _Code:
    """What one code object needs, worked out once."""

    __slots__ = ("_positions", "code", "kept", "role")

    def __init__(self, code: CodeType) -> None:
        self.code = code  # keeps id(code) ours
        self.role = role_of(code)
        self.kept = self.role not in ("boundary", "internal")
        self._positions: list[tuple[int | None, int | None, int | None, int | None]] | None = None

    def position(self, instruction: int) -> tuple[int | None, int | None, int | None, int | None]:
        """Gives (line, end line, column, end column) of the instruction at a byte offset, columns in bytes."""
        if self._positions is None:
            self._positions = list(self.code.co_positions())
        index = instruction // 2
        return self._positions[index] if 0 <= index < len(self._positions) else (None, None, None, None)


class Locator:
    """Interns places while a program is recorded. `here` is the whole cost of a span."""

    def __init__(self) -> None:
        self.entry: CodeType | None = None  # its frame, and what wraps it, are no scope
        self.scope_row = 0
        self.pinned: int | None = None
        self._codes: dict[int, _Code] = {}
        self._rows: dict[tuple[int, ...], int] = {}
        self._keys: list[tuple[int, ...] | Location] = []
        self._frames: dict[tuple[int, int], Frame] = {}
        self._scopes: list[tuple[tuple[str, int], ...]] = [()]

    def here(self) -> int:
        """Gives the row of the expression that is being run now."""
        if self.pinned is not None:
            return self.pinned
        codes = self._codes
        key = [self.scope_row]
        frame = sys._getframe(1)
        while frame is not None:
            code = frame.f_code
            info = codes.get(id(code))
            if info is None:
                info = codes[id(code)] = _Code(code)
            if info.kept:
                key.append(id(code))
                key.append(frame.f_lasti)
            elif info.role == "boundary":
                break
            frame = frame.f_back  # type: ignore[assignment]
        packed = tuple(key)
        found = self._rows.get(packed)
        if found is None:
            found = self._rows[packed] = len(self._keys)
            self._keys.append(packed)
        return found

    def add(self, location: Location) -> int:
        """Adds a place that no frame stands for (a parameter in a signature, a node of an imported graph)."""
        self._keys.append(location)
        return len(self._keys) - 1

    def depth(self) -> int:
        """Counts the user frames between the entry and here, the entry's included."""
        count = 0
        frame = sys._getframe(1)
        while frame is not None:
            code = frame.f_code
            info = self._codes.get(id(code))
            if info is None:
                info = self._codes[id(code)] = _Code(code)
            if info.role == "boundary":
                break
            count += info.role == "user"
            frame = frame.f_back  # type: ignore[assignment]
        return count

    def enter_scope(self, name: str) -> int:
        """Opens a named scope at the current depth; gives the row to restore when it closes."""
        before = self.scope_row
        self._scopes.append((*self._scopes[before], (name, self.depth())))
        self.scope_row = len(self._scopes) - 1
        return before

    def resolve_row(self, row: int, sources: SourceSnapshot) -> Location:
        """Turns a row into frames, spans and scope."""
        key = self._keys[row]
        if isinstance(key, Location):
            return key
        infos = [self._codes[each] for each in key[1::2]]
        frames = tuple(self._frame(info, at, sources) for info, at in zip(infos, key[2::2], strict=True))
        entries = [at for at, info in enumerate(infos) if info.code is self.entry]
        below = frames[: entries[-1] if entries else len(frames)]
        return Location(frames, _scope(frames, len(frames) - len(below), self._scopes[key[0]]))

    def _frame(self, info: _Code, instruction: int, sources: SourceSnapshot) -> Frame:
        """Resolves a frame once: most rows share their outer frames."""
        key = (id(info.code), instruction)
        frame = self._frames.get(key)
        if frame is None:
            frame = self._frames[key] = _frame(info, instruction, sources)
        return frame

    def resolve(self, sources: SourceSnapshot) -> tuple[tuple[Location, ...], list[int]]:
        """Resolves every row; gives the distinct locations and, for each row, its index among them."""
        distinct: dict[Location, int] = {}
        rows = [distinct.setdefault(self.resolve_row(row, sources), len(distinct)) for row in range(len(self._keys))]
        return tuple(distinct), rows


def frame_of(code: CodeType, instruction: int, sources: SourceSnapshot) -> Frame:
    """Gives the frame of an instruction outside a recording: of a traceback, or of a `return`."""
    return _frame(_Code(code), instruction, sources)


def _frame(info: _Code, instruction: int, sources: SourceSnapshot) -> Frame:
    code = info.code
    line, end_line, column, end_column = info.position(instruction)
    kind: FrameKind = info.role if info.role in ("user", "library") else "framework"
    return Frame(_span(code, line, end_line, column, end_column, sources), code.co_qualname, kind)


def _span(
    code: CodeType,
    line: int | None,
    end_line: int | None,
    column: int | None,
    end_column: int | None,
    sources: SourceSnapshot,
) -> Span:
    path = code.co_filename
    if not line:  # MAKE_CELL, COPY_FREE_VARS and their kin have no position at all
        line = code.co_firstlineno
        end_line = column = end_column = None
    if column is None or end_column is None:
        text = sources.line(path, line)
        return Span(path, line, len(text) - len(text.lstrip()), line, len(text.rstrip()))
    end_line = end_line or line
    return Span(
        path,
        line,
        sources.code_points(path, line, column),
        end_line,
        sources.code_points(path, end_line, end_column),
    )


def _scope(frames: Sequence[Frame], outer: int, opened: Sequence[tuple[str, int]]) -> tuple[str, ...]:
    """Merges function names below the entry with explicitly opened names, each at the depth where it was opened.

    `outer` counts the outermost frames that are no scope: the entry's and what wraps it.
    """
    names: list[str] = []
    rest = list(opened)
    depth = 0
    for at, frame in enumerate(reversed(frames)):
        if frame.kind != "user":
            continue
        depth += 1
        if at >= outer and depth > 1:
            named = _function_name(frame.function)
            if named:
                names.append(named)
        while rest and rest[0][1] <= depth:
            names.append(rest.pop(0)[0])
    return (*names, *(name for name, _ in rest))


def _function_name(qualified: str) -> str:
    """Shortens `make.<locals>.Block.__call__` to `Block`; lambdas and comprehensions have no name."""
    name = qualified.rpartition("<locals>.")[2].removesuffix(".__call__")
    return "" if name.startswith("<") else name
