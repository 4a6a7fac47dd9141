"""Where an equation stands: the user's frames with lines and columns, and the scopes that JAX names."""

from __future__ import annotations

import os
from typing import Any, Final

import topos_core
from topos_core.recording.location import role_of_path
from topos_core.recording.source import SourceSnapshot
from topos_core.tape.span import Frame, Location, Span

_TOPOS: Final = os.path.dirname(os.path.abspath(topos_core.__file__)) + os.sep


class Places:
    """Reads JAX's source information; an equation without any stands where the call around it does."""

    def __init__(self, sources: SourceSnapshot) -> None:
        self._sources = sources
        self._frames: dict[Any, Frame] = {}

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
        from jax._src import source_info_util

        found: list[Frame] = []
        if traceback is None:
            return found
        for frame in source_info_util.user_frames(traceback):
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


def _short(function: str) -> str:
    name = function.rpartition("<locals>.")[2].removesuffix(".__call__")
    return "" if name.startswith("<") else name
