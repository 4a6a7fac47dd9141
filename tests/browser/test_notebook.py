"""What a notebook shows for a plan, in a real Chromium: the page in its frame, asking nobody."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

import topos_core as tp
from topos_core import nn


def test_the_frame_of_a_cell_is_the_page_and_asks_nobody(
    browser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page_of = EntryPoint("html", "topos_web.export:html", "topos.exporters")
    monkeypatch.setattr(
        "importlib.metadata.entry_points", lambda **wanted: (page_of,) if wanted["group"] == page_of.group else ()
    )
    plan = tp.plan(tp.trace(lambda x: nn.softmax(x * 2) + 1, tp.f32[8, 64]), cost="always")
    file = tmp_path / "cell.html"
    file.write_text(f"<!doctype html><title>cell</title>{plan._repr_html_()}")
    page = browser.new_page()
    asked: list[str] = []
    faults: list[str] = []
    page.on("request", lambda r: asked.append(r.url.split(":")[0]))
    page.on("console", lambda m: faults.append(m.text) if m.type == "error" else None)
    page.on("pageerror", lambda e: faults.append(str(e)))
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        page.goto(file.as_uri())
        cell = page.frame_locator("iframe")
        cell.locator('.entry[data-verdict="taken"]').click()
        cell.locator('.sleeve[data-verdict="taken"]').first.wait_for(state="attached")
        assert "softmax" in cell.get_by_test_id("why").inner_text()
    page.wait_for_timeout(300)  # the address would be written by now
    assert set(asked) <= {"file", "blob", "data", "about"}
    assert faults == []
    page.close()
