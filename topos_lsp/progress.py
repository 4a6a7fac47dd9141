"""A trace that takes long, shown in the editor's own place for progress, with its button to cancel."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from lsprotocol import types as lsp

from topos_lsp.files import File

if TYPE_CHECKING:
    from topos_lsp.server import Server

_AFTER_SECONDS: Final = 0.5  # most traces are done by then, and a bar that only flickers tells nothing


class Shown:
    """One trace's progress; nothing is shown where the editor shows none, or where it is soon done."""

    def __init__(self, server: Server, file: File) -> None:
        self._server = server
        self._file = file
        self._loop = asyncio.get_running_loop()
        self._token = f"topos/{next(server.tokens)}"
        self._begun = False
        self._ended = False
        self._timer: asyncio.TimerHandle | None = None
        if server.can("window.work_done_progress"):
            self._timer = self._loop.call_later(_AFTER_SECONDS, self._create)

    def report(self, title: str, done: int, total: int) -> None:
        """Tells a step; from any thread."""
        self._loop.call_soon_threadsafe(self._report, title, done, total)

    def end(self) -> None:
        """Takes it away."""
        self._ended = True
        if self._timer is not None:
            self._timer.cancel()
        if self._begun:
            self._server.work_done_progress.end(self._token, lsp.WorkDoneProgressEnd())
        self._server.work_done_progress.tokens.pop(self._token, None)

    def _create(self) -> None:
        self._server.work_done_progress.create(self._token, callback=lambda _: self._begin())

    def _begin(self) -> None:
        progress = self._server.work_done_progress
        if self._ended:
            progress.tokens.pop(self._token, None)
            return
        self._begun = True
        progress.tokens[self._token].add_done_callback(self._cancel)
        title = f"topos: tracing {self._file.relative}"
        progress.begin(self._token, lsp.WorkDoneProgressBegin(title=title, cancellable=True, percentage=0))

    def _cancel(self, _: object) -> None:
        if not self._ended:
            self._server.tracing.cancel(self._file)

    def _report(self, title: str, done: int, total: int) -> None:
        if self._begun and not self._ended:
            value = lsp.WorkDoneProgressReport(message=title, percentage=min(100, 100 * done // max(total, 1)))
            self._server.work_done_progress.report(self._token, value)
