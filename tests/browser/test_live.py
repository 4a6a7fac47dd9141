"""The page on a real model, planned by the real agent: what a person sees who runs `topos view` on an example."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.web.test_main import ROOT, view

expect = pytest.importorskip("playwright.sync_api", reason="the package playwright is missing").expect


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return Path(shutil.copy(ROOT / "examples" / "observed.py", tmp_path))


def test_a_block_is_seen_lifted_and_written_away(browser: Any, model: Path) -> None:
    with view(f"{model}:hidden_observed") as (_, url):
        context = browser.new_context(viewport={"width": 1440, "height": 900})
        page = context.new_page()
        hosts: set[str] = set()
        page.on("request", lambda r: hosts.add(r.url.split("/")[2].split(":")[0]))
        page.goto(url)
        page.locator("[data-box]").first.wait_for(timeout=60_000)
        blocked = page.locator('.entry[data-verdict="blocked"]')
        blocked.click()
        told = page.get_by_test_id("why").inner_text()
        assert "tp.observe" in told
        assert "columns" in told
        assert page.locator('.sleeve[data-verdict="blocked"]').count() == 1
        assert page.locator(".source mark.observed").inner_text() == 'tp.observe(columns, "columns")'
        page.locator("[data-fix=stop]").click()
        expect(page.locator('.sleeve.filled[data-verdict="taken"]')).to_have_count(1)
        expect(page.get_by_test_id("whatif")).to_contain_text("2 regions changed")
        page.get_by_role("button", name="Apply as code").click()
        patch = page.get_by_test_id("patch").locator("pre").inner_text()
        assert '-    tp.observe(columns, "columns")' in patch
        page.keyboard.press("Escape")
        page.get_by_role("button", name="Back to the program").click()
        expect(blocked).to_have_count(1)

        text = model.read_text()
        model.write_text(text.replace('    tp.observe(columns, "columns")\n', ""))
        expect(blocked).to_have_count(0, timeout=30_000)
        expect(page.locator('.entry[data-verdict="taken"]')).to_have_count(1)
        model.write_text(text.replace("columns @", "columns @@"))
        page.get_by_test_id("failure").wait_for(timeout=30_000)
        assert "last good plan" in page.get_by_test_id("failure").inner_text()
        assert hosts == {"127.0.0.1"}
        context.close()
