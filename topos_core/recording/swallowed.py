"""Errors of the recorder that the recorded program caught: what it did instead is not what it does on arrays."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from topos_core.errors import RecordingError
from topos_core.recording.source import SourceSnapshot
from topos_core.tape.span import Location

_OURS: Final = frozenset(("RecordingError", "TraceError", "ToposError"))


def refuse_swallowed(error: RecordingError, location: Location, sources: SourceSnapshot) -> None:
    """Raises an error that `except Exception` caught: on arrays the code would not have gone the other way.

    A program that catches topos's errors by their names knows what it does.

    Raises:
        RecordingError: At the expression that could not be recorded.
    """
    if any(_named(sources.text(frame.span.path), frame.span.line) for frame in location.frames):
        return
    raise RecordingError(
        f"{error.message}; the function caught this error and went on, which it would not do on arrays:"
        " take the expression out of the `try`, or catch topos_core.errors.RecordingError by its name",
        span=error.span,
        related=error.related,
    ) from error


def _named(text: str, line: int) -> bool:
    """Tells whether a `try` or a `suppress` around a line catches topos's errors by their names."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return False  # no text, or no Python: nobody is seen to catch anything
    return any(
        _OURS & {name for each in caught for name in _names(each)}
        for node in ast.walk(tree)
        if isinstance(node, (ast.Try, ast.TryStar, ast.With, ast.AsyncWith))
        for caught in (list(_caught(node)),)
        if node.body[0].lineno <= line <= (node.body[-1].end_lineno or 0)
    )


def _caught(node: ast.Try | ast.TryStar | ast.With | ast.AsyncWith) -> Iterator[ast.expr]:
    if isinstance(node, (ast.With, ast.AsyncWith)):
        for item in node.items:
            yield item.context_expr
    else:
        for handler in node.handlers:
            if handler.type is not None:
                yield handler.type


def _names(expression: ast.expr) -> Iterator[str]:
    for node in ast.walk(expression):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
