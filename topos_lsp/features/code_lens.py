"""Code lenses: one per entry, always there; what it says and does follows the entry's state."""

from __future__ import annotations

from lsprotocol import types as lsp

from topos_core.document import marks as words
from topos_lsp.features import commands
from topos_lsp.files import File
from topos_lsp.server import Server


def register(server: Server) -> None:
    """Registers the handler."""

    @server.feature(lsp.TEXT_DOCUMENT_CODE_LENS, lsp.CodeLensOptions(resolve_provider=False))
    def lenses(params: lsp.CodeLensParams) -> list[lsp.CodeLens]:
        file = server.tracing.file(params.text_document.uri)
        if file is None or not server.settings.lenses:
            return []
        text = file.document.text
        return [
            lsp.CodeLens(
                range=text.range(file.anchors.starts[place], file.anchors.ends[place], server.encoding),
                command=_command(server, file, name),
            )
            for name, place in file.names.items()
        ]


def _command(server: Server, file: File, name: str) -> lsp.Command:
    """Says how an entry stands, and what a click does about it."""
    plan, trouble = file.plans.get(name), file.failure_of(name)
    if file.state == "untrusted":
        own = server.initial.trust_command
        if server.initial.untrusted and own is not None:
            return lsp.Command(title=words.trust_in_editor(), command=own)
        if server.initial.untrusted:
            return lsp.Command(title=words.untrusted(), command="")
        return lsp.Command(title=words.trust(file.home.root), command=commands.TRUST, arguments=[file.uri])
    if plan is not None and plan.stale is None:
        title = words.open_plan(words.counts(plan.document["counts"]))
        return lsp.Command(title=title, command=commands.OPEN_PLAN, arguments=[file.uri, name])
    if plan is not None and plan.stale is not None:
        title = words.stale_lens(words.counts(plan.document["counts"]), plan.stale.since)
    elif file.pending:
        return lsp.Command(title=words.waiting(), command=commands.CANCEL, arguments=[file.uri])
    elif trouble is not None:
        title = words.failed(trouble.error["code"])
    else:
        title = words.not_asked()
    return lsp.Command(title=title, command=commands.RETRACE, arguments=[file.uri])
