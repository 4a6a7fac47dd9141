"""The language server: what it holds, and who is told when a trace changed something. Features live in `features/`."""

from __future__ import annotations

import importlib
import itertools
import json
import logging
import os
import pkgutil
from dataclasses import replace
from typing import Any, Final

from lsprotocol import types as lsp
from pygls.capabilities import get_capability
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer

from topos_core.session.version import VERSION
from topos_lsp import catalogue, features
from topos_lsp.documents import Document, Documents
from topos_lsp.files import File
from topos_lsp.homes import Home, Homes
from topos_lsp.listening import Work
from topos_lsp.positions import Encoding
from topos_lsp.progress import Shown
from topos_lsp.protocol import Protocol, is_refusal
from topos_lsp.settings import Initial, Settings
from topos_lsp.tracing import Tracing
from topos_lsp.viewer import Viewers

logger = logging.getLogger(__name__)

NAME: Final = "topos"
_READERS: Final = 2  # threads of pygls: one always waits for input, and nothing else of ours runs there


class Server(LanguageServer):
    """One editor's server."""

    protocol: Protocol

    def __init__(self) -> None:
        super().__init__(NAME, VERSION, lsp.TextDocumentSyncKind.Full, protocol_cls=Protocol, max_workers=_READERS)
        self.initial = Initial()
        self.documents = Documents()
        self.homes = Homes(told=self.troubled)
        self.tracing = Tracing(self.homes, self.documents, self)
        self.published: set[str] = set()
        self.problems: set[str] = set()
        self.tokens = itertools.count(1)
        self.links = catalogue.links()
        self.viewers = Viewers()
        for module in pkgutil.iter_modules(features.__path__):
            importlib.import_module(f"{features.__name__}.{module.name}").register(self)

    @property
    def settings(self) -> Settings:
        """Gives the editor's settings."""
        return self.tracing.settings

    @property
    def encoding(self) -> Encoding:
        """Gives the units in which the editor counts columns."""
        found = self.workspace.position_encoding
        return Encoding(found) if found is not None else Encoding.Utf16

    @property
    def folder(self) -> str:
        """Gives the folder in which a buffer without a file is taken to stand."""
        return self.homes.folders[0] if self.homes.folders else os.getcwd()

    def can(self, capability: str) -> bool:
        """Says whether the editor announced a capability, such as `workspace.inlay_hint.refresh_support`."""
        return bool(get_capability(self.client_capabilities, capability, False))

    def configure(self, **changes: Any) -> None:
        """Changes settings until the editor says otherwise."""
        self.tracing.settings = replace(self.settings, **changes)

    def document(self, uri: str) -> Document | None:
        """Gives an open buffer."""
        return self.documents.get(uri)

    def changed(self, file: File) -> None:
        """Shows a file's new state: diagnostics at once, hints and lenses when the editor asks again."""
        from topos_lsp.features import diagnostics

        for document in self.documents:
            if document.uri == file.uri or any(plan.view(document, file.home) for plan in file.plans.values()):
                diagnostics.publish(self, document)
        self.refresh()

    def refresh(self) -> None:
        """Asks the editor to ask again for what it does not know to be outdated."""
        for capability, method in (
            ("workspace.inlay_hint.refresh_support", lsp.WORKSPACE_INLAY_HINT_REFRESH),
            ("workspace.code_lens.refresh_support", lsp.WORKSPACE_CODE_LENS_REFRESH),
        ):
            if self.can(capability):
                self.protocol.send_request(method)
        if self.settings.pull and self.can("workspace.diagnostics.refresh_support"):
            self.protocol.send_request(lsp.WORKSPACE_DIAGNOSTIC_REFRESH)

    def troubled(self, home: Home) -> None:
        """Tells what of a project's configuration cannot be used."""
        from topos_lsp.features import diagnostics

        diagnostics.publish_problems(self, home)

    def reopening(self) -> None:
        """Takes back what was told of configurations; what is still wrong is told again."""
        from topos_lsp.features import diagnostics

        for uri in self.problems:
            diagnostics.withdraw(self, uri)
        self.problems.clear()

    def working(self, file: File) -> Work:
        """Shows that a trace runs."""
        return Shown(self, file)

    def log(self, message: str, kind: lsp.MessageType = lsp.MessageType.Warning) -> None:
        """Tells the editor's log; nothing ever pops up."""
        self.window_log_message(lsp.LogMessageParams(type=kind, message=message))

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Logs a bug of ours; pygls would open a message box. What is refused is none."""
        if isinstance(error, json.JSONDecodeError | UnicodeDecodeError) and source is JsonRpcException:
            self.protocol.unreadable(error)
            return
        if is_refusal(error):
            self.log(f"topos: refused: {error}", lsp.MessageType.Info)
            return
        logger.error("%s: %s", getattr(source, "__name__", source), error)
        self.log(f"topos: internal error: {error}", lsp.MessageType.Error)
