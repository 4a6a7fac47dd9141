"""Diagnostics: findings with the codes that are shown, and why there is no plan. Pushed with the version, or pulled."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from typing import Any, Final

from lsprotocol import types as lsp

from topos_core.document import marks as words
from topos_core.document.codes import CODES
from topos_core.errors import ToposError
from topos_core.session.messages import failure
from topos_core.session.sources import read_source
from topos_lsp.documents import Document, uri_of
from topos_lsp.files import Failure, File
from topos_lsp.homes import Home
from topos_lsp.plan import Plan
from topos_lsp.positions import Text
from topos_lsp.server import NAME, Server
from topos_lsp.view import Finding, View

_SEVERITIES: Final = {
    "error": lsp.DiagnosticSeverity.Error,
    "warning": lsp.DiagnosticSeverity.Warning,
    "information": lsp.DiagnosticSeverity.Information,
    "hint": lsp.DiagnosticSeverity.Hint,
}
_PLACE: Final = ("line", "column", "end_line", "end_column")


def register(server: Server) -> None:
    """Registers nothing: diagnostics are pushed, unless `register_pull` is called."""


def register_pull(server: Server) -> None:
    """Lets the editor pull diagnostics instead; never both for one editor."""

    @server.feature(
        lsp.TEXT_DOCUMENT_DIAGNOSTIC,
        lsp.DiagnosticOptions(identifier=NAME, inter_file_dependencies=True, workspace_diagnostics=False),
    )
    def pull(params: lsp.DocumentDiagnosticParams) -> lsp.DocumentDiagnosticReport:
        document = server.document(params.text_document.uri)
        items = list(compose(server, document)) if document is not None else []
        identity = hashlib.blake2b(repr(items).encode("utf-8", "replace"), digest_size=8).hexdigest()
        if identity == params.previous_result_id:
            return lsp.RelatedUnchangedDocumentDiagnosticReport(result_id=identity)
        return lsp.RelatedFullDocumentDiagnosticReport(items=items, result_id=identity)


def publish(server: Server, document: Document) -> None:
    """Pushes a buffer's diagnostics with its version; nothing where there are none and were none."""
    if server.settings.pull:
        return
    items = list(compose(server, document))
    if items or document.uri in server.published:
        server.published.add(document.uri)
        server.text_document_publish_diagnostics(
            lsp.PublishDiagnosticsParams(uri=document.uri, diagnostics=items, version=document.version)
        )
        if not items:
            server.published.discard(document.uri)


def withdraw(server: Server, uri: str) -> None:
    """Takes back what was pushed for a buffer that was closed."""
    if uri in server.published:
        server.published.discard(uri)
        server.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri=uri, diagnostics=[]))


def publish_problems(server: Server, home: Home) -> None:
    """Tells which files of configuration could not be used, at their lines and in the log."""
    for problem in home.problems:
        server.log(f"topos: {problem}; the defaults are used instead")
        if problem.span is None:
            continue
        error = failure(problem.code, problem.message, **problem.span._asdict())
        text = _text_on_disk(problem.span.path)
        start, end = text.place(*problem.span[1:])
        uri = uri_of(problem.span.path)
        server.published.add(uri)
        server.problems.add(uri)
        items = [_diagnostic(server, error, text, start, end)]
        server.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri=uri, diagnostics=items))


def compose(server: Server, document: Document) -> Iterator[lsp.Diagnostic]:
    """Makes a buffer's diagnostics: from every plan that it sees something of, and from its own failures."""
    told: set[tuple[Any, ...]] = set()
    for file, plan, seen in server.tracing.plans(document):
        unmarked = {row["id"] for row in seen.document["regions"] if not server.settings.marks(row)}
        for placed in seen.findings:
            finding = placed.row
            if (
                placed.number in plan.hidden
                or finding["region"] in unmarked
                or not server.settings.shows(finding["code"])
                or seen.anchors.gone(placed.place)
            ):
                continue
            key = (
                finding["code"],
                finding["headline"],
                seen.anchors.starts[placed.place],
                seen.anchors.ends[placed.place],
            )
            if key not in told:  # a helper that several entries call is told of once
                told.add(key)
                yield _finding(server, document, file, plan, seen, placed)
    own = server.tracing.file(document.uri)
    if own is not None:
        yield from _troubles(server, own)


def _finding(server: Server, document: Document, file: File, plan: Plan, seen: View, placed: Finding) -> lsp.Diagnostic:
    row, anchors = placed.row, seen.anchors
    region = next((each for each in seen.document["regions"] if each["id"] == row["region"]), None)
    lines = [row["headline"], *row["details"][:1]]
    if region is not None and region["action"]:
        lines.append(region["action"])
    if plan.stale is not None:
        lines.append(words.stale(plan.stale.since, plan.stale.reason))
    related = []
    for other, place in zip(row["related"], placed.related, strict=True):
        if place is not None:
            where = document.text.range(anchors.starts[place], anchors.ends[place], server.encoding)
            related.append((other["message"], lsp.Location(uri=document.uri, range=where)))
        elif (location := _elsewhere(server, file.home, seen, other)) is not None:
            related.append((other["message"], location))
    data = {"uri": file.uri, "target": plan.target, "region": row["region"], "fingerprint": row["fingerprint"]}
    start, end = anchors.starts[placed.place], anchors.ends[placed.place]
    return _diagnostic(
        server, {**row, "message": "\n".join(lines)}, document.text, start, end, related, data, row["severity"]
    )


def _troubles(server: Server, file: File) -> Iterator[lsp.Diagnostic]:
    """Tells why a file has no newer plan, and which of its comments change nothing."""
    text = file.document.text
    if file.state == "untrusted" and server.settings.shows("TP410"):
        error = failure("TP410", words.untrusted())
        first = next(iter(file.names.values()), None)
        yield _diagnostic(server, error, text, *_span(file, first), data={"uri": file.uri, "trust": file.home.root})
    for name, trouble in file.failures.items():
        if trouble.error["code"] in CODES and not server.settings.shows(trouble.error["code"]):
            continue
        place = trouble.place if trouble.place is not None else _entry_place(file, name)
        yield _diagnostic(
            server, _told(trouble), text, *_span(file, place), list(_calls(server, file, trouble)), {"uri": file.uri}
        )
    if server.settings.shows("TP601"):
        for row in file.unused:
            start, end = file.anchors.starts[row["place"]], file.anchors.ends[row["place"]]
            if not file.anchors.gone(row["place"]):
                yield _diagnostic(
                    server, {**row, "message": row["headline"]}, text, start, end, severity=row["severity"],
                    data={"uri": file.uri, "unused": row["fingerprint"]},
                )  # fmt: skip


def _told(trouble: Failure) -> Mapping[str, Any]:
    """Says of an error that there is no plan because of it."""
    error = trouble.error
    message = words.no_plan(error["message"])
    return {**error, "message": message}


def _calls(server: Server, file: File, trouble: Failure) -> Iterator[tuple[str, lsp.Location]]:
    rows = [row for row in (trouble.error, *trouble.error.get("related", ())) if row.get("path") and row.get("line")]
    for row in rows:
        path = os.path.join(file.home.root, row["path"])
        if row["path"] == file.relative or not os.path.isfile(path):
            continue
        text = _text_on_disk(path)
        start, end = text.place(*(row[key] for key in _PLACE))
        location = lsp.Location(uri=uri_of(path), range=text.range(start, end, server.encoding))
        yield row.get("message", "raised here") if row is not trouble.error else "raised here", location


def _elsewhere(server: Server, home: Home, seen: View, row: Mapping[str, Any]) -> lsp.Location | None:
    """Gives a related place of another file, in the text that was traced."""
    path = os.path.normpath(os.path.join(home.root, row["path"]))
    if row["path"] not in seen.document["paths"] or not os.path.isfile(path):
        return None
    text = Text(seen.document["sources"][seen.document["paths"].index(row["path"])])
    start, end = text.place(*(row[key] for key in _PLACE))
    return lsp.Location(uri=uri_of(path), range=text.range(start, end, server.encoding))


def _diagnostic(
    server: Server,
    row: Mapping[str, Any],
    text: Text,
    start: int,
    end: int,
    related: list[tuple[str, lsp.Location]] | None = None,
    data: Mapping[str, Any] | None = None,
    severity: str | None = None,
) -> lsp.Diagnostic:
    code, message = row["code"], row["message"]
    known = CODES.get(code)
    link = server.links.get(code) if server.can("text_document.publish_diagnostics.code_description_support") else None
    if related and not server.can("text_document.publish_diagnostics.related_information"):
        message = "\n".join((message, *(f"{said}: line {location.range.start.line + 1}" for said, location in related)))
        related = None
    return lsp.Diagnostic(
        range=text.range(start, end, server.encoding),
        message=message,
        severity=_SEVERITIES[severity or (known.severity if known is not None else "warning")],
        code=code,
        code_description=lsp.CodeDescription(href=link) if link is not None else None,
        source=NAME,
        tags=[lsp.DiagnosticTag.Unnecessary] if code == "TP601" else None,
        related_information=[lsp.DiagnosticRelatedInformation(location=where, message=said) for said, where in related]
        if related
        else None,
        data=json.loads(json.dumps(data)) if data is not None else None,
    )


def _entry_place(file: File, name: str) -> int | None:
    return file.names.get(name, next(iter(file.names.values()), None))


def _span(file: File, place: int | None) -> tuple[int, int]:
    """Gives an anchor's offsets; the first line where there is none."""
    if place is None:
        return 0, file.document.text.line_end(0)
    return file.anchors.starts[place], file.anchors.ends[place]


def _text_on_disk(path: str) -> Text:
    try:
        return Text(read_source(path))
    except ToposError:
        return Text("")  # it is gone meanwhile: the place is then its first line
