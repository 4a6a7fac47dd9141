"""The extension in a real VS Code: `editors/vscode/code-server.sh FOLDER` builds one, TOPOS_CODE_SERVER=FOLDER names it."""

import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from tests.browser.conftest import CHROMIUM, FLAGS
from tests.lsp.client import ROOT

BUILT = os.environ.get("TOPOS_CODE_SERVER", "")
VSIX = ROOT / "editors" / "vscode" / "topos.vsix"


@pytest.fixture
def code(tmp_path, observed):
    """Serves VS Code with the extension on the project; gives its address."""
    node = Path(BUILT, "node", "node_modules", ".bin", "node")
    entry = Path(BUILT, "server", "node_modules", "code-server", "out", "node", "entry.js")
    assert VSIX.exists(), "no topos.vsix; `make editors` packages it"
    user = tmp_path / "user"
    (user / "User").mkdir(parents=True)
    command = [sys.executable, "-m", "topos_lsp"]
    quiet = {
        "chat.disableAIFeatures": True,
        "workbench.secondarySideBar.defaultVisibility": "hidden",
        "editor.minimap.enabled": False,
    }
    (user / "User" / "settings.json").write_text(
        json.dumps({"topos.command": command, "topos.inlayHints": True, **quiet})
    )
    (user / "Machine").mkdir()
    (user / "Machine" / "settings.json").write_text(json.dumps({"topos.command": command}))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {
        **os.environ, "PYTHONPATH": str(ROOT), "HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "XDG_CACHE_HOME": str(tmp_path / "cache"), "XDG_DATA_HOME": str(tmp_path / "data"),
    }  # fmt: skip
    server = [str(node), str(entry), "--user-data-dir", str(user), "--extensions-dir", str(tmp_path / "extensions")]
    subprocess.run(
        [*server, "--install-extension", str(VSIX)], env=environment, check=True, timeout=180, capture_output=True
    )
    arguments = ["--auth", "none", "--bind-addr", f"127.0.0.1:{port}", "--disable-telemetry", "--disable-update-check"]
    log = (tmp_path / "log").open("w")
    with subprocess.Popen(
        [*server, *arguments], env=environment, stdout=log, stderr=log, start_new_session=True
    ) as process:
        try:
            deadline = time.monotonic() + 60
            while True:
                try:
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=5).close()
                    break
                except OSError:
                    assert time.monotonic() < deadline, (tmp_path / "log").read_text()
                    time.sleep(0.2)
            yield f"http://127.0.0.1:{port}/?folder={observed.parent}"
        finally:
            os.killpg(process.pid, 15)
    log.close()


@pytest.mark.conformance
@pytest.mark.timeout(900)
@pytest.mark.skipif(not BUILT, reason="code-server is missing; editors/vscode/code-server.sh builds it")
def test_vscode_shows_everything_once_the_workspace_is_trusted(code, tmp_path):
    from playwright.sync_api import sync_playwright

    pictures = Path(os.environ.get("TOPOS_PICTURES", tmp_path))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_page(viewport={"width": 1500, "height": 900})
        page.set_default_timeout(120_000)
        page.goto(code, wait_until="domcontentloaded")
        page.wait_for_selector(".monaco-workbench")
        page.get_by_text("Restricted Mode", exact=True).first.wait_for()
        _open(page)
        page.locator(".codelens-decoration", has_text="workspace not trusted").first.wait_for()
        assert page.locator(".cdr.squiggly-info").count() > 0  # TP410
        page.screenshot(path=str(pictures / "vscode-untrusted.png"))
        page.locator(".codelens-decoration a", has_text="workspace not trusted").first.click()
        page.locator(".workspace-trust-buttons-row a.monaco-button", has_text="Trust").first.click()
        page.wait_for_timeout(1500)
        page.screenshot(path=str(pictures / "vscode-trust.png"))
        for _ in range(10):  # the trust editor lies over the code
            if not page.locator(".monaco-modal-editor-block").is_visible():
                break
            page.locator(".monaco-modal-editor-block [aria-label^='Close']").first.click()
            page.wait_for_timeout(500)
        page.locator(".codelens-decoration", has_text="1 blocked: open plan").first.wait_for()
        page.locator(".codelens-decoration", has_text="1 taken: open plan").first.wait_for()
        page.wait_for_function("document.querySelector('.view-lines').innerText.includes('batch_norm_training')")
        text = page.locator(".view-lines").first.inner_text().replace("\xa0", " ")
        assert "blocked: conv_bn_activation" in text
        text = page.locator(".view-line span", has_text=re.compile(r"maximum")).last
        text.click()
        page.keyboard.press("Control+K")
        page.keyboard.press("Control+I")
        page.wait_for_timeout(3000)
        page.screenshot(path=str(pictures / "vscode-hover.png"))
        page.locator(".monaco-hover-content", has_text="blocked").first.wait_for()
        hover = page.locator(".monaco-hover-content", has_text="blocked").first.inner_text().replace("\xa0", " ")
        assert re.search(r"reading it costs about [\d.]+ ms per run \(modelled, reference\)", hover)
        page.keyboard.press("Escape")
        line = page.locator(".view-line", has_text="tp.observe(columns").first.bounding_box()
        stop = page.locator(".action-widget .monaco-list-row", has_text="stop observing").first
        deadline = time.monotonic() + 120
        while not stop.is_visible():  # on a busy machine the editor may drop a key that comes before it has the focus
            assert time.monotonic() < deadline, "no code action to stop observing"
            page.keyboard.press("Escape")
            page.mouse.click(line["x"] + 60, line["y"] + 8)
            page.keyboard.press("Control+.")
            page.wait_for_timeout(5000)
        page.screenshot(path=str(pictures / "vscode-actions.png"))
        page.locator(".action-widget .monaco-list-row", has_text="stop observing").first.click()
        page.locator(".codelens-decoration", has_text="1 blocked").first.wait_for(state="detached")
        page.wait_for_function(r"/taken:\s*conv_bn_activation/.test(document.querySelector('.view-lines').innerText)")
        page.screenshot(path=str(pictures / "vscode-fixed.png"))
        page.locator(".codelens-decoration a", has_text="open plan").last.click()
        plan = _plan(page)
        plan.locator("text=/batch norm/").first.wait_for()
        page.wait_for_timeout(1500)
        page.screenshot(path=str(pictures / "vscode-plan.png"))
        assert page.locator(".notification-toast", has_text="topos").count() == 0
        browser.close()


def _open(page):
    page.locator(".explorer-folders-view .monaco-list-row", has_text="observed.py").first.dblclick()
    page.locator(".view-line", has_text="def hidden_observed").first.wait_for()


def _plan(page):
    """Waits for the plan's page, which stands in a frame of a panel's frame, and gives it."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        for frame in page.frames:
            if "token=" in frame.url and "/proxy/" in frame.url:
                return frame
        page.wait_for_timeout(200)
    raise AssertionError([frame.url for frame in page.frames])
