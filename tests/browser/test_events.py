"""What the page hears: a stream of events, or the last ones where somebody holds the stream back."""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser.conftest import Open
from tests.web.documents import Builder, Document, convolution, norms
from tests.web.planners import GivenPlanner
from tests.web.serving import Served, Stages
from topos_web.plans import Traced

expect = pytest.importorskip("playwright.sync_api", reason="the package playwright is missing").expect


@pytest.mark.parametrize("held_back", [False, True])
def test_a_save_arrives_through_a_proxy_that_holds_streams_back(page: Any, stages: Stages, held_back: bool) -> None:
    planner = GivenPlanner(convolution(observed=True))
    with stages.serving(planner) as served:
        if held_back:
            page.route("**/api/v1/events?*", lambda route: None)  # never answered
        page.goto(served.url)
        page.locator('.entry[data-verdict="blocked"]').wait_for()
        if held_back:
            with page.expect_request(lambda request: "events/poll?after=" in request.url, timeout=20_000):
                pass
        document = convolution(observed=False)
        planner.traced = [Traced("examples/convolution.py:hidden_observed", document, None)]
        served.hub.publish("saved", {"files": ["model.py"]})
        served.refresh()
        expect(page.locator('.entry[data-verdict="blocked"]')).to_have_count(0)
        expect(page.get_by_text("The server is gone")).to_have_count(0)


@pytest.mark.parametrize("late", ["question", "answer"])
def test_a_question_that_is_out_while_a_file_is_saved_is_asked_of_the_new_plan(
    page: Any, stages: Stages, late: str
) -> None:
    """Its request comes after the save and is refused, or its answer comes after it and is of the old plan."""
    planner = GivenPlanner(convolution(observed=True))
    with stages.serving(planner) as served:
        held: list[Any] = []
        page.route("**/whatif", lambda route: route.continue_() if held else hold(route, held, late))
        page.goto(served.url)
        page.locator('.entry[data-verdict="blocked"]').click()
        page.locator("[data-fix=stop]").click()
        expect(page.get_by_test_id("whatif")).to_contain_text("not observing windows")
        saved = convolution(observed=True)
        saved["sources"] = [f"{text}# saved\n" for text in saved["sources"]]
        planner.traced = [Traced(saved["target"], saved, None)]
        with page.expect_response("**/whatif"):
            release(page, served, held, late)
        expect(page.locator('.entry[data-verdict="blocked"]')).to_have_count(0)
        expect(page.get_by_test_id("whatif")).to_contain_text("not observing windows")
        expect(page.locator(".top .busy")).to_have_count(0)
        page.get_by_role("button", name="Back to the program").click()
        page.locator('.entry[data-verdict="blocked"]').wait_for()


def test_what_a_save_ends_of_a_question_is_told(page: Any, stages: Stages) -> None:
    planner = GivenPlanner(convolution(observed=True))
    with stages.serving(planner) as served:
        page.goto(served.url)
        page.locator('[data-box="op"]').filter(has_text="matmul").first.click()
        page.keyboard.press("o")
        expect(page.get_by_test_id("whatif")).to_contain_text("observing")
        planner.traced = [Traced(convolution(observed=True)["target"], norms(), None)]
        served.refresh()
        expect(page.get_by_test_id("notice")).to_contain_text(
            "Not asked any more, since it was not found in the saved program: observing %"
        )
        expect(page.get_by_test_id("whatif")).to_have_count(0)
        page.get_by_role("button", name="Dismiss").click()
        expect(page.get_by_test_id("notice")).to_have_count(0)


def chain(*ops: str) -> Document:
    b = Builder("m.py", "def main(x):\n    return x\n", "m.py:main")
    value = b.op("input", [], "f32[2]", (1, "main(x)"), "x")
    for name in ops:
        value = b.op(name, [value], "f32[2]", (2, "return x"))
    b.observe(value, "output", (2, "return x"), None, (2, "x"))
    return b.document([value])


def test_a_value_that_is_asked_for_by_number_stays_asked_for_where_a_save_left_it(open_page: Open) -> None:
    """A line above it was written, so that its number is another one."""
    page, served, planner = open_page(chain("exp", "tanh", "neg"))
    page.locator('[data-op="2"]').click()
    page.keyboard.press("o")
    expect(page.get_by_test_id("whatif")).to_contain_text("observing %2")
    planner.traced = [Traced("m.py:main", chain("abs", "exp", "tanh", "neg"), None)]
    served.refresh()
    expect(page.get_by_test_id("whatif")).to_contain_text("observing %3")
    expect(page.locator('[data-op="3"] .observed')).to_have_count(1)
    expect(page.get_by_test_id("notice")).to_have_count(0)
    for _ in range(200):  # the page tells a question before it is sent
        if planner.asked[-1][1] == {"observe": [3]}:
            break
        page.wait_for_timeout(25)
    assert planner.asked[-1][1] == {"observe": [3]}


@pytest.mark.parametrize(
    ("after", "selected"),
    [(("exp", "tanh", "neg", "abs"), 3), (("tanh", "abs"), None), (("tanh", "neg", "abs", "exp"), 2)],
    ids=["one before it", "it is gone", "one behind it"],
)
def test_an_op_stays_selected_where_a_save_left_it(
    open_page: Open, after: tuple[str, ...], selected: int | None
) -> None:
    page, served, planner = open_page(chain("tanh", "neg", "abs"))
    page.locator('[data-op="2"]').click()
    expect(page.locator('[data-op="2"].selected')).to_have_count(1)
    edited = chain(*after)
    planner.traced[0] = Traced(edited["target"], edited, None)
    served.refresh()
    expect(page.locator('[data-box="op"]')).to_have_count(len(after) + 1)
    if selected is None:
        expect(page.get_by_role("status").filter(has_text="not in the saved program")).to_have_count(1)
        expect(page.locator(".op.selected")).to_have_count(0)
    else:
        expect(page.locator(f'[data-op="{selected}"].selected .name')).to_have_text("neg")
        expect(page.get_by_test_id("why")).to_contain_text("neg")


def hold(route: Any, held: list[Any], late: str) -> None:
    held.append((route, route.fetch() if late == "answer" else None))


def release(page: Any, served: Served, held: list[Any], late: str) -> None:
    while not held:
        page.wait_for_timeout(20)
    route, answer = held[0]
    served.refresh()
    if late == "answer":
        page.wait_for_timeout(600)  # the new plan is on the page
        route.fulfill(response=answer)
    else:
        route.continue_()


def test_a_document_of_another_major_version_is_told_and_not_drawn(page: Any, stages: Stages) -> None:
    newer = convolution(observed=True) | {"schema": "topos.plan/2"}
    with stages.serving(GivenPlanner(newer)) as served:
        page.goto(served.url)
        told = page.get_by_test_id("trouble")
        expect(told).to_contain_text("the plan is written as topos.plan/2, and this page reads topos.plan/1")
        expect(page.locator("[data-box]")).to_have_count(0)
