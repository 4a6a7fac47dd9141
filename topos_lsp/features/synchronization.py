"""didOpen, didChange, didSave, didClose: the buffers, and the traces that follow them."""

from __future__ import annotations

from lsprotocol import types as lsp

from topos_lsp.features import diagnostics
from topos_lsp.server import Server


def register(server: Server) -> None:
    """Registers the handlers."""

    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: lsp.DidOpenTextDocumentParams) -> None:
        document = server.documents.open(params.text_document, server.folder)
        if document is not None:
            server.tracing.opened(document)
            diagnostics.publish(server, document)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    def changed(params: lsp.DidChangeTextDocumentParams) -> None:
        document = server.documents.get(params.text_document.uri)
        if document is not None:
            edits = document.change(params.content_changes, params.text_document.version, server.encoding)
            server.tracing.changed(document, edits)
            diagnostics.publish(server, document)

    @server.feature(lsp.TEXT_DOCUMENT_DID_SAVE, lsp.SaveOptions(include_text=False))
    def saved(params: lsp.DidSaveTextDocumentParams) -> None:
        document = server.documents.get(params.text_document.uri)
        if document is not None:
            server.tracing.saved(document)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: lsp.DidCloseTextDocumentParams) -> None:
        document = server.documents.close(params.text_document.uri)
        if document is not None:
            server.tracing.closed(document)
            diagnostics.withdraw(server, document.uri)
