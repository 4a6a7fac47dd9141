"""Where commands write: data to standard output, everything else to standard error, colour only on a terminal."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TextIO

from topos_core.document.formats.errors import error_lines, shown
from topos_core.errors import ToposError

_PROGRESS_AFTER_SECONDS: Final = 1.0
_PROGRESS_EVERY_SECONDS: Final = 0.1
_COLOURS: Final = {"error": "31", "warning": "33", "note": "36", "good": "32", "strong": "1", "faint": "2"}


@dataclass(slots=True)
class Terminal:
    """The streams of one command.

    Args:
        out: Takes data.
        err: Takes messages and progress.
        colour: Whether `out` shows colours; `err` decides for itself by the same rule.
    """

    out: TextIO
    err: TextIO
    colour: bool = False
    colour_errors: bool = False
    show_progress: bool = False
    _started: float = field(default_factory=time.monotonic)
    _drawn: float = 0.0
    _width: int = 0

    def data(self, text: str) -> None:
        """Writes text that was asked for, with a line end."""
        self.clear_progress()
        self.out.write(text if text.endswith("\n") else text + "\n")

    def message(self, text: str) -> None:
        """Writes a line for people."""
        self.clear_progress()
        self.err.write(text + "\n")

    def paint(self, text: str, colour: str) -> str:
        """Colours text for standard output."""
        return f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m" if self.colour else text

    def failure(self, error: Mapping[str, Any]) -> None:
        """Writes an `error` of a reply: the place, the message, and the end of what the code printed."""
        self.clear_progress()
        self.err.writelines(f"{line}\n" for line in error_lines(error, colour=self.colour_errors))

    def raised(self, error: ToposError) -> None:
        """Writes an error that topos raised in this process."""
        place: dict[str, Any] = error.span._asdict() if error.span is not None else {"path": None}
        self.failure({"code": error.code, "message": error.message, **place})

    def progress(self, title: str, done: int, total: int) -> None:
        """Draws a bar once the command has run for a second; `done` of `total` steps are behind it."""
        now = time.monotonic()
        if not self.show_progress or now - self._started < _PROGRESS_AFTER_SECONDS:
            return
        if now - self._drawn < _PROGRESS_EVERY_SECONDS and done < total:
            return
        filled = 20 * done // max(total, 1)
        text = f"[{'#' * filled}{'.' * (20 - filled)}] {done}/{total} {shown(title, 50)}"
        self.err.write("\r" + text.ljust(self._width))
        self.err.flush()
        self._drawn, self._width = now, len(text)

    def clear_progress(self) -> None:
        """Takes the bar away before something else is written."""
        if self._width:
            self.err.write("\r" + " " * self._width + "\r")
            self._width = 0


def open_terminal(environment: Mapping[str, str] | None = None) -> Terminal:
    """Makes the terminal of this process; NO_COLOR and dumb terminals get no colour."""
    variables = os.environ if environment is None else environment
    plain = bool(variables.get("NO_COLOR")) or variables.get("TERM") == "dumb"
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a path that the locale cannot show must not end the command
    return Terminal(
        sys.stdout,
        sys.stderr,
        colour=sys.stdout.isatty() and not plain,
        colour_errors=sys.stderr.isatty() and not plain,
        show_progress=sys.stderr.isatty(),
    )
