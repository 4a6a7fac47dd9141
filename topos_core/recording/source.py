"""Source text as it was when a trace ended, and the way from CPython's UTF-8 byte columns to code points."""

from __future__ import annotations

import io
import linecache
from collections.abc import Mapping


class SourceSnapshot:
    """Reads every file once.

    `given` holds texts that take precedence over files: an editor's unsaved buffers, by the path they were compiled as.
    """

    def __init__(self, given: Mapping[str, str] | None = None) -> None:
        self._lines: dict[str, list[str]] = {
            # as Python counts lines: a form feed or U+2028 ends none
            path: io.StringIO(text, newline="").readlines()
            for path, text in (given or {}).items()
        }

    def lines(self, path: str) -> list[str]:
        """Gives a file's lines with their ends; none where its text cannot be had (`<string>`, a removed file)."""
        found = self._lines.get(path)
        if found is None:
            linecache.checkcache(path)  # the file may have been edited since somebody last asked for it
            found = self._lines[path] = linecache.getlines(path)
        return found

    def line(self, path: str, number: int) -> str:
        """Gives line `number`, counted from 1, without its end."""
        lines = self.lines(path)
        return lines[number - 1].rstrip("\r\n") if 0 < number <= len(lines) else ""

    def text(self, path: str) -> str:
        """Gives a file's whole text; empty where it cannot be had."""
        return "".join(self.lines(path))

    def code_points(self, path: str, number: int, byte_column: int) -> int:
        """Turns a UTF-8 byte column of a line into a column in code points."""
        line = self.line(path, number)
        if line.isascii():
            return byte_column
        return len(line.encode()[:byte_column].decode(errors="replace"))
