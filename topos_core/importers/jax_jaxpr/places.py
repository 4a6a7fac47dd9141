"""Where an equation stands: the user's frames with lines and columns, and the scopes that JAX names.

Columns come from a private module of JAX (tested with 0.10); where it is missing or another, whole lines come from the text of
JAX's own tracebacks.
"""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any, Final

import topos_core
from topos_core.recording.location import role_of_path
from topos_core.recording.source import SourceSnapshot
from topos_core.tape.span import Frame, Location, Span

SOURCE_INFO: Final = "jax._src.source_info_util"
_LINE: Final = re.compile(r"^(?P<path>.+):(?P<line>\d+)(?::\d+)? \((?P<function>.*)\)$", re.MULTILINE)
_TOPOS: Final = os.path.dirname(os.path.abspath(topos_core.__file__)) + os.sep


class Places:
    """Reads JAX's source information; an equation without any stands where the call around it does."""

    def __init__(self, sources: SourceSnapshot) -> None:
        self._sources = sources
        self._frames: dict[Any, Frame] = {}
        self._user_frames_of = _reader()

    def of_equation(self, equation: Any, around: Location) -> Location:
        """Gives an equation's place."""
        frames = tuple(self._user_frames(equation.source_info.traceback))
        if not frames:
            return around
        names = [name for frame in frames[-2::-1] if frame.kind == "user" and (name := _short(frame.function))]
        stack = [part for part in str(equation.source_info.name_stack).split("/") if part and "(" not in part]
        return Location(frames, (*names, *stack))

    def _user_frames(self, traceback: Any) -> list[Frame]:
        """Lists the frames below the entry, innermost first."""
        found: list[Frame] = []
        if traceback is None:
            return found
        for frame in self._user_frames_of(traceback):
            if frame.file_name.startswith(_TOPOS):
                break
            found.append(self._frame(frame))
        return found

    def _frame(self, frame: Any) -> Frame:
        key = (
            frame.file_name,
            frame.function_name,
            frame.start_line,
            frame.start_column,
            frame.end_line,
            frame.end_column,
        )
        known = self._frames.get(key)
        if known is None:
            known = self._frames[key] = Frame(self._span(frame), frame.function_name, role_of_path(frame.file_name))
        return known

    def _span(self, frame: Any) -> Span:
        path, line, end_line = frame.file_name, frame.start_line, frame.end_line
        if not end_line or (frame.end_column <= 0 and end_line == line):  # no columns: the whole line
            text = self._sources.line(path, line)
            return Span(path, line, len(text) - len(text.lstrip()), line, len(text.rstrip()))
        return Span(
            path,
            line,
            self._sources.code_points(path, line, frame.start_column),
            end_line,
            self._sources.code_points(path, end_line, frame.end_column),
        )


def _reader() -> Callable[[Any], Iterable[Any]]:
    """Gives what lists the frames of a traceback that are not JAX's own, innermost first."""
    try:
        exact: Callable[[Any], Iterable[Any]] = importlib.import_module(SOURCE_INFO).user_frames
    except (ImportError, AttributeError):
        return _lines
    return exact


def _lines(traceback: Any) -> list[SimpleNamespace]:
    """Reads a traceback's text: files and lines without columns."""
    import jax

    own = os.path.dirname(os.path.dirname(os.path.abspath(jax.__file__))) + os.sep
    return [
        SimpleNamespace(
            file_name=found["path"], function_name=found["function"], start_line=int(found["line"]), start_column=0,
            end_line=0, end_column=0,
        )
        for found in _LINE.finditer(str(traceback))
        if not found["path"].startswith((own + "jax" + os.sep, own + "jaxlib" + os.sep, "<"))
    ]  # fmt: skip


def _short(function: str) -> str:
    name = function.rpartition("<locals>.")[2].removesuffix(".__call__")
    return "" if name.startswith("<") else name
