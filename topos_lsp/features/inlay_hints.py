"""Inlay hints: at most one a line, at its end; equal ones together. While results are pending the last ones move along."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from lsprotocol import types as lsp

from topos_core.document import marks as words
from topos_core.document import phrases
from topos_core.document.ranking import order
from topos_lsp.documents import Document
from topos_lsp.server import Server

_MOST_TOLD: Final = 8  # regions in one tooltip


@dataclass(slots=True)
class _Line:
    rows: list[Mapping[str, Any]] = field(default_factory=list)
    stale: list[str] = field(default_factory=list)


def register(server: Server) -> None:
    """Registers the handler."""

    @server.feature(lsp.TEXT_DOCUMENT_INLAY_HINT)
    def hints(params: lsp.InlayHintParams) -> list[lsp.InlayHint]:
        document = server.document(params.text_document.uri)
        if document is None or not server.settings.hints:
            return []
        first, last = params.range.start.line, params.range.end.line
        return [
            _hint(server, document, number, line)
            for number, line in sorted(_lines(server, document).items())
            if first <= number <= last
        ]


def _lines(server: Server, document: Document) -> dict[int, _Line]:
    """Collects the regions by the line on which their root ends; a region inside of a larger one counts with that."""
    lines: dict[int, _Line] = {}
    for _, plan, seen in server.tracing.plans(document):
        for region in seen.regions:
            place = region.places[0]
            if region.row["verdict"] not in server.settings.hints or seen.anchors.gone(place):
                continue
            if not server.settings.marks(region.row):
                continue
            line = lines.setdefault(document.text.line_of(seen.anchors.ends[place]), _Line())
            line.rows.append(region.row)
            if plan.stale is not None:
                line.stale.append(words.stale(plan.stale.since, plan.stale.reason))
    return lines


def _hint(server: Server, document: Document, number: int, line: _Line) -> lsp.InlayHint:
    rows = sorted(line.rows, key=lambda row: (*order(row), row["parent"] is not None, -len(row["nodes"])))
    alike: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in rows:
        alike.setdefault((row["headline"], row["reason"]), []).append(row)
    groups = list(alike.values())
    shown = groups[0]
    told = [_told(group) for group in groups[:_MOST_TOLD]]
    label = words.hint(shown[0], len(shown), len(groups) - 1, stale=bool(line.stale))
    return lsp.InlayHint(
        position=document.text.position(document.text.line_end(number), server.encoding),
        label=label,
        padding_left=True,
        tooltip="\n".join((*told, *dict.fromkeys(line.stale), words.hint_switch(shown[0]["verdict"]))),
    )


def _told(group: list[Mapping[str, Any]]) -> str:
    row = group[0]
    count = f" {phrases.repeats(len(group))}" if len(group) > 1 else ""
    title = row["headline"].rpartition(": ")[0]
    return f"{title}{count}: {row['reason']}"
