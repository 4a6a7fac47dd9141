"""initialize, initialized, shutdown: what the editor says of itself, and the end of everything that was started."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from lsprotocol import types as lsp
from pygls.capabilities import get_capability

from topos_lsp import serving
from topos_lsp.documents import path_of
from topos_lsp.features import configuration, diagnostics, watching
from topos_lsp.server import Server
from topos_lsp.settings import read_initial


def register(server: Server) -> None:
    """Registers the handlers."""

    @server.feature(lsp.INITIALIZE)
    def initialize(params: lsp.InitializeParams) -> None:
        if params.process_id is not None:
            serving.watch(params.process_id)
        server.initial, read = read_initial(params.initialization_options)
        settings, problems = read.settings, read.problems
        if settings.pull and get_capability(params.capabilities, "text_document.diagnostic", None) is None:
            settings = replace(settings, pull=False)
            problems = (*problems, "topos.pullDiagnostics: this editor pulls none, so they are pushed")
        server.tracing.settings = settings
        configuration.tell(server, problems)
        server.homes.initial = server.initial
        server.viewers.framed = server.initial.framed
        folders = [folder.uri for folder in params.workspace_folders or ()]
        if not folders and params.root_uri:
            folders = [params.root_uri]
        server.homes.folders = [path for path in map(path_of, folders) if path is not None]
        if settings.pull:
            diagnostics.register_pull(server)

    @server.feature(lsp.INITIALIZED)
    async def initialized(_: lsp.InitializedParams) -> None:
        await watching.start(server)
        await configuration.start(server)

    @server.feature(lsp.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
    def folders_changed(params: lsp.DidChangeWorkspaceFoldersParams) -> None:
        added = [path_of(folder.uri) for folder in params.event.added]
        removed = {path_of(folder.uri) for folder in params.event.removed}
        kept = [folder for folder in server.homes.folders if folder not in removed]
        server.homes.folders = list(dict.fromkeys([*kept, *(path for path in added if path is not None)]))
        server.tracing.reopen()

    @server.feature(lsp.SHUTDOWN)
    async def shutdown(_: None) -> None:
        await asyncio.gather(server.viewers.close(), server.tracing.close())
