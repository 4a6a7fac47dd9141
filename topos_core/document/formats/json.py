"""`topos.check/1`: what a check found, target by target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from topos_core.document.codec import CHECK_SCHEMA, dump

NOTHING = {"taken": 0, "declined": 0, "blocked": 0, "near_miss": 0, "ops": 0, "opaque": 0}


def traced(document: Mapping[str, Any], metric: float | None = None) -> dict[str, Any]:
    """Gives the entry of a target that was traced and planned."""
    return {
        "target": document["target"],
        "traced": True,
        "error": None,
        "metric": metric,
        "counts": document["counts"],
        "findings": document["findings"],
        "regions": document["regions"],
    }


def untraced(target: str, error: Mapping[str, Any]) -> dict[str, Any]:
    """Gives the entry of a target that could not be traced."""
    return {
        "target": target,
        "traced": False,
        "error": dict(error),
        "metric": None,
        "counts": dict(NOTHING),
        "findings": [],
        "regions": [],
    }


def check_document(targets: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Puts targets together, in the order in which they were asked for."""
    return {"schema": CHECK_SCHEMA, "targets": list(targets)}


def render(document: Mapping[str, Any]) -> str:
    """Writes a document as JSON that people can read, with a final line break."""
    return dump(document, indent=2) + "\n"
