"""Leaves out the findings that `# topos: ignore[CODE]` comments name, and reports the comments that name none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from topos_core.session.entries import Comment


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
    path: str, comments: Iterable[Comment], used: frozenset[tuple[str, Comment]]
) -> list[dict[str, Any]]:
    """Makes a TP601 finding of each `ignore` of a file that left nothing out, with the comment's removal as its fix."""
    return [_unused(path, each) for each in comments if each.kind == "ignore" and (path, each) not in used]


def _speaks_of(comment: Comment, finding: Mapping[str, Any]) -> bool:
    first, last = finding.get("line"), finding.get("end_line")
    if comment.kind != "ignore" or finding["code"] not in comment.names or first is None:
        return False
    return bool(first <= comment.line <= (last or first))


def _unused(path: str, comment: Comment) -> dict[str, Any]:
    place = {**comment.span._asdict(), "path": path}
    codes = ", ".join(comment.names)
    fix = {"title": "remove the comment", "edits": [{**comment.removal._asdict(), "path": path, "text": ""}]}
    return {
        "code": "TP601", "severity": "hint", "verdict": None, "pattern": None, "region": None,
        "headline": f"nothing on this line is told as {codes}; remove the comment", "details": [], **place, "related": [],
        "fingerprint": f"TP601/{codes}", "fix": fix, "fixes": [fix],
    }  # fmt: skip
