"""The marks of a text as JSON and back, for a scan in another process."""

from __future__ import annotations

import json
from dataclasses import astuple

from topos_core.errors import ConfigurationError, ToposError, TraceError
from topos_core.session.entries import Comment, Entry, Marks, find
from topos_core.tape.span import Span


def scanned(text: str, path: str) -> str:
    """Finds the marks of a text and writes them, or why there are none."""
    try:
        found = find(text, path)
    except ToposError as error:
        return json.dumps({"error": [error.message, error.code, error.span]})
    return json.dumps(
        {"entries": [astuple(e) for e in found.entries], "comments": [astuple(c) for c in found.comments]}
    )


def read(answer: str | bytes, path: str) -> Marks:
    """Reads what `scanned` wrote; nothing where its process died of the text.

    Raises:
        TraceError: TP403, the text does not parse.
        ConfigurationError: TP501, a comment that topos does not know.
    """
    if not answer:
        raise TraceError("the text is too long or too deep to be parsed", code="TP403", span=Span(path, 1, 0, 1, 1))
    found = json.loads(answer)
    if "error" in found:
        message, code, span = found["error"]
        kind = ConfigurationError if code.startswith("TP5") else TraceError
        raise kind(message, code=code, span=Span(*span))
    return Marks(
        tuple(
            Entry(name, kind, specs, Span(*span), Span(*mark), end_line)
            for name, kind, specs, span, mark, end_line in found["entries"]
        ),
        tuple(
            Comment(kind, tuple(names), text, Span(*span), line, Span(*removal))
            for kind, names, text, span, line, removal in found["comments"]
        ),
    )
