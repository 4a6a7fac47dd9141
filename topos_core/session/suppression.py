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
    path: str, comments: Iterable[Comment], used: frozenset[tuple[str, Comment]], switched: frozenset[int] = frozenset()
) -> list[dict[str, Any]]:
    """Makes a TP601 finding of each comment of a file that changes nothing, with its removal as the fix.

    That is an `ignore` that left nothing out, and an `off` for which nothing was recognised: `switched` holds the lines of
    those for which something was, as the agent tells them with each entry.
    """
    unused = [
        each
        for each in comments
        if (each.kind == "ignore" and (path, each) not in used) or (each.kind == "off" and each.line not in switched)
    ]
    return [_unused(path, each) for each in unused]


def _speaks_of(comment: Comment, finding: Mapping[str, Any]) -> bool:
    first, last = finding.get("line"), finding.get("end_line")
    if comment.kind != "ignore" or finding["code"] not in comment.names or first is None:
        return False
    return bool(first <= comment.line <= (last or first))


def _unused(path: str, comment: Comment) -> dict[str, Any]:
    place = {**comment.span._asdict(), "path": path}
    names = ", ".join(comment.names)
    told = "is told as" if comment.kind == "ignore" else "is recognised as"
    headline = f"nothing on this line {told} {names}; remove the comment"
    fix = {"title": "remove the comment", "edits": [{**comment.removal._asdict(), "path": path, "text": ""}]}
    return {
        "code": "TP601", "severity": "hint", "verdict": None, "pattern": None, "region": None,
        "headline": headline, "details": [], **place, "related": [],
        "fingerprint": f"TP601/{comment.kind}/{names}", "fix": fix, "fixes": [fix],
    }  # fmt: skip
