"""Document symbols: entries, the scopes inside them and their regions."""

from __future__ import annotations

from lsprotocol import types as lsp

from topos_core.document import marks as words
from topos_lsp.documents import Document
from topos_lsp.files import File
from topos_lsp.server import Server
from topos_lsp.view import Region, View


def register(server: Server) -> None:
    """Registers the handler."""

    @server.feature(lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL, lsp.DocumentSymbolOptions(label="topos"))
    def symbols(params: lsp.DocumentSymbolParams) -> list[lsp.DocumentSymbol]:
        document = server.document(params.text_document.uri)
        file = server.tracing.file(params.text_document.uri)
        if document is None or file is None:
            return []
        return [_entry(server, document, file, name) for name in file.names]


def _entry(server: Server, document: Document, file: File, name: str) -> lsp.DocumentSymbol:
    plan = file.plans.get(name)
    seen = plan.view(document, file.home) if plan is not None else None
    body, selected = file.bodies[name], file.names[name]
    text, anchors = document.text, file.anchors
    whole = text.range(anchors.starts[body], anchors.ends[body], server.encoding)
    return lsp.DocumentSymbol(
        name=name,
        detail=words.counts(plan.document["counts"]) if plan is not None else None,
        kind=lsp.SymbolKind.Function,
        range=whole,
        selection_range=text.range(anchors.starts[selected], anchors.ends[selected], server.encoding),
        children=_inside(server, document, seen, anchors.starts[body], anchors.ends[body]) if seen is not None else [],
    )


def _inside(server: Server, document: Document, seen: View, first: int, last: int) -> list[lsp.DocumentSymbol]:
    """Lists an entry's regions that stand in its body, by scope where the model has scopes."""
    scopes: dict[tuple[str, ...], list[lsp.DocumentSymbol]] = {}
    for region in seen.regions:
        place = region.places[0]
        start, end = seen.anchors.starts[place], seen.anchors.ends[place]
        if not seen.anchors.gone(place) and first <= start and end <= last:
            scopes.setdefault(tuple(region.row["scope"]), []).append(_region(server, document, region, start, end))
    found = scopes.pop((), [])
    for scope, children in scopes.items():
        around = lsp.Range(
            start=min((child.range.start for child in children), key=_order),
            end=max((child.range.end for child in children), key=_order),
        )
        found.append(
            lsp.DocumentSymbol(
                name=".".join(scope),
                kind=lsp.SymbolKind.Namespace,
                range=around,
                selection_range=around,
                children=children,
            )
        )
    return found


def _region(server: Server, document: Document, region: Region, start: int, end: int) -> lsp.DocumentSymbol:
    where = document.text.range(start, end, server.encoding)
    title, _, verdict = region.row["headline"].rpartition(": ")
    return lsp.DocumentSymbol(
        name=title or region.row["pattern"],
        detail=verdict,
        kind=lsp.SymbolKind.Object,
        range=where,
        selection_range=where,
    )


def _order(position: lsp.Position) -> tuple[int, int]:
    return position.line, position.character
