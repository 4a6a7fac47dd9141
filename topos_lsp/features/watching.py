"""Files that change on disk: projects' configurations, and the modules that traced files import."""

from __future__ import annotations

import os
from typing import Final

from lsprotocol import types as lsp

from topos_lsp.documents import path_of
from topos_lsp.features import configuration
from topos_lsp.server import Server

_PATTERNS: Final = ("**/*.py", "**/pyproject.toml")


def register(server: Server) -> None:
    """Registers the handler."""

    @server.feature(lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def changed(params: lsp.DidChangeWatchedFilesParams) -> None:
        paths = [path for path in (path_of(change.uri) for change in params.changes) if path is not None]
        configured = {os.path.dirname(path) for path in paths if os.path.basename(path) == "pyproject.toml"}
        if configured:
            server.tracing.reopen()
            return
        for path in paths:
            open_buffer = server.documents.at(path)
            server.tracing.outdated(path, but=open_buffer.uri if open_buffer is not None else None)


async def start(server: Server) -> None:
    """Asks to be told of changes."""
    if not server.can("workspace.did_change_watched_files.dynamic_registration"):
        return
    options = lsp.DidChangeWatchedFilesRegistrationOptions(
        watchers=[lsp.FileSystemWatcher(glob_pattern=pattern) for pattern in _PATTERNS]
    )
    await configuration.register_dynamically(server, "topos-files", lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES, options)
