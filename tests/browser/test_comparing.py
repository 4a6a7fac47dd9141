"""Two plans in one drawing, one side of it at a time, and their texts beside each other."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.browser.conftest import Open, at_rest
from tests.web.documents import Builder, Document, convolution
from tests.web.planners import GivenPlanner
from tests.web.serving import Served
from topos_web.plans import Traced

expect = pytest.importorskip("playwright.sync_api", reason="the package playwright is missing").expect


def chain(target: str, *ops: str, above: str = "") -> Document:
    """Ops one behind the other, at the line that follows `above`."""
    b = Builder("m.py", f"def main(x):\n{above}    return x\n", target)
    value = b.op("input", [], "f32[2]", (1, "main(x)"), "x")
    for name in ops:
        value = b.op(name, [value], "f32[2]", (2 + above.count("\n"), "return x"))
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


def save(served: Served, planner: GivenPlanner, *documents: Document) -> None:
    """Saves files, which are traced anew, one after the other."""
    for document in documents:
        at = next(i for i, traced in enumerate(planner.traced) if traced.target == document["target"])
        planner.traced[at] = Traced(document["target"], document, None)
        served.refresh()


def chosen(page: Any, name: str) -> Any:
    """The op of that name, where it is selected."""
    return page.locator(".op.selected").filter(has_text=name)


OF_B = ("exp", "tanh", "neg")
OF_A = ("exp", "tanh", "log")


@pytest.mark.parametrize(
    ("selected", "saved", "stays"),
    [
        ("tanh", chain("m.py:b", "abs", "exp", "tanh", "neg"), "same"),
        ("tanh", chain("n.py:a", "abs", "sin", "exp", "tanh", "log"), "same"),
        ("neg", chain("m.py:b", "abs", "exp", "tanh", "neg"), "added"),
        ("log", chain("m.py:b", "abs", "exp", "tanh", "neg"), "removed"),
        ("log", chain("n.py:a", "abs", "exp", "tanh", "log"), "removed"),
        ("tanh", chain("m.py:b", "exp", "neg"), "removed"),
        ("neg", chain("m.py:b", "exp", "tanh"), None),
        ("log", chain("n.py:a", "exp", "tanh"), None),
    ],
    ids=[
        "own", "of the other, saved", "added", "removed", "removed, saved", "gone here, still there", "gone", "gone there",
    ],
)  # fmt: skip
def test_an_op_stays_selected_over_a_save_of_either_plan(
    open_page: Open, selected: str, saved: Document, stays: str | None
) -> None:
    page, served, planner = open_page(chain("m.py:b", *OF_B), chain("n.py:a", *OF_A))
    compared(page)
    page.locator('[data-box="op"]').filter(has_text=selected).click()
    expect(chosen(page, selected)).to_have_count(1)
    counts = page.get_by_test_id("changes").locator(".counts").first
    before = counts.inner_text()
    save(served, planner, saved)
    expect(counts).not_to_have_text(before)  # the drawing is of the saved program
    if stays is None:
        expect(page.locator(".op.selected")).to_have_count(0)
        expect(page.get_by_role("status").filter(has_text="not in the saved program")).to_have_count(1)
    else:
        expect(chosen(page, selected)).to_have_count(1)
        expect(page.get_by_test_id("why")).to_contain_text(selected)
        expect(chosen(page, selected)).to_have_class(re.compile(stays))


def test_an_op_that_a_save_takes_away_stays_selected_as_what_was_there_before_it(open_page: Open) -> None:
    page, served, planner = open_page(chain("m.py:b", "exp", "neg"))
    save(served, planner, chain("m.py:b", *OF_B))
    page.get_by_label("Compare with").select_option(label="before the last save")
    page.locator('[data-box="op"]').filter(has_text="tanh").click()
    expect(page.locator(".op.selected.added")).to_have_count(1)
    save(served, planner, chain("m.py:b", "abs", "exp", "neg"))
    expect(page.locator(".op.selected.removed")).to_contain_text("tanh")
    save(served, planner, chain("m.py:b", "exp", "neg"))
    expect(page.locator(".op.removed")).to_contain_text("abs")
    expect(page.locator(".op.selected")).to_have_count(0)


def test_an_op_stays_selected_where_a_comparison_begins_and_ends(open_page: Open) -> None:
    page, *_ = open_page(chain("m.py:b", "neg", "exp", "tanh"), chain("n.py:a", "log", "sin", "exp", "tanh"))
    page.locator('[data-box="op"]').filter(has_text="tanh").click()
    compared(page)
    expect(chosen(page, "tanh")).to_have_count(1)
    page.get_by_role("button", name="End the comparison").click()
    page.get_by_test_id("changes").wait_for(state="detached")
    expect(chosen(page, "tanh")).to_have_count(1)
    compared(page)
    page.locator(".op.removed").filter(has_text="sin").click()
    page.get_by_role("button", name="End the comparison").click()
    expect(page.locator(".op.selected")).to_have_count(0)
    expect(page.get_by_role("status").filter(has_text="not in the plan that is shown now")).to_have_count(1)


def test_a_transition_tells_what_is_lost_more_or_less_and_the_greatest_stands_first(open_page: Open) -> None:
    after, before = convolution(observed=False), convolution(observed=True)
    page, served, planner = open_page({**before, "target": after["target"]})
    save(served, planner, after)
    page.get_by_label("Compare with").select_option(label="before the last save")
    first = page.get_by_test_id("changes").locator(".entry").first
    expect(first).to_contain_text("blocked → ")
    expect(first).to_contain_text("(−3.15 us modelled)")


MANY = ("exp", "tanh", "neg") * 6


def test_ops_bear_the_numbers_and_places_of_the_plan_that_is_shown(open_page: Open) -> None:
    page, *_ = open_page(chain("m.py:b", "exp", "tanh"), chain("m.py:a", "log", "exp", "tanh", above="    # of A\n"))
    compared(page)
    tanh = page.locator('[data-box="op"]').filter(has_text="tanh")
    places = boxes(page)
    tanh.click()
    for side, number in (("Both", "%2"), ("A", "%3"), ("B", "%2")):
        page.get_by_role("button", name=side, exact=True).click()
        expect(tanh).to_contain_text(f"{number}: f32[2]")
        expect(page.get_by_test_id("why").locator("h3")).to_have_text(f"tanh {number}")
        expect(page.locator(".source mark.root")).to_have_text("return x")
        assert boxes(page) == places
    page.get_by_role("searchbox").fill("value:%2")
    expect(page.locator('[data-box="op"]:not(.dimmed) .name')).to_have_text(["tanh"])


def test_what_is_asked_while_plans_are_compared_is_asked_in_the_numbers_of_the_plan_on_the_page(
    open_page: Open,
) -> None:
    page, *_ = open_page(chain("m.py:b", *MANY), chain("n.py:a", "log", *MANY))
    compared(page)
    page.keyboard.press("p")
    eighth = page.locator('[data-op="9"]')  # the drawing has one more above it
    eighth.click()
    expect(eighth).to_contain_text("%8")
    phases = page.get_by_test_id("phases")
    line = phases.get_by_role("region", name="Recorded").locator(".line")
    expect(line).to_have_text("%8 = tanh")
    line.click()
    expect(page.locator(".op.selected")).to_have_attribute("data-op", "9")
    page.get_by_role("button", name="Emitted StableHLO").click()
    emitted = page.get_by_test_id("emitted")
    expect(emitted.locator(".line.hit")).to_contain_text("%v8 =")
    emitted.locator(".line").filter(has_text="%v10 =").click()
    expect(page.locator(".op.selected")).to_contain_text("%10")
    page.get_by_role("treeitem").filter(has_text="log").click()
    expect(page.locator(".op.removed.selected")).to_have_count(1)
    expect(page.get_by_test_id("partner")).to_have_text("It has no partner in B.")
    expect(phases).to_contain_text("This op is of the plan that is compared with alone.")
    page.get_by_role("button", name="A", exact=True).click()
    expect(phases).to_contain_text("Not asked: A is what is compared with; choose B or Both.")


def test_nothing_is_asked_about_a_region_of_the_plan_that_is_compared_with(open_page: Open) -> None:
    page, *_ = open_page(convolution(observed=True), convolution(observed=False), fragment="#pane=kernel")
    compared(page)
    asked: list[str] = []
    page.on("request", lambda one: asked.append(one.url.rsplit("/", 1)[1]) if one.method == "POST" else None)
    page.get_by_role("button", name="A", exact=True).click()
    page.locator('.entry[data-verdict="taken"]').first.click()
    expect(page.get_by_test_id("certificate")).to_contain_text("Not asked: A is what is compared with")
    expect(page.get_by_test_id("kernel")).to_contain_text("Not asked: A is what is compared with")
    assert asked == []
    page.get_by_role("button", name="B", exact=True).click()
    page.locator('.regions .entry[data-verdict="taken"]').click()
    expect(page.get_by_test_id("certificate")).to_contain_text("equal by algebra")
