"""One thing worth telling a person, in final words. Places carry project-relative paths; nothing downstream rewords."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, NamedTuple

from topos_core.document import phrases
from topos_core.tape.span import Span

Severity = Literal["error", "warning", "information", "hint"]
_MOST_BUILT: Final = 8  # constructors told of findings that are told once

FindingVerdict = Literal["taken", "declined", "blocked", "near_miss"]


class Related(NamedTuple):
    """Another place that belongs to a finding, with what it is."""

    message: str
    place: Span

    def to_dict(self) -> dict[str, Any]:
        """Gives one entry of a finding's `related`."""
        return {"message": self.message, **self.place._asdict()}


class Edit(NamedTuple):
    """Replaces the text at `place` by `text`."""

    place: Span
    text: str

    def to_dict(self) -> dict[str, Any]:
        """Gives one entry of a fix's `edits`."""
        return {**self.place._asdict(), "text": self.text}


class Fix(NamedTuple):
    """A change of the source that ends the finding; edits never overlap and are ordered by place."""

    title: str
    edits: tuple[Edit, ...]

    def to_dict(self) -> dict[str, Any]:
        """Gives a finding's `fix`."""
        return {"title": self.title, "edits": [edit.to_dict() for edit in self.edits]}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing worth telling a person.

    Args:
        code: A stable TP code.
        severity: How the editor shows it; CI decides failure by code, never by severity.
        verdict: The region's verdict, or None where no region is concerned.
        pattern: The region's pattern, or None.
        region: The region's id, or None.
        headline: Verdict first, one reason, lower case, no full stop.
        details: Further sentences, most useful first.
        place: Where it is shown.
        related: Other places, most useful first.
        built: Where the modules of its ops were built; told behind `related`.
        fingerprint: Equal for the same finding after edits elsewhere.
        fixes: Changes that end it, best first.
    """

    code: str
    severity: Severity
    verdict: FindingVerdict | None
    pattern: str | None
    region: str | None
    headline: str
    details: tuple[str, ...]
    place: Span
    related: tuple[Related, ...] = ()
    built: tuple[Related, ...] = ()
    fingerprint: str = ""
    fixes: tuple[Fix, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Gives the finding under the document's names; `fix` is the best of `fixes`."""
        fixes = [fix.to_dict() for fix in self.fixes]
        return {
            "code": self.code,
            "severity": self.severity,
            "verdict": self.verdict,
            "pattern": self.pattern,
            "region": self.region,
            "headline": self.headline,
            "details": list(self.details),
            **self.place._asdict(),
            "related": [related.to_dict() for related in (*self.related, *self.built)],
            "fingerprint": self.fingerprint,
            "fix": fixes[0] if fixes else None,
            "fixes": fixes,
        }


def merged(findings: Sequence[Finding]) -> list[Finding]:
    """Tells equal findings at one place once, with their number, and orders all by place; errors of one place by code."""
    groups: dict[tuple[Any, ...], list[Finding]] = {}
    for finding in findings:
        # Layers of a loop differ in the names of what they observe, in where they were built, and in nothing else.
        same = (finding.place, finding.code, finding.pattern, finding.fingerprint, finding.related)
        groups.setdefault(same, []).append(finding)
    found = []
    for group in groups.values():
        first = group[0]
        if len(group) > 1:
            built: dict[Span, Related] = {}
            for row in (row for finding in group for row in finding.built):
                built.setdefault(row.place, row)
            details = (*first.details, phrases.also(len(group) - 1))
            first = replace(first, details=details, built=tuple(built.values())[:_MOST_BUILT])
        found.append(first)
    return sorted(found, key=lambda f: (f.place, f.code))
