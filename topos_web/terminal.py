"""The plan as a few lines of text, for where there is no screen."""

from __future__ import annotations

from collections.abc import Iterator

from topos_web.payloads import Document


def summary(document: Document) -> str:
    """Writes a document's counts, then one line a region, in the document's own words."""
    return "\n".join(_lines(document))


def _lines(document: Document) -> Iterator[str]:
    counts = document["counts"]
    told = ", ".join(f"{counts[v]} {v.replace('_', ' ')}" for v in ("taken", "declined", "blocked", "near_miss"))
    yield f"{document['target']} ({document['consumer']}, {document['fidelity']}): {counts['ops']} ops, {told}"
    for region in document["regions"]:
        yield f"  {region['path']}:{region['line']}:{region['column'] + 1}  {region['headline']}; {region['reason']}"
