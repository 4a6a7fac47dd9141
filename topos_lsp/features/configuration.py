"""The `topos` section of the editor's settings: pulled where the editor lets us, taken from the notification else."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from lsprotocol import types as lsp

from topos_lsp.server import Server
from topos_lsp.settings import Read, plain, read_settings

logger = logging.getLogger(__name__)

SECTION: Final = "topos"
_ANSWER_SECONDS: Final = 5.0


def register(server: Server) -> None:
    """Registers the handler."""

    @server.feature(lsp.WORKSPACE_DID_CHANGE_CONFIGURATION)
    async def changed(params: lsp.DidChangeConfigurationParams) -> None:
        pushed = plain(params.settings)
        section = pushed.get(SECTION) if isinstance(pushed, dict) else pushed
        if server.can("workspace.configuration"):
            section = await _pull(server)
        _take(server, section)


async def start(server: Server) -> None:
    """Asks to be told of changes, and takes the settings for the first time."""
    if server.can("workspace.did_change_configuration.dynamic_registration"):
        options = lsp.DidChangeConfigurationRegistrationOptions(section=SECTION)
        await register_dynamically(server, "topos-configuration", lsp.WORKSPACE_DID_CHANGE_CONFIGURATION, options)
    if server.can("workspace.configuration"):
        _take(server, await _pull(server))


async def register_dynamically(server: Server, name: str, method: str, options: object) -> None:
    """Registers a capability; an editor that refuses or never answers is left in peace."""
    params = lsp.RegistrationParams(registrations=[lsp.Registration(id=name, method=method, register_options=options)])
    try:
        await asyncio.wait_for(server.client_register_capability_async(params), _ANSWER_SECONDS)
    except Exception as error:
        logger.warning("the editor did not register %s: %s", method, error)


def tell(server: Server, problems: Sequence[str]) -> None:
    """Says which settings could not be used."""
    for problem in problems:
        server.log(f"topos: {problem}")


def _take(server: Server, section: Any) -> None:
    read: Read = read_settings(plain(section), server.settings)
    if read.settings.pull != server.settings.pull:
        kept = replace(read.settings, pull=server.settings.pull)
        read = Read(kept, (*read.problems, "topos.pullDiagnostics counts from the next start of the server"))
    tell(server, read.problems)
    if read.settings == server.settings:
        return
    before, server.tracing.settings = server.settings, read.settings
    if before.options() != read.settings.options() or before.trace != read.settings.trace:
        for file in server.tracing.files():
            server.tracing.retrace(file, forced=False)
    from topos_lsp.features import diagnostics

    for document in server.documents:
        diagnostics.publish(server, document)
    server.refresh()


async def _pull(server: Server) -> Any:
    params = lsp.ConfigurationParams(items=[lsp.ConfigurationItem(section=SECTION)])
    try:
        answer = await asyncio.wait_for(server.workspace_configuration_async(params), _ANSWER_SECONDS)
    except Exception as error:
        logger.warning("the editor did not give its settings: %s", error)
        return None
    return answer[0] if answer else None
