"""Two plans in one drawing, one side of it at a time, and their texts beside each other."""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser.conftest import Open, at_rest
from tests.web.documents import Builder, Document, convolution

expect = pytest.importorskip("playwright.sync_api", reason="the package playwright is missing").expect


def chain(target: str, *ops: str) -> Document:
    b = Builder("m.py", "def main(x):\n    return x\n", target)
    value = b.op("input", [], "f32[2]", (1, "main(x)"), "x")
    for name in ops:
        value = b.op(name, [value], "f32[2]", (2, "return x"))
    return b.document([value])


def compared(page: Any) -> None:
    page.get_by_label("Compare with").select_option(index=1)
    page.get_by_test_id("changes").wait_for()
    at_rest(page)


def boxes(page: Any) -> list[Any]:
    places: list[Any] = page.locator('[data-box="op"]').evaluate_all("es => es.map(e => e.getAttribute('transform'))")
    return places


def test_each_side_shows_its_own_ops_and_nothing_moves(open_page: Open) -> None:
    page, *_ = open_page(chain("m.py:b", "exp", "abs"), chain("m.py:a", "exp", "neg"))
    compared(page)
    places = boxes(page)
    sides = page.get_by_role("group", name="Which of the two plans")
    for side, absent in (("A", "abs"), ("B", "neg")):
        sides.get_by_role("button", name=side, exact=True).click()
        expect(page.locator(".op.absent")).to_have_count(1)
        expect(page.locator(".op.absent")).to_contain_text(absent)
        expect(page.locator(".op.added, .op.removed")).to_have_count(0)
        assert boxes(page) == places
    sides.get_by_role("button", name="Both").click()
    expect(page.locator(".op.added")).to_have_count(1)
    expect(page.locator(".op.removed")).to_have_count(1)


def test_each_side_lists_its_own_regions_and_a_link_holds_the_side(open_page: Open) -> None:
    page, *_ = open_page(convolution(observed=True), convolution(observed=False))
    compared(page)
    expect(page.locator('.entry[data-verdict="blocked"]')).to_have_count(1)
    page.get_by_role("button", name="A", exact=True).click()
    expect(page.locator('.entry[data-verdict="blocked"]')).to_have_count(0)
    expect(page.get_by_test_id("source")).to_contain_text("# windows")  # the text of the plan that is shown
    page.wait_for_timeout(300)
    page.reload()
    page.locator("[data-box]").first.wait_for()
    expect(page.get_by_role("button", name="A", exact=True)).to_have_attribute("aria-pressed", "true")
    expect(page.locator('.entry[data-verdict="blocked"]')).to_have_count(0)


def test_sources_and_emitted_texts_stand_side_by_side(open_page: Open) -> None:
    page, *_ = open_page(convolution(observed=True), convolution(observed=False))
    compared(page)
    texts = page.get_by_role("group", name="Texts side by side")
    texts.get_by_role("button", name="Source").click()
    beside = page.get_by_test_id("side-by-side")
    expect(beside).to_contain_text("1 line differs")
    before, after = beside.locator(".changed").all_inner_texts()
    assert "# windows" in before
    assert 'tp.observe(windows, "windows")' in after
    texts.get_by_role("button", name="StableHLO").click()
    expect(beside).to_contain_text("no line differs")
    expect(beside.get_by_role("region", name="StableHLO before")).to_contain_text("stablehlo.add")
    beside.get_by_role("button", name="Close").click()
    expect(beside).to_have_count(0)
