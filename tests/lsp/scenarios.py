"""Scenario archives: files whose lines bear marks of what topos says there.

    A sentence about the scenario.
    -- model.py --
    ...
        tp.observe(c, "c")  #@ finding TP101 «tp.observe(c, "c")» blocked: batch norm

Marks are taken out of the files before anybody reads them: `finding CODE «source» headline...`, `related CODE «source» message...` for a
finding's other places, `failure CODE «source» message...`, `region PATTERN VERDICT «source»` with its root's expression, `hint LABEL`.
Texts are starts. A file of an archive may be `crlf`.
"""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).with_name("scenarios")
FILE = re.compile(r"^-- (\S+)( crlf)? --\n", re.MULTILINE)
MARK = re.compile(r"  #@ (?P<kind>\w+) (?P<rest>.*?)(?=  #@ |$)")
PLACED = re.compile(r"(?P<what>[^«]*?) ?«(?P<source>.*)»(?: (?P<text>.*))?$")


@dataclass(frozen=True, order=True)
class Mark:
    """One mark: where it stands (the line counts from 1), its kind, what it names, the source that it is about, how it begins."""

    path: str
    line: int
    kind: str
    what: str
    source: str = ""
    text: str = ""


def archives():
    """Lists the names of the scenarios."""
    return sorted(path.stem for path in FOLDER.glob("*.txt"))


def _parts(name):
    _, *parts = FILE.split((FOLDER / f"{name}.txt").read_text(encoding="utf-8"))
    return zip(parts[::3], parts[1::3], parts[2::3], strict=True)


@cache
def files(name):
    """Gives the files of a scenario, without their marks."""
    found = {}
    for path, crlf, text in _parts(name):
        text = "\n".join(line.partition("  #@ ")[0] for line in text.split("\n"))
        found[path] = text.replace("\n", "\r\n") if crlf else text
    return found


def marks(name):
    """Lists the marks of a scenario."""
    found = []
    for path, _, text in _parts(name):
        for number, line in enumerate(text.split("\n"), 1):
            for match in MARK.finditer(line):
                placed = PLACED.match(match["rest"])
                what = (placed["what"], placed["source"], placed["text"] or "") if placed else (match["rest"],)
                found.append(Mark(path, number, match["kind"], *what))
    return found


def segment(text, row):
    """Gives the source at a document's place, whose lines count from 1 and columns are code points."""
    lines = re.split(r"\r\n|\r|\n", text)
    first, last = row["line"] - 1, row["end_line"] - 1
    if first == last:
        return lines[first][row["column"] : row["end_column"]]
    return "\n".join([lines[first][row["column"] :], *lines[first + 1 : last], lines[last][: row["end_column"]]])
