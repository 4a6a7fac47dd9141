"""Document symbols: entries, the scopes inside them and their regions, and the functions beside them that hold regions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from lsprotocol import types as lsp

from topos_core.document import marks as words
from topos_core.document import phrases
from topos_lsp.documents import Document
from topos_lsp.files import File
from topos_lsp.server import Server


class _Placed(NamedTuple):
    """A region, or equal ones at one place, between two offsets of the buffer."""

    row: Mapping[str, Any]
    plan: str
    function: str
    start: int
    end: int
    alike: int = 1


def register(server: Server) -> None:
    """Registers the handler."""

    @server.feature(lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL, lsp.DocumentSymbolOptions(label="topos"))
    def symbols(params: lsp.DocumentSymbolParams) -> list[lsp.DocumentSymbol]:
        document = server.document(params.text_document.uri)
        file = server.tracing.file(params.text_document.uri)
        if document is None or file is None:
            return []
        inside: dict[str | None, list[_Placed]] = {}
        for placed in _regions(server, document):
            inside.setdefault(_entry_of(file, placed), []).append(placed)
        found = [_entry(server, document, file, name, inside.get(name, ())) for name in file.names]
        return [*found, *_functions(server, document, inside.get(None, ()))]


def _regions(server: Server, document: Document) -> Iterator[_Placed]:
    """Lists the regions of every plan that stand in a buffer."""
    for file, plan, seen in server.tracing.plans(document):
        name = plan.name if file.uri == document.uri else ""
        for region in seen.regions:
            place = region.places[0]
            if not seen.anchors.gone(place):
                start, end = seen.anchors.starts[place], seen.anchors.ends[place]
                yield _Placed(region.row, name, seen.functions.get(place, ""), start, end)


def _entry_of(file: File, placed: _Placed) -> str | None:
    """Gives the entry in whose body a region stands; its own where that is one of several."""
    around = [
        name
        for name, body in file.bodies.items()
        if file.anchors.starts[body] <= placed.start and placed.end <= file.anchors.ends[body]
    ]
    if placed.plan in around:
        return placed.plan
    return min(around, key=lambda name: file.anchors.length(file.bodies[name]), default=None)


def _entry(server: Server, document: Document, file: File, name: str, inside: Sequence[_Placed]) -> lsp.DocumentSymbol:
    """Makes an entry with what its plan has in its body, or another plan where its own has nothing."""
    plan = file.plans.get(name)
    body, selected = file.bodies[name], file.names[name]
    text, anchors = document.text, file.anchors
    own = [placed for placed in inside if placed.plan == name]
    return lsp.DocumentSymbol(
        name=name,
        detail=words.counts(plan.document["counts"]) if plan is not None else None,
        kind=lsp.SymbolKind.Function,
        range=text.range(anchors.starts[body], anchors.ends[body], server.encoding),
        selection_range=text.range(anchors.starts[selected], anchors.ends[selected], server.encoding),
        children=_by_scope(server, document, own or inside),
    )


def _functions(server: Server, document: Document, placed: Sequence[_Placed]) -> Iterator[lsp.DocumentSymbol]:
    """Makes the functions outside of entries whose lines hold regions: helpers, and modules that an entry is made of."""
    groups: dict[str, list[_Placed]] = {}
    for each in placed:
        groups.setdefault(each.function, []).append(each)
    for function, rows in groups.items():
        children = [_region(server, document, row) for row in _alike(rows)]
        kind = lsp.SymbolKind.Method if "." in function else lsp.SymbolKind.Function
        yield _around(function or "regions", kind, children)


def _by_scope(server: Server, document: Document, placed: Sequence[_Placed]) -> list[lsp.DocumentSymbol]:
    """Lists regions, by scope where the model has scopes."""
    scopes: dict[tuple[str, ...], list[_Placed]] = {}
    for each in placed:
        scopes.setdefault(tuple(each.row["scope"]), []).append(each)
    found = [_region(server, document, row) for row in _alike(scopes.pop((), []))]
    for scope, rows in scopes.items():
        children = [_region(server, document, row) for row in _alike(rows)]
        found.append(_around(".".join(scope), lsp.SymbolKind.Namespace, children))
    return found


def _alike(placed: Sequence[_Placed]) -> list[_Placed]:
    """Puts equal regions at one place together: a function that is called twelve times has them once."""
    found: dict[tuple[str, int, int], _Placed] = {}
    for each in placed:
        key = (each.row["headline"], each.start, each.end)
        known = found.get(key)
        found[key] = each if known is None else known._replace(alike=known.alike + 1)
    return sorted(found.values(), key=lambda each: (each.start, each.end))


def _around(name: str, kind: lsp.SymbolKind, children: list[lsp.DocumentSymbol]) -> lsp.DocumentSymbol:
    around = lsp.Range(
        start=min((child.range.start for child in children), key=_order),
        end=max((child.range.end for child in children), key=_order),
    )
    return lsp.DocumentSymbol(name=name, kind=kind, range=around, selection_range=around, children=children)


def _region(server: Server, document: Document, placed: _Placed) -> lsp.DocumentSymbol:
    where = document.text.range(placed.start, placed.end, server.encoding)
    title, _, verdict = placed.row["headline"].rpartition(": ")
    return lsp.DocumentSymbol(
        name=title or placed.row["pattern"],
        detail=f"{verdict} {phrases.repeats(placed.alike)}" if placed.alike > 1 else verdict,
        kind=lsp.SymbolKind.Object,
        range=where,
        selection_range=where,
    )


def _order(position: lsp.Position) -> tuple[int, int]:
    return position.line, position.character
