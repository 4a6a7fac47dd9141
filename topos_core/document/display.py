"""The one door through which text from outside enters a document: op names, scopes, source, user output."""

from __future__ import annotations

import unicodedata
from typing import Final

_NAMED: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
# Cc control, Cf format (bidi marks, zero-width), Cs surrogates, Co private use, Cn unassigned, Zl and Zp line breaks.
_ESCAPED_CATEGORIES: Final = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))
LIMIT: Final = 2000


def display(text: str, limit: int = LIMIT) -> str:
    """Escapes what could forge, hide or reorder output, and cuts text longer than `limit` code points.

    Control characters, bidi and zero-width marks, line and paragraph separators and lone surrogates become
    backslash escapes; a backslash is doubled only where the text holds something escaped, so paths stay readable.
    """
    cut = len(text) > limit
    if cut:
        text = text[:limit]
    if text.isascii() and text.isprintable():
        return text + "…" if cut else text
    if any(_hidden(c) for c in text):
        text = "".join(_escape(c) if _hidden(c) else "\\\\" if c == "\\" else c for c in text)
    return text + "…" if cut else text


def _hidden(character: str) -> bool:
    return unicodedata.category(character) in _ESCAPED_CATEGORIES


def _escape(character: str) -> str:
    code = ord(character)
    return _NAMED.get(character) or (
        f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
    )
