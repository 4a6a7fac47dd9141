"""Where an operation stands: what its `loc` names, and its own line in the text."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from topos_core.recording.source import SourceSnapshot
from topos_core.tape.span import Frame, Location, Span


class Places:
    """Reads locations. A Python file that a location names is shown only where it lies in the project."""

    def __init__(self, path: str, root: str | None, sources: SourceSnapshot) -> None:
        self._path = path
        self._sources = sources
        folder = os.path.realpath(root or os.path.dirname(path)).rstrip(os.sep) + os.sep
        self._folder = folder
        self._readable: dict[str, bool] = {}

    def of(self, location: Any, around: Location) -> Location:
        """Gives a location's frames, innermost first; an operation without any stands where the call around it does."""
        frames = tuple(self._frames(location, 0))
        return Location(frames) if frames else around

    def shows(self, name: str) -> bool:
        """Tells whether a file that a location names is one of the project's, or the text itself."""
        return name == "-" or self._may_read(os.path.join(self._folder, name))

    def _frames(self, location: Any, depth: int) -> Iterator[Frame]:
        kind = type(location).__name__
        if depth > 64:
            return
        if kind == "CallSiteLoc":
            yield from self._frames(location.callee, depth + 1)
            yield from self._frames(location.caller, depth + 1)
        elif kind == "NameLoc":
            yield from self._frames(location.child_loc, depth + 1)
        elif kind == "FusedLoc":
            for each in list(location.locations)[:1]:
                yield from self._frames(each, depth + 1)
        elif kind == "FileLineColLoc":
            yield from self._frame(location)

    def _frame(self, location: Any) -> Iterator[Frame]:
        name = location.filename
        path = self._path if name == "-" else os.path.join(self._folder, name)
        if not self.shows(name):
            return
        line, column = max(location.start_line, 1), max(location.start_col - 1, 0)
        text = self._sources.line(path, line)
        end_line, end = max(location.end_line, line), location.end_col - 1
        if (end_line, end) <= (line, column):
            end_line, end = line, max(len(text.rstrip()), column)
        yield Frame(Span(path, line, column, end_line, end), "main", "user")

    def _may_read(self, path: str) -> bool:
        known = self._readable.get(path)
        if known is None:
            real = os.path.realpath(path)
            known = self._readable[path] = (
                path.endswith(".py") and real.startswith(self._folder) and os.path.isfile(real)
            )
        return known
