"""Leaves out the findings that `# topos: ignore[CODE]` comments name, and reports the comments that name none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from topos_core.document.codes import CODES
from topos_core.session.entries import Comment

_NONE: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Suppressed:
    """What is left of some findings, how many comments took away, and which comments took none.

    A comment is `(path, comment)`, its path as findings have it.
    """

    findings: list[dict[str, Any]]
    count: int
    used: frozenset[tuple[str, Comment]]


def suppress(findings: Sequence[dict[str, Any]], comments: Mapping[str, Sequence[Comment]]) -> Suppressed:
    """Leaves out each finding with an `ignore` of its code on any of its lines, or on a line of its own above it.

    `comments` holds the comments of each file by the path that findings give it.
    """
    kept: list[dict[str, Any]] = []
    used: set[tuple[str, Comment]] = set()
    for finding in findings:
        mine = [(finding["path"], each) for each in comments.get(finding["path"], ()) if _speaks_of(each, finding)]
        used.update(mine)
        if not mine:
            kept.append(finding)
    return Suppressed(kept, len(findings) - len(kept), frozenset(used))


def unused_suppressions(
    path: str,
    comments: Iterable[Comment],
    used: frozenset[tuple[str, Comment]],
    switched: frozenset[int] = frozenset(),
    unknown: Mapping[str, str] = _NONE,
) -> list[dict[str, Any]]:
    """Makes a TP601 finding of each comment of a file that changes nothing, with its removal as the fix.

    That is an `ignore` that left nothing out, and an `off` for which nothing was recognised. A name that is no code or no
    pattern is told for itself.

    Args:
        path: The file, as findings have it.
        comments: Its comments.
        used: Those that left something out.
        switched: Lines of `off` comments that switch something off, as the agent tells them with each entry.
        unknown: What is said of names that no pattern has; the agent tells it too, since it knows the user's patterns.
    """
    found: list[dict[str, Any]] = []
    for each in comments:
        if each.kind == "entry":
            continue
        wrong = _no_codes(each.names) if each.kind == "ignore" else {n: unknown[n] for n in each.names if n in unknown}
        known = [name for name in each.names if name not in wrong]
        found += [_told(path, each, said, (name,), removed=not known) for name, said in wrong.items()]
        does_something = (path, each) in used if each.kind == "ignore" else each.line in switched
        if known and not does_something:
            found.append(_told(path, each, _nothing(each, known), known, removed=not wrong))
    return found


def _no_codes(names: Iterable[str]) -> dict[str, str]:
    return {
        name: f"no code is called {name}; write the one that the finding shows" for name in names if name not in CODES
    }


def _nothing(comment: Comment, names: Iterable[str]) -> str:
    told = "is told as" if comment.kind == "ignore" else "is recognised as"
    return f"nothing on this line {told} {', '.join(names)}; remove the comment"


def _speaks_of(comment: Comment, finding: Mapping[str, Any]) -> bool:
    first, last = finding.get("line"), finding.get("end_line")
    if comment.kind != "ignore" or finding["code"] not in comment.names or first is None:
        return False
    return bool(first <= comment.line <= (last or first))


def _told(path: str, comment: Comment, headline: str, names: Iterable[str], *, removed: bool) -> dict[str, Any]:
    """Makes one finding; `removed` where nothing else in the comment is of use."""
    place = {**comment.span._asdict(), "path": path}
    fix = {"title": "remove the comment", "edits": [{**comment.removal._asdict(), "path": path, "text": ""}]}
    fixes = [fix] if removed else []
    return {
        "code": "TP601", "severity": "hint", "verdict": None, "pattern": None, "region": None,
        "headline": headline, "details": [], **place, "related": [],
        "fingerprint": f"TP601/{comment.kind}/{', '.join(names)}", "fix": next(iter(fixes), None), "fixes": fixes,
    }  # fmt: skip
