"""Blanks locations of other machines' files in a text: an operation without one stands on its own line of the text."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

# Strings and comments are stepped over, so that a bracket within one closes nothing.
_TOKEN: Final = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|(?P<loc>(?:(?P<alias>#\w+)\s*=\s*)?\bloc\s*\()|[()]')
_FILE: Final = re.compile(r'"((?:[^"\\\n]|\\.)*)"\s*:\s*\d')
_ALIAS: Final = re.compile(r'"(?:[^"\\\n]|\\.)*"|(#\w+)')


def without_foreign(text: str, readable: Callable[[str], bool]) -> str:
    """Blanks every location that names files of which none is `readable`; lines and columns stay where they are."""
    uses: list[tuple[int, int]] = []
    aliases: dict[str, str] = {}
    at = 0
    while (token := _TOKEN.search(text, at)) is not None:
        at = token.end()
        if token["loc"]:
            at = _closed(text, at)
            if token["alias"]:
                aliases[token["alias"]] = text[token.end() : at]
            else:
                uses.append((token.start(), at))
    parts, done = [], 0
    for start, end in uses:
        files = _files(text[start:end], aliases, set())
        if files and not any(map(readable, files)):
            parts += [text[done:start], re.sub(r"[^\n]", " ", text[start:end])]
            done = end
    return "".join((*parts, text[done:]))


def _closed(text: str, at: int) -> int:
    """Gives the place behind the bracket that closes the one before `at`, or the text's end."""
    depth = 1
    while depth and (token := _TOKEN.search(text, at)) is not None:
        at = token.end()
        depth += bool(token["loc"] or token[0] == "(") - (token[0] == ")")
    return len(text) if depth else at


def _files(location: str, aliases: dict[str, str], seen: set[str]) -> list[str]:
    found = _FILE.findall(location)
    for name in filter(None, _ALIAS.findall(location)):
        if name in aliases and name not in seen:
            seen.add(name)
            found += _files(aliases[name], aliases, seen)
    return found
