"""Where things stand, and what people call them: relative paths, spans, names and short expressions of values."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from functools import cached_property
from pathlib import PurePath
from typing import Final

import topos_core
from topos_core.document.display import display
from topos_core.tape.span import Span
from topos_core.tape.tape import Tape

_PACKAGE: Final = PurePath(topos_core.__file__).parent.parent.as_posix() + "/"
_INSTALLED: Final = re.compile(r".*/(?:site|dist)-packages/")
_LINE_END: Final = re.compile(r"\r\n|\r|\n")
_NAME: Final = re.compile(r"[^\W\d]\w*(\.\w+|\[\w+\])*")  # attributes and simple subscripts
_LONGEST: Final = 40  # a longer expression is called by its op


def relative_path(path: str, root: str | None) -> str:
    """Gives a path as documents show it: relative to the project, to the installed packages, or to topos itself.

    Nothing is read from disk; a path outside of all three stays as it is. Forward slashes everywhere.
    """
    text = PurePath(path).as_posix() if "\\" not in path else path.replace("\\", "/")
    if root is not None:
        folder = PurePath(root).as_posix().rstrip("/") + "/"
        if text.startswith(folder):
            return display(text[len(folder) :])
    installed = _INSTALLED.match(text)
    if installed is not None:
        return display(text[installed.end() :])
    if text.startswith(_PACKAGE + "topos_core/"):
        return display(text[len(_PACKAGE) :])
    return display(text)


def split_lines(text: str) -> list[str]:
    """Splits source as Python and editors count lines: form feeds and U+2028 end none."""
    return _LINE_END.split(text)


def written(place: Span) -> str:
    """Writes a place for people: `path:line:column`, both from 1."""
    return f"{place.path}:{place.line}:{place.column + 1}"


def _called(text: str) -> str | None:
    """Names the function that an expression calls; of one whose own name is long, or that is worked out, its last part."""
    try:
        call = ast.parse(f"({text})", mode="eval").body
    except (SyntaxError, ValueError):  # half an expression, where Python tells no more of a place
        return None
    if not isinstance(call, ast.Call):
        return None
    name = ast.unparse(call.func)
    if len(name) <= _LONGEST and _NAME.fullmatch(name):
        return name
    return call.func.attr if isinstance(call.func, ast.Attribute) else None


class Places:
    """Answers where a tape's values and readers stand, in display-ready form. One per document; remembers what it worked out."""

    def __init__(self, tape: Tape, root: str | None = None) -> None:
        self.tape = tape
        self.root = root
        self._paths: dict[str, str] = {}
        self._spans: dict[int, Span] = {}
        self._functions: dict[int, str | None] = {}

    def path(self, path: str) -> str:
        """Gives the path that the document shows."""
        known = self._paths.get(path)
        if known is None:
            known = self._paths[path] = relative_path(path, self.root)
        return known

    def location(self, row: int) -> Span:
        """Gives the span that a location is shown at."""
        span = self._spans.get(row)
        if span is None:
            raw = self.tape.locations[row].span
            span = self._spans[row] = raw._replace(path=self.path(raw.path))
        return span

    def value(self, value: int) -> Span:
        """Gives the span at which a value was made."""
        return self.location(self.tape.ops[value].location)

    def modules(self, values: Iterable[int]) -> list[tuple[str, Span]]:
        """Lists the modules in which values were made, each with its constructor's call, where that was seen."""
        found: dict[Span, str] = {}
        for value in values:
            place = self.tape.location_of(value)
            if place.built is not None:
                span = place.built.span
                found.setdefault(span._replace(path=self.path(span.path)), display(".".join(place.scope)))
        return [(name, span) for span, name in found.items()]

    def expression(self, row: int) -> str | None:
        """Gives the source text of a location's expression where it is short and stands on one line."""
        text = self._text(row).strip()
        return display(text) if "\n" not in text and 0 < len(text) <= _LONGEST else None

    def _text(self, row: int) -> str:
        """Gives the source text of a location's expression, lines by line feeds; nothing where it is not there."""
        span = self.tape.locations[row].span
        lines = self._lines.get(span.path)
        if lines is None or not 1 <= span.line <= span.end_line <= len(lines):
            return ""
        if span.line == span.end_line:
            return lines[span.line - 1][span.column : span.end_column]
        inner = lines[span.line : span.end_line - 1]
        return "\n".join((lines[span.line - 1][span.column :], *inner, lines[span.end_line - 1][: span.end_column]))

    def called(self, value: int) -> str:
        """Gives what a person calls a value: its name, else its expression, else its op."""
        name = self.tape.names.get(value)
        if name:
            return f"`{display(name)}`"
        op = self.tape.ops[value]
        text = self.expression(op.location)
        if text:
            return f"`{text}`"
        function = self.function(op.location)
        name = f"`{function}`" if function else f"the {display(op.name)}"
        return f"{name} at {written(self.value(value))}"

    def op(self, value: int) -> str:
        """Gives what a person calls an op: the function that the program calls there, else the op's own name."""
        op = self.tape.ops[value]
        return f"`{self.function(op.location) or display(op.name)}`"

    def function(self, row: int) -> str | None:
        """Names the function that a location's expression calls, as the program writes it: `torch.relu`, `self.act`, `mean`."""
        if row not in self._functions:
            called = _called(self._text(row))
            self._functions[row] = display(called) if called is not None else None
        return self._functions[row]

    @cached_property
    def _lines(self) -> dict[str, list[str]]:
        return {path: split_lines(text) for path, text in self.tape.sources.items()}
