"""Code actions: end a finding by its own fixes, leave it out, open the plan at a region, trust, trace, show and hide."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any, Final

from lsprotocol import types as lsp
from pygls.capabilities import get_capability

from topos_core.document import marks as words
from topos_core.errors import ToposError
from topos_lsp.documents import Document
from topos_lsp.features import commands, diagnostics
from topos_lsp.files import File
from topos_lsp.positions import Text
from topos_lsp.scanning import scan
from topos_lsp.server import Server
from topos_lsp.settings import VERDICTS
from topos_lsp.view import Finding, View

_QUICK: Final = lsp.CodeActionKind.QuickFix
_SOURCE: Final = lsp.CodeActionKind.Source
_IGNORE: Final = re.compile(r"#\s*topos:\s*ignore\s*\[(?P<names>[^\]]*)\]")
_PLACE: Final = ("line", "column", "end_line", "end_column")


def register(server: Server) -> None:
    """Registers the handler."""

    @server.feature(lsp.TEXT_DOCUMENT_CODE_ACTION, lsp.CodeActionOptions(code_action_kinds=[_QUICK, _SOURCE]))
    async def actions(params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
        document = server.document(params.text_document.uri)
        if document is None:
            return []
        start = document.text.offset_at(params.range.start, server.encoding)
        end = document.text.offset_at(params.range.end, server.encoding)
        found = [each async for each in _fixes(server, document, start, end)]
        found += _about(server, document, start, end)
        only = params.context.only
        return [action for action in found if only is None or any(_is(action.kind, kind) for kind in only)]


async def _fixes(server: Server, document: Document, start: int, end: int) -> AsyncIterator[lsp.CodeAction]:
    """Offers what ends or hides a finding that touches the range."""
    shown = list(diagnostics.compose(server, document))
    for file, plan, seen in server.tracing.plans(document):
        for placed in seen.findings:
            if (
                placed.number in plan.hidden
                or seen.anchors.gone(placed.place)
                or not _touches(seen, placed.place, start, end)
            ):
                continue
            about = [each for each in shown if _speaks_of(each, placed.row, file)]
            if plan.stale is None:
                for k, fix in enumerate(placed.row["fixes"]):
                    edit = _edit_of(server, file, seen, fix)
                    if edit is not None:
                        yield lsp.CodeAction(
                            title=fix["title"], kind=_QUICK, diagnostics=about, edit=edit, is_preferred=k == 0 or None
                        )
            ignored = await _ignore(server, document, seen, placed)
            if ignored is not None:
                title = words.ignore(placed.row["code"])
                yield lsp.CodeAction(title=title, kind=_QUICK, diagnostics=about, edit=ignored)
    own = server.tracing.file(document.uri)
    for row in own.unused if own is not None else ():
        assert own is not None
        if own.anchors.starts[row["place"]] <= end and start <= own.anchors.ends[row["place"]] and row["fix"]:
            changes = [
                lsp.TextEdit(
                    range=document.text.range(*document.text.place(*(e[k] for k in _PLACE)), server.encoding),
                    new_text=e["text"],
                )
                for e in row["fix"]["edits"]
            ]
            yield lsp.CodeAction(
                title=row["fix"]["title"], kind=_QUICK, edit=_workspace_edit(server, document, changes)
            )


def _about(server: Server, document: Document, start: int, end: int) -> Iterator[lsp.CodeAction]:
    """Offers what does not change the text."""
    file = server.tracing.file(document.uri)
    told: set[str] = set()
    for owner, plan, seen in server.tracing.plans(document):
        for region in seen.regions:
            if any(_touches(seen, place, start, end) for place in region.places) and region.row["headline"] not in told:
                told.add(region.row["headline"])
                title = words.open_region(region.row["headline"])
                yield _run(title, commands.OPEN_PLAN, owner.uri, plan.name, region.row["key"])
    name = file.entry_at(start) if file is not None else None
    if file is None or name is None:
        return
    if file.state == "untrusted":
        if not server.initial.untrusted:
            yield _run(words.trust(file.home.root), commands.TRUST, file.uri, kind=_QUICK)
        return
    if name in file.plans:
        shown = server.can("window.show_document.support")
        yield _run(words.show_stablehlo(name, shown=shown), commands.EMIT, file.uri, name, True)
        if server.initial.copy_command is not None:
            yield _run(words.copy_stablehlo(name), server.initial.copy_command, file.uri, name)
    yield _run(words.trace_again(), commands.RETRACE, file.uri)
    for verdict in VERDICTS:
        yield _run(words.toggle_hints(verdict, verdict in server.settings.hints), commands.TOGGLE_HINTS, verdict)


def _touches(seen: View, place: int, start: int, end: int) -> bool:
    return seen.anchors.starts[place] <= end and start <= seen.anchors.ends[place] and not seen.anchors.gone(place)


def _speaks_of(diagnostic: lsp.Diagnostic, row: Mapping[str, Any], file: File) -> bool:
    data = diagnostic.data
    return (
        isinstance(data, Mapping) and data.get("uri") == file.uri
        and (data.get("region"), data.get("fingerprint")) == (row["region"], row["fingerprint"])
        and diagnostic.code == row["code"]
    )  # fmt: skip


def _edit_of(server: Server, file: File, seen: View, fix: Mapping[str, Any]) -> lsp.WorkspaceEdit | None:
    """Turns a fix of the traced text into an edit of the buffer; None where the buffer moved away from it."""
    document = file.document
    if any(edit["path"] != file.relative for edit in fix["edits"]):
        return None
    traced = Text(seen.document["sources"][seen.document["paths"].index(file.relative)])
    if traced.source != document.code:
        return None  # a newer plan is on its way, with fixes of its own
    newline = document.text.newline()
    changes = [
        lsp.TextEdit(
            range=document.text.range(*traced.place(*(edit[key] for key in _PLACE)), server.encoding),
            new_text=edit["text"].replace("\n", newline),
        )
        for edit in fix["edits"]
    ]
    return _workspace_edit(server, document, changes)


async def _ignore(server: Server, document: Document, seen: View, placed: Finding) -> lsp.WorkspaceEdit | None:
    """Writes `# topos: ignore[CODE]` where it is read as one: into such a comment, behind the line, or on a line above.

    None where no place would do, as inside of a string.
    """
    text, code = document.text, placed.row["code"]
    first, last = (text.line_of(each[placed.place]) for each in (seen.anchors.starts, seen.anchors.ends))
    for at, inserted in _places_of_comment(text, first, last, code):
        changed = document.code[:at] + inserted + document.code[at:]
        if await _ignores(changed, first + 1, last + 1 + inserted.count("\n"), code):
            edit = lsp.TextEdit(range=text.range(at, at, server.encoding), new_text=inserted)
            return _workspace_edit(server, document, [edit])
    return None


def _places_of_comment(text: Text, first: int, last: int, code: str) -> Iterator[tuple[int, str]]:
    for line in range(first, last + 1):
        found = _IGNORE.search(text.line(line))
        if found is not None:
            yield text.starts[line] + found.end("names"), f", {code}"
    for line in (last, first):
        yield text.line_end(line), f"  # topos: ignore[{code}]"
    written = text.line(first)
    indent = written[: len(written) - len(written.lstrip())]
    yield text.starts[first], f"{indent}# topos: ignore[{code}]{text.newline()}"


async def _ignores(source: str, first: int, last: int, code: str) -> bool:
    try:
        comments = (await scan(source, "")).comments
    except ToposError:
        return False
    return any(each.kind == "ignore" and code in each.names and first <= each.line <= last for each in comments)


def _workspace_edit(server: Server, document: Document, changes: list[lsp.TextEdit]) -> lsp.WorkspaceEdit:
    if get_capability(server.client_capabilities, "workspace.workspace_edit.document_changes", False):
        identifier = lsp.OptionalVersionedTextDocumentIdentifier(uri=document.uri, version=document.version)
        return lsp.WorkspaceEdit(document_changes=[lsp.TextDocumentEdit(text_document=identifier, edits=changes)])
    return lsp.WorkspaceEdit(changes={document.uri: changes})


def _run(title: str, command: str, *arguments: Any, kind: lsp.CodeActionKind = _SOURCE) -> lsp.CodeAction:
    return lsp.CodeAction(
        title=title, kind=kind, command=lsp.Command(title=title, command=command, arguments=list(arguments))
    )


def _is(kind: str | None, wanted: str) -> bool:
    return kind is not None and (wanted == "" or kind == wanted or kind.startswith(f"{wanted}."))
