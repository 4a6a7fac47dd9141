"""Measurements laid over the drawing: never mixed with what is modelled, never on another program."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import Open
from tests.web.documents import convolution, measured, norms

expect = pytest.importorskip("playwright.sync_api", reason="the package playwright is missing").expect
CONVOLUTION = convolution(observed=True)


def test_regions_ops_and_panes_carry_what_was_measured(open_page: Open) -> None:
    page, *_ = open_page(CONVOLUTION, profiles=[{**measured(CONVOLUTION), "file": "bench.json"}])
    bar = page.get_by_test_id("profile")
    expect(bar).to_contain_text(
        "bench.json on Test <CPU>, 2 processors, load 0.3: home, fast, seed 0; median of 5 runs, 1 thread, cpu time"
    )
    expect(page.locator('[data-label="window_reduce@17"] .measured')).to_have_text("30 us")
    expect(page.locator('[data-op="8"] .measured')).to_have_text("10 us")  # blocked: its op runs as recorded
    entry = page.locator('.entry[data-verdict="taken"]')
    expect(entry.locator(".measured")).to_have_text("measured 90 us → 30 us")
    assert "measured" not in entry.locator(".detail.number").first.inner_text()
    assert entry.locator(".detail.number").first.inner_text().startswith("modelled ")
    entry.click()
    pane = page.get_by_test_id("measured")
    expect(pane).to_contain_text("as recorded 90 us, taken 30 us")
    names = pane.locator("tbody th").all_inner_texts()
    assert names == ["home", "interpreter", "torch"]  # quickest first, and what could not run last
    expect(pane).to_contain_text("torch has no <script> op")


def test_figures_can_be_taken_off_the_drawing_and_away(open_page: Open) -> None:
    page, *_ = open_page(CONVOLUTION, profiles=[measured(CONVOLUTION)])
    label = page.locator('[data-label="window_reduce@17"] .measured')
    label.wait_for()
    page.get_by_role("button", name="On the drawing").click()
    expect(label).to_have_count(0)
    page.get_by_role("button", name="Remove").click()
    expect(page.get_by_test_id("profile")).to_have_count(0)
    expect(page.locator(".entry .measured")).to_have_count(0)


def test_regions_are_listed_by_measured_time(open_page: Open) -> None:
    document = norms()
    profile = measured(document)
    rows = [row for row in profile["regions"] if row["recorded_seconds"]]
    for number, row in enumerate(rows):
        row["recorded_seconds"]["value"], row["seconds"] = (number + 1) * 1e-3, None
    page, *_ = open_page(document, profiles=[profile])
    page.get_by_label("order of regions").select_option("measured")
    listed = page.locator(".entry").evaluate_all("all => all.map(e => e.dataset.region)")
    known = [row["id"] for row in reversed(rows)]
    assert [name for name in listed if name in known] == known


def dropped(page: Any, path: Path) -> None:
    page.locator('input[type="file"]').set_input_files(str(path))


def test_a_dropped_file_is_read_or_told_what_it_is_not(open_page: Open, tmp_path: Path) -> None:
    page, *_ = open_page(CONVOLUTION)
    (tmp_path / "plan.json").write_text('{"schema": "topos.plan/1"}')
    dropped(page, tmp_path / "plan.json")
    expect(page.get_by_test_id("profile-problem")).to_contain_text(
        'plan.json is no profile: its schema is "topos.plan/1"'
    )
    text = json.dumps(measured(CONVOLUTION))
    page.evaluate(
        """([text]) => {
          const data = new DataTransfer();
          data.items.add(new File([text], 'run.json', {type: 'application/json'}));
          document.querySelector('.graph').dispatchEvent(new DragEvent('drop', {dataTransfer: data, bubbles: true, cancelable: true}));
        }""",
        [text],
    )
    expect(page.get_by_test_id("profile")).to_contain_text("run.json")
    expect(page.get_by_test_id("profile-problem")).to_have_count(0)
    expect(page.locator('[data-label="window_reduce@17"] .measured')).to_have_text("30 us")


def test_figures_of_another_program_stand_on_nothing(open_page: Open) -> None:
    page, *_ = open_page(CONVOLUTION, profiles=[{**measured(CONVOLUTION), "digest": "0" * 64}])
    expect(page.get_by_test_id("profile")).to_contain_text("it was measured on another program")
    expect(page.locator(".graph .measured")).to_have_count(0)
    expect(page.locator(".entry .measured")).to_have_count(0)


def test_a_plan_that_takes_something_else_keeps_only_what_was_measured_of_it(open_page: Open) -> None:
    page, *_ = open_page(CONVOLUTION, profiles=[measured(CONVOLUTION)])
    page.locator('.entry[data-verdict="blocked"]').click()
    page.locator("[data-fix=stop]").click()
    expect(page.get_by_test_id("profile")).to_contain_text("takes other regions than the one measured")
    expect(page.locator('[data-label="convolution@10"] .measured')).to_have_count(0)
    expect(page.locator('[data-label="window_reduce@17"] .measured')).to_have_text("30 us")
    expect(page.get_by_test_id("measured")).to_contain_text("as recorded 90 us")
    assert "taken" not in page.get_by_test_id("measured").locator("p").first.inner_text()
