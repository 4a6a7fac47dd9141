"""Sentences of a document as Markdown or as plain text. What people wrote themselves cannot become links, images or HTML."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from lsprotocol import types as lsp

_SPECIAL: Final = re.compile(r"([\\`*\[\]<]|(?<!\w)_|_(?!\w))")  # few, since some editors show the backslashes
_SCHEMES: Final = re.compile(r"(https?|www)(?=[:.])", re.IGNORECASE)


def escape(sentence: str) -> str:
    """Escapes a sentence; what stands between backticks becomes code, as long as there are pairs of them."""
    parts = sentence.split("`")
    if len(parts) % 2 == 0:
        return _plain(sentence)
    return "".join(f"`{part}`" if k % 2 and part else _plain(part) for k, part in enumerate(parts))


def bold_verdict(sentence: str) -> str:
    """Escapes a sentence and sets the verdict before its first colon in bold."""
    verdict, colon, rest = sentence.partition(":")
    return f"**{escape(verdict)}**{colon}{escape(rest)}" if colon else escape(sentence)


def content(blocks: Iterable[Iterable[str]], kind: lsp.MarkupKind) -> lsp.MarkupContent:
    """Joins blocks of lines that `escape` or its kin made; a rule stands between blocks."""
    if kind == lsp.MarkupKind.Markdown:
        return lsp.MarkupContent(kind=kind, value="\n\n---\n\n".join("  \n".join(block) for block in blocks))
    return lsp.MarkupContent(kind=kind, value="\n\n".join("\n".join(block) for block in blocks))


def _plain(text: str) -> str:
    return _SCHEMES.sub(lambda match: f"{match[0]}\u200b", _SPECIAL.sub(r"\\\1", text))
