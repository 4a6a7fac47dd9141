"""Writes `# topos: off[PATTERN]` comments into a text, each where it is read as one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from topos_core.document.finding import Edit
from topos_core.errors import ToposError
from topos_core.session.entries import find
from topos_core.tape.span import Span

_OFF: Final = re.compile(r"#\s*topos:\s*off\s*\[(?P<names>[^\]]*)\]")


class Place(NamedTuple):
    """The lines of an expression, from 1, and a pattern that is to be switched off there."""

    pattern: str
    first: int
    last: int


def switching_off(text: str, path: str, places: Sequence[Place]) -> tuple[tuple[Edit, ...], tuple[Place, ...]]:
    """Gives the edits that switch patterns off at their places, and the places where no comment would be read as one.

    A comment goes into one that stands there, behind the line, or in front of what its comment says. No edit adds a line.
    """
    lines = text.split("\n")
    names: dict[int, list[str]] = {}  # the line of a comment, from 0 -> patterns
    lost: list[Place] = []
    for place in dict.fromkeys(places):
        if any(place.pattern in names.get(line - 1, ()) for line in range(place.first, place.last + 1)):
            continue
        for line in dict.fromkeys((place.last - 1, place.first - 1)):
            wanted = [*names.get(line, ()), place.pattern]
            if line < len(lines) and _reads(_changed(lines, {**names, line: wanted}), path, place):
                names[line] = wanted
                break
        else:
            lost.append(place)
    return tuple(edit for line in sorted(names) for edit in _edits(lines[line], path, line, names[line])), tuple(lost)


def _edits(line: str, path: str, number: int, names: Sequence[str]) -> Iterator[Edit]:
    column, text = _insertion(line, names)
    yield Edit(Span(path, number + 1, column, number + 1, column), text)


def _insertion(line: str, names: Sequence[str]) -> tuple[int, str]:
    """Says at which column of a line what goes in."""
    listed, code = ", ".join(names), line.rstrip("\r")
    there = _OFF.search(code)
    if there is not None:
        return there.end("names"), f", {listed}"
    said = code.rfind("  #")
    if said >= 0:
        return said + 2, f"# topos: off[{listed}] "
    return len(code), f"  # topos: off[{listed}]"


def _changed(lines: Sequence[str], names: Mapping[int, Sequence[str]]) -> str:
    changed = list(lines)
    for line, mine in names.items():
        column, text = _insertion(lines[line], mine)
        changed[line] = lines[line][:column] + text + lines[line][column:]
    return "\n".join(changed)


def _reads(text: str, path: str, place: Place) -> bool:
    try:
        comments = find(text, path).comments
    except (ToposError, SyntaxError, ValueError):
        return False
    return any(c.kind == "off" and place.pattern in c.names and place.first <= c.line <= place.last for c in comments)
