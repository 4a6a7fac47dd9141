"""Renders `topos.check/1` for people: a line of counts for each target, its error or its findings below."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from topos_core.cli.terminal import Terminal
from topos_core.document import phrases
from topos_core.document.formats.errors import error_lines, place_of, shown
from topos_core.document.ranking import is_listed

_PROVED: Final = (
    ("proved", "proved"),
    ("measured", "measured equal"),
    ("unknown", "too large to measure"),
    ("refuted", "refuted"),
)
_COUNTED: Final = (("taken", "good"), ("declined", "faint"), ("blocked", "warning"))
_COLOUR: Final = {"error": "error", "warning": "warning", "information": "warning", "hint": "faint"}


def report(document: Mapping[str, Any], terminal: Terminal) -> str:
    """Writes the whole check; findings of one wording stand once, with how often and where first."""
    lines: list[str] = []
    for row in document["targets"]:
        lines += _target(row, terminal)
    rows = document["targets"]
    failed = sum(row["error"] is not None for row in rows)
    total = {key: sum(row["counts"][key] for row in rows) for key, _ in _COUNTED}
    summary = ", ".join(f"{total[key]} {key}" for key, _ in _COUNTED)
    untraced = f"; {failed} could not be traced" if failed else ""
    lines.append(f"{len(rows)} {'target' if len(rows) == 1 else 'targets'}: {summary}{untraced}")
    return "\n".join(lines)


def _target(row: Mapping[str, Any], terminal: Terminal) -> Iterator[str]:
    target = terminal.paint(shown(row["target"]), "strong")
    if row["error"] is not None:
        yield f"{target}  not traced"
        yield from (f"  {line}" for line in error_lines(row["error"], colour=terminal.colour))
        return
    counts = row["counts"]
    words = [terminal.paint(f"{counts[key]} {key}", colour) for key, colour in _COUNTED if counts[key]]
    unlisted = sum(region["verdict"] == "declined" and not is_listed(region) for region in row["regions"])
    if unlisted:
        words.append(terminal.paint(phrases.unlisted(unlisted), "faint"))
    if counts["opaque"]:
        words.append(f"{counts['opaque']} opaque")
    yield f"{target}  {counts['ops']} ops: {', '.join(words) or 'nothing recognised'}"
    if "proofs" in row:
        yield from _proofs(row["proofs"], terminal)
    for finding, times in _folded(row["findings"]):
        yield from _finding(finding, times, terminal)


def _proofs(proofs: Sequence[Mapping[str, Any]], terminal: Terminal) -> Iterator[str]:
    """Counts what was proved, and says of the rest why not and what was measured."""
    counts = Counter(proof["verdict"] for proof in proofs)
    words = [f"{counts[verdict]} {word}" for verdict, word in _PROVED if counts[verdict]]
    yield f"  proofs: {', '.join(words) or 'no match'}"
    for proof in proofs:
        if proof["verdict"] == "proved":
            continue
        measured = (
            "" if proof["difference"] is None else f"; largest relative difference {float(proof['difference']):.2g}"
        )
        wrong = proof["verdict"] == "refuted"
        text = f"{proof['id']} is {proof['verdict']}: {proof['answer']} by algebra, {shown(proof['reason'])}{measured}"
        yield f"      {terminal.paint(text, 'error') if wrong else text}"


def _folded(findings: list[Mapping[str, Any]]) -> list[tuple[Mapping[str, Any], int]]:
    times: dict[tuple[str, str, str, int], int] = {}
    first: dict[tuple[str, str, str, int], Mapping[str, Any]] = {}
    for finding in findings:
        key = (finding["code"], finding["headline"], finding["path"], finding["line"])
        times[key] = times.get(key, 0) + 1
        first.setdefault(key, finding)
    return [(first[key], count) for key, count in times.items()]


def _finding(finding: Mapping[str, Any], times: int, terminal: Terminal) -> Iterator[str]:
    code = terminal.paint(finding["code"], _COLOUR.get(finding["severity"], "note"))
    repeated = f" (x{times})" if times > 1 else ""
    yield f"  {place_of(finding)}: {code} {shown(finding['headline'])}{repeated}"
    if finding["severity"] == "hint" and finding["verdict"] != "near_miss":
        return  # one line: the reader did not ask why
    for detail in finding["details"]:
        yield f"      {shown(detail)}"
    for related in finding["related"]:
        yield f"      {place_of(related)}: {shown(related['message'])}"
    if finding.get("fix"):
        yield f"      fix: {shown(finding['fix']['title'])}"
