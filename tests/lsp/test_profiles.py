"""The server under four editors' own words: what each sends to `initialize`, spoken by pytest-lsp, which checks the specification."""

import asyncio
import json
import sys
from pathlib import Path

import pytest
import pytest_lsp
from lsprotocol import types as lsp
from lsprotocol.converters import get_converter
from pytest_lsp import ClientServerConfig, LanguageClient, client_capabilities

from tests.lsp.client import ROOT

RECORDED = Path(__file__).with_name("profiles")
PROFILES = {
    "neovim@0.11.0": "utf-8",
    "emacs@29.1": "utf-32",
    "visual_studio_code@1.65.2": "utf-16",
    "vscode_1.139.json": "utf-16",
}
SECONDS = 60


def capabilities(profile):
    """Gives what an editor announces: from pytest-lsp, or recorded from a newer one with the extension of `editors/vscode`."""
    if not profile.endswith(".json"):
        return client_capabilities(profile)
    recorded = json.loads((RECORDED / profile).read_text())
    return get_converter().structure(recorded, lsp.ClientCapabilities)


@pytest_lsp.fixture(
    config=ClientServerConfig(server_command=[sys.executable, "-m", "topos_lsp", "--stdio"], server_env={"PYTHONPATH": str(ROOT)}),
    params=PROFILES,
)  # fmt: skip
async def client(request, lsp_client: LanguageClient, tmp_path):
    (tmp_path / "pyproject.toml").write_text("")
    for method in (lsp.WORKSPACE_INLAY_HINT_REFRESH, lsp.WORKSPACE_CODE_LENS_REFRESH, lsp.CLIENT_REGISTER_CAPABILITY):
        lsp_client.feature(method)(lambda _: None)
    params = lsp.InitializeParams(
        capabilities=capabilities(request.param),
        initialization_options={"untrustedWorkspace": False},
        workspace_folders=[lsp.WorkspaceFolder(uri=tmp_path.as_uri(), name="project")],
    )
    result = await lsp_client.initialize_session(params)
    assert (result.capabilities.position_encoding or "utf-16") == PROFILES[request.param]
    lsp_client.folder = tmp_path
    yield
    await lsp_client.shutdown_session()


@pytest.mark.filterwarnings("error::pytest_lsp.LspSpecificationWarning")
async def test_an_editor_gets_what_it_can_show(client: LanguageClient):
    text = (ROOT / "examples" / "observed.py").read_text()
    uri = (client.folder / "observed.py").as_uri()
    item = lsp.TextDocumentItem(uri=uri, language_id="python", version=1, text=text)
    client.text_document_did_open(lsp.DidOpenTextDocumentParams(text_document=item))
    async with asyncio.timeout(SECONDS):
        while not client.diagnostics.get(uri):
            await asyncio.sleep(0.05)
    (found,) = client.diagnostics[uri]
    assert (found.code, found.severity) == ("TP101", lsp.DiagnosticSeverity.Information)
    document = lsp.TextDocumentIdentifier(uri=uri)
    hover = await client.text_document_hover_async(lsp.HoverParams(document, lsp.Position(15, 14)))
    assert "blocked" in hover.contents.value
    lenses = await client.text_document_code_lens_async(lsp.CodeLensParams(document))
    assert [lens.command.title for lens in lenses] == ["1 taken, 1 blocked: open plan", "1 taken: open plan"]
    hints = await client.text_document_inlay_hint_async(
        lsp.InlayHintParams(document, lsp.Range(lsp.Position(0, 0), lsp.Position(99, 0)))
    )
    assert [hint.label for hint in hints] == ["blocked: conv_bn_activation"]
    context = lsp.CodeActionContext(diagnostics=[found])
    actions = await client.text_document_code_action_async(lsp.CodeActionParams(document, found.range, context))
    assert any(action.title == "stop observing `columns`" and action.edit for action in actions)
    symbols = await client.text_document_document_symbol_async(lsp.DocumentSymbolParams(document))
    assert [symbol.name for symbol in symbols] == ["hidden_observed", "statistics_observed"]
    assert not client.messages  # nothing ever pops up
