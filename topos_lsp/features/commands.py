"""The commands that lenses and actions send, and that people bind to keys."""

from __future__ import annotations

import asyncio
import os
import re
from typing import Any, Final

from lsprotocol import types as lsp

from topos_core.errors import ToposError
from topos_core.session import settings as user_settings
from topos_core.session.client import Cancelled
from topos_lsp import cache
from topos_lsp.documents import uri_of
from topos_lsp.files import File
from topos_lsp.plan import Plan
from topos_lsp.protocol import Refused
from topos_lsp.server import Server
from topos_lsp.settings import VERDICTS

OPEN_PLAN: Final = "topos.openPlan"
RETRACE: Final = "topos.retrace"
CANCEL: Final = "topos.cancel"
TRUST: Final = "topos.trust"
DISTRUST: Final = "topos.distrust"
TOGGLE_HINTS: Final = "topos.toggleHints"
EMIT: Final = "topos.emit"
RESTART: Final = "topos.restartAgent"
STATUS: Final = "topos.status"

_SHOW_SECONDS: Final = 5.0


def register(server: Server) -> None:
    """Registers the handlers; each takes positional arguments, of which a buffer's URI comes first."""

    @server.command(OPEN_PLAN)
    async def open_plan(uri: str, *wanted: Any) -> dict[str, Any]:
        """Opens the plan viewer, at an entry (second argument) and at a region's key (third)."""
        file = _file(server, uri)
        name, key = (*wanted, None, None)[:2]
        plan = file.plans.get(name) if isinstance(name, str) else None
        if not os.path.isfile(file.document.path):
            raise Refused("the viewer reads files, and this buffer has none; save it first")
        try:
            if not server.homes.is_trusted(file.document.path):
                raise Refused("the folder is not trusted, so its code is not run")
            target = plan.target if plan is not None else None
            url = await server.viewers.url(file.document.path, target, key if isinstance(key, str) else None)
        except ToposError as error:
            raise Refused(error.message) from error
        return {"url": url, "shown": await show(server, url, external=True)}

    @server.command(RETRACE)
    def retrace(uri: str) -> None:
        """Traces a buffer at once, whatever is known of it."""
        server.tracing.retrace(_file(server, uri))

    @server.command(CANCEL)
    def cancel(uri: str) -> None:
        """Ends a running trace."""
        server.tracing.cancel(_file(server, uri))

    @server.command(TRUST)
    def trust(uri: str) -> dict[str, Any]:
        """Adds the buffer's project to the user's list of trusted folders, and traces what is open of it."""
        file = _file(server, uri)
        if server.initial.untrusted:
            raise Refused("the editor says that this workspace is not trusted; trust it there")
        root = file.home.root
        user_settings.trust(root)
        server.tracing.reopen(root)
        return {"trusted": root}

    @server.command(DISTRUST)
    def distrust(uri: str) -> dict[str, Any]:
        """Takes the buffer's project off the user's list of trusted folders."""
        root = _file(server, uri).home.root
        user_settings.distrust(root)
        server.tracing.reopen(root)
        return {"distrusted": root}

    @server.command(TOGGLE_HINTS)
    def toggle_hints(*verdicts: Any) -> list[str]:
        """Shows or hides the hints of some verdicts, all of them without any; gives those that are shown now."""
        unknown = [each for each in verdicts if each not in VERDICTS]
        if unknown:
            raise Refused(f"no hints are of the kind {unknown[0]!r}; there are {', '.join(VERDICTS)}")
        wanted = set(verdicts) or set(VERDICTS)
        shown = set(server.settings.hints)
        shown = shown - wanted if wanted & shown else shown | wanted
        server.configure(hints=frozenset(shown))
        server.refresh()
        return sorted(shown)

    @server.command(EMIT)
    async def emit(uri: str, name: str, *show_it: Any) -> dict[str, Any]:
        """Emits an entry as StableHLO; gives its text, and opens it where a third argument is true."""
        file = _file(server, uri)
        await server.tracing.settled(file)
        plan = file.plans.get(name)
        if plan is None:
            raise Refused(f"{name} has no plan; trace it first")
        text = await _emitted(server, file, plan)
        path = await asyncio.to_thread(_write_emitted, plan, text)
        shown = bool(show_it and show_it[0]) and await show(server, uri_of(path), external=False)
        return {"text": text, "path": path, "shown": shown}

    @server.command(RESTART)
    def restart(*uris: Any) -> None:
        """Ends the processes that run user code, of one buffer's project or of all, and starts anew."""
        root = _file(server, uris[0]).home.root if uris else None
        server.tracing.reopen(root)

    @server.command(STATUS)
    def status(*_uris: Any) -> dict[str, Any]:
        """Says what the server holds: projects with their interpreters, files with their states; of every buffer."""
        return {
            "projects": [
                {
                    "root": home.root,
                    "interpreter": home.interpreter.path if home.interpreter is not None else None,
                    "origin": home.interpreter.origin if home.interpreter is not None else None,
                    "skipped": list(home.interpreter.skipped) if home.interpreter is not None else [],
                    "running": home.running() is not None,
                    "problems": [str(problem) for problem in home.problems],
                }
                for home in server.homes.all()
            ],
            "files": [
                {"uri": file.uri, "state": file.state, "entries": list(file.entries), "plans": list(file.plans)}
                for file in server.tracing.files()
            ],
        }


async def show(server: Server, uri: str, *, external: bool) -> bool:
    """Asks the editor to show something; False where it cannot, and the address is then in its log."""
    if server.can("window.show_document.support"):
        params = lsp.ShowDocumentParams(uri=uri, external=external, take_focus=True)
        try:
            result = await asyncio.wait_for(server.window_show_document_async(params), _SHOW_SECONDS)
            if result.success:
                return True
        except Exception as error:
            server.log(f"topos: the editor did not open {uri}: {error}")
    server.log(f"topos: open {uri}", lsp.MessageType.Info)
    return False


def _file(server: Server, uri: str) -> File:
    file = server.tracing.file(uri)
    if file is None:
        raise Refused(f"{uri} is no open Python file")
    return file


async def _emitted(server: Server, file: File, plan: Plan) -> str:
    try:
        reply = await server.tracing.ask(file, plan, "emit", server.tracing.options(file.home))
    except ToposError as error:
        raise Refused(error.message) from error
    except Cancelled as error:
        raise Refused("the file changed meanwhile; ask again") from error
    if "error" in reply:
        raise Refused(reply["error"]["message"])
    return str(reply["text"])


def _write_emitted(plan: Plan, text: str) -> str:
    path = os.path.join(cache.folder(), "emitted", re.sub(r"\W+", "_", plan.target) + ".mlir")
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(text)
    except OSError as error:
        raise Refused(f"the text cannot be written to {path} ({error.strerror}); set XDG_CACHE_HOME") from error
    return path
