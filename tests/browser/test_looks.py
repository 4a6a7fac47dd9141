"""How the page looks in any window: nothing over anything else, nothing cut off, nothing told twice."""

from __future__ import annotations

import itertools
import re
from typing import Any

import pytest

from tests.browser.conftest import Open
from tests.web.documents import convolution, norms

expect = pytest.importorskip("playwright.sync_api", reason="the package playwright is missing").expect

OVERLAPS = """selector => {
  const all = [...document.querySelectorAll(selector)].filter(e => e.offsetParent !== null).map(e => [e.outerHTML.slice(0, 80), e.getBoundingClientRect()]);
  const found = [];
  all.forEach(([html, a], i) => {
    if (a.right > innerWidth + 1) found.push(`${html} ends at ${a.right} of ${innerWidth}`);
    for (const [other, b] of all.slice(i + 1))
      if (a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1) found.push(`${html} over ${other}`);
  });
  return found;
}"""


def overlaps(page: Any, selector: str) -> list[str]:
    found: list[str] = page.evaluate(OVERLAPS, selector)
    return found


WIDTHS = (620, 900, 1024, 1101, 1280, 1366, 1440, 1536, 1600, 1741, 1920)
BAR = ".top > * > *"
# what a select needs to show the option that is chosen, beside what it has
CUT = """e => { const twin = document.createElement('select'); twin.className = e.className; twin.style.cssText = 'position: absolute; max-width: none; width: auto';
  twin.append(new Option(e.selectedOptions[0].text)); e.after(twin); const need = twin.getBoundingClientRect().width; twin.remove(); return need - e.getBoundingClientRect().width; }"""


def test_the_bar_holds_everything_in_every_window(open_page: Open) -> None:
    alone = convolution(observed=True)
    alone["target"] = f"models/{alone['target']}"
    single, *_ = open_page(alone)
    page, *_ = open_page(convolution(observed=True), norms())
    search = page.get_by_role("searchbox")
    for width in WIDTHS:
        for one, words in ((single, ""), (page, ""), (page, "op:matmul -state:taken line:12")):
            one.set_viewport_size({"width": width, "height": 800})
            if one is page:
                search.fill(words)
                expect(page.locator(".found")).to_have_text("0 ops" if words else "")
            assert overlaps(one, BAR) == [], (width, words)
            if width >= 1024:
                assert one.get_by_role("searchbox").evaluate("e => e.clientWidth") >= 145, width
        if width >= 1024:
            assert single.locator(".target").evaluate("e => e.scrollWidth - e.clientWidth") <= 0, width
            assert page.locator(".target").evaluate(CUT) <= 0, width
        expect(page.get_by_role("button", name="Keys and search fields")).to_be_in_viewport(ratio=1)


def test_the_bar_holds_everything_while_one_of_several_targets_is_traced(open_page: Open) -> None:
    page, served, _ = open_page(convolution(observed=True), norms())
    running = {"target": "models/long_name_of_a_program.py", "step": "importing", "done": 2, "total": 3, "seconds": 3}
    served.hub.publish("tracing", {"running": running})
    told = page.locator(".top .busy")
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 800})
        expect(told).to_contain_text("tracing")
        assert overlaps(page, BAR) == [], width
        assert told.evaluate("e => e.clientWidth") >= 220, width
        expect(page.get_by_role("button", name="Keys and search fields")).to_be_in_viewport(ratio=1)


def test_what_a_plan_is_compared_with_is_read_in_the_bar(open_page: Open) -> None:
    page, served, _ = open_page(convolution(observed=True), norms())
    served.refresh()
    page.get_by_label("Compare with").select_option(label="models/norms.py:block")
    page.get_by_test_id("changes").wait_for()
    for width in WIDTHS[2:]:
        page.set_viewport_size({"width": width, "height": 800})
        assert page.get_by_label("Compare with").evaluate(CUT) <= 0, width
        assert overlaps(page, BAR) == [], width


def test_a_word_on_work_under_way_moves_nothing(open_page: Open) -> None:
    page, *_ = open_page(convolution(observed=True), norms())
    for width in (1280, 1440):
        page.set_viewport_size({"width": width, "height": 800})
        before = page.locator("header.top").bounding_box()
        page.locator(".search").evaluate(
            "e => { const word = document.createElement('span'); word.className = e.className.replace('search', 'busy'); word.textContent = 'loading the plan…'; e.after(word); }"
        )
        assert page.locator("header.top").bounding_box() == before
        page.locator(".top .busy").evaluate("e => e.remove()")


def test_a_verdict_beside_a_long_name_is_never_broken_inside_its_word(open_page: Open) -> None:
    page, *_ = open_page(convolution(observed=True))
    page.locator("[data-box]").filter(has_text="matmul").first.click()
    words = page.locator(".card .regions .verdict")
    expect(words.first).to_be_visible()
    page.locator(".card .regions .link").first.evaluate(
        "e => { e.textContent = 'convolution 3x3, 16 channels + bias + '.repeat(4) }"
    )
    assert words.first.evaluate("e => e.getBoundingClientRect().height") < 24


def test_no_pane_is_wider_than_its_window(open_page: Open) -> None:
    """900 pixels, and a common window at 200 %: below, the panes stand under one another and the page scrolls."""
    page, *_ = open_page(convolution(observed=True))
    page.locator('.entry[data-verdict="blocked"]').click()
    for width, height in ((900, 800), (720, 450), (620, 900)):
        page.set_viewport_size({"width": width, "height": height})
        wide = page.locator("main *").evaluate_all(
            "(all) => all.filter(e => e instanceof HTMLElement && !e.closest('.code, .graph, .hidden, .plot') && e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0"
            " && getComputedStyle(e).display !== 'inline' && getComputedStyle(e).textOverflow !== 'ellipsis' && !e.matches('select, .twist')).map(e => e.outerHTML.slice(0, 90))"
        )
        assert wide == [], width
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        heights = page.locator(".graph, .upper, .source .code").evaluate_all("all => all.map(e => e.clientHeight)")
        assert min(heights) >= 80, width


def test_all_panes_at_once_leave_the_drawing_room_and_lie_over_nothing(open_page: Open) -> None:
    page, *_ = open_page(convolution(observed=True), fragment="#pane=emitted&memory=1&phases=1")
    page.locator('.entry[data-verdict="taken"]').click()
    page.get_by_test_id("phases").locator(".line").first.wait_for()
    page.get_by_test_id("memory").wait_for()
    expect(page.get_by_test_id("emitted")).to_contain_text("stablehlo.add")
    for width, height in ((1440, 900), (1024, 640), (1100, 760), (900, 800), (620, 900)):
        page.set_viewport_size({"width": width, "height": height})
        assert overlaps(page, ".upper, .source h2, .source .code, .heads, .emitted .code") == [], (width, height)
        heights = page.locator(".graph, .source .code, .emitted .code, .phases").evaluate_all(
            "all => all.map(e => e.clientHeight)"
        )
        assert heights[0] >= 140, (width, height)
        assert min(heights) >= 78, (width, height)  # 80 with the border
        parts = page.locator(".centre > *").evaluate_all(
            "all => all.map(e => e.getBoundingClientRect()).map(r => [r.top, r.bottom])"
        )
        assert all(one[1] <= other[0] + 1 for one, other in itertools.pairwise(parts)), (width, height)


def test_escape_closes_the_export_menu_and_keeps_the_selection(open_page: Open) -> None:
    page, *_ = open_page(convolution(observed=True))
    page.locator('.entry[data-verdict="blocked"]').click()
    summary = page.locator("summary", has_text="Export")
    summary.click()
    page.get_by_role("button", name="Whole plan as one HTML file").focus()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Whole plan as one HTML file")).to_be_hidden()
    expect(summary).to_be_focused()
    expect(page.get_by_test_id("why")).to_contain_text("Blocked by observation")
    summary.click()
    page.locator(".graph").click(position={"x": 5, "y": 5})
    expect(page.get_by_role("button", name="Whole plan as one HTML file")).to_be_hidden()


def test_another_plans_emitted_text_starts_at_its_first_line(open_page: Open) -> None:
    page, *_ = open_page(convolution(observed=True), norms())
    page.get_by_role("button", name="Emitted StableHLO").click()
    code = page.locator(".emitted .code")
    code.wait_for()
    code.evaluate("e => { e.firstElementChild.style.height = '9000px'; e.scrollTop = 4000; }")
    expect(page.locator(".emitted .line").first).not_to_be_in_viewport()
    page.get_by_label("Target").select_option(label="models/norms.py:block")
    expect(page.locator(".emitted .line").first).to_be_in_viewport()


def test_a_verdict_and_its_reason_are_told_once(open_page: Open) -> None:
    page, *_ = open_page(norms())
    page.locator('.entry[data-verdict="near_miss"]').click()
    told = page.get_by_test_id("why").inner_text()
    assert told.lower().count("near miss") == 1
    assert told.count("steps held") == 1
    assert "recorded ops" not in told  # those of a match: here none was made, and steps are no ops


def test_a_loss_has_the_sign_of_a_number(open_page: Open) -> None:
    page, *_ = open_page(norms())
    page.locator('.entry[data-verdict="declined"]', has_text="sum of squares").click()
    assert "−300 ns" in page.get_by_test_id("why").inner_text()
    assert re.search(r"(?<![\w.])-\d", page.get_by_test_id("why").inner_text()) is None


def test_what_a_button_says_is_said_once(open_page: Open) -> None:
    """A block's remedies stand as buttons with their price; its `action` is for whoever has no buttons."""
    page, *_ = open_page(convolution(observed=True))
    page.locator('.entry[data-verdict="blocked"]').click()
    expect(page.get_by_test_id("fixes")).to_be_visible()
    expect(page.locator(".card .action")).to_have_count(0)


def test_every_time_on_the_page_bears_its_basis(open_page: Open) -> None:
    page, *_ = open_page(norms())
    expect(page.locator(".times")).to_contain_text("modelled")
    for line in page.locator(".entry .detail.number").all_inner_texts():
        assert line.split()[0] in {"modelled", "measured", "counted"}


def test_a_region_that_nothing_could_run_says_why_no_figure_stands_beside_the_recorded_ones(open_page: Open) -> None:
    document = norms()
    (region,) = [one for one in document["regions"] if one["flips_if"]]
    region["consumer"], region["flips_if"] = "stablehlo", None
    region["cost"] = {name: figure for name, figure in region["cost"].items() if name.endswith("_before")}
    page, *_ = open_page(document)
    page.locator(f'[data-region="{region["id"]}"]').click()
    why = page.get_by_test_id("why")
    expect(why.get_by_test_id("unpriced")).to_have_text(
        "No figures if taken: stablehlo has nothing here that could be priced."
    )
    assert why.locator("thead th").all_inner_texts() == ["cost", "as recorded", "basis"]
    page.locator('.entry[data-verdict="taken"]').first.click()
    expect(why.get_by_test_id("unpriced")).to_have_count(0)
    assert "taken" in why.locator("thead th").all_inner_texts()


def test_the_peak_stands_on_its_curve(open_page: Open) -> None:
    """A step needs more while it runs than is live after it: a stem joins the two."""
    page, *_ = open_page(convolution(observed=True))
    page.keyboard.press("l")
    page.get_by_test_id("memory").wait_for()
    for kind in ("recorded", "planned"):
        stem = page.locator(f".stem.{kind}").evaluate("e => [e.x1, e.y2, e.y1].map(l => l.baseVal.value)")
        peak = page.locator(f".peak.{kind}").evaluate("e => [e.cx, e.cy].map(l => l.baseVal.value)")
        assert stem[:2] == pytest.approx(peak)
        assert stem[2] >= stem[1]
