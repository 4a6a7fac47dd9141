"""Writes an `error` of a reply for a terminal: the place, the message, related places, and what was printed last."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, Final

from topos_core.document.display import display

_PRINTED: Final = (
    "TP402",
    "TP405",
    "TP406",
    "TP407",
)  # where the code stopped: what it printed last says how far it got


def error_lines(error: Mapping[str, Any], *, colour: bool) -> list[str]:
    """Writes an `error` of a reply: the place, the message, related places, and the end of what was printed."""
    head = f"error[{error['code']}]"
    head = f"\x1b[31m{head}\x1b[0m" if colour else head
    place = f"{place_of(error)}: " if error.get("path") else ""
    lines = [from_here(f"{place}{head}: {shown(error['message'])}")]
    for related in error.get("related", ()):
        if related.get("path"):
            lines.append(from_here(f"    {place_of(related)}: {shown(related.get('message') or 'related')}"))
    told = error["code"] in _PRINTED
    printed = str(error.get("output") or "").splitlines() if told else []
    lines += [f"    | {shown(line, 200)}" for line in printed[-5:]]
    return lines


def place_of(row: Mapping[str, Any]) -> str:
    """Writes a place as `path:line:column`, both counted from 1."""
    path = shown(str(row["path"]))
    if row.get("line") is None:
        return path
    return f"{path}:{row['line']}:{(row.get('column') or 0) + 1}"


def from_here(text: str) -> str:
    """Writes paths below the working directory as they are written there; the directory itself keeps its name."""
    try:
        here = os.getcwd()
    except FileNotFoundError:  # it was removed: nothing is below it
        return text
    return (
        re.sub(rf"(?<![\w./-]){re.escape(here.rstrip(os.sep) + os.sep)}(?=[^\s/])", "", text)
        if here != os.sep
        else text
    )


def shown(text: str, limit: int = 2000) -> str:
    """Escapes text that came from a process with user code once more: its documents may be forged."""
    return display(str(text), limit)
