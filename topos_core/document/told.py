"""What a document told of a decision, kept for the next plan: a what-if composes only what it changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from topos_core.document.finding import Finding
from topos_core.plan.decision import Decision
from topos_core.tape.span import Span


@dataclass(frozen=True, slots=True)
class About:
    """What a document tells of a match under every request."""

    title: str
    spans: tuple[Span, ...]
    modules: tuple[tuple[str, Span], ...]
    fingerprint: str
    fold: str
    scope: tuple[str, ...]
    nodes: list[int]
    computing: list[int]
    facts: dict[str, str]


@dataclass(frozen=True, slots=True)
class Told:
    """A decision's region and findings, and what they were made of; a later plan that is made of the same tells them again."""

    decision: Decision
    context: tuple[list[Any], list[Any]]
    region: dict[str, Any]
    findings: list[Finding]

    def holds(self, context: tuple[list[Any], list[Any]]) -> bool:
        """Says whether another context is the same: equal values, the same decisions."""
        (plain, others), (own, known) = context, self.context
        return plain == own and all(a is b for a, b in zip(others, known, strict=True))
