"""What ends a block, asked from the page; and a question that takes its time."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from typing import Any

import pytest

from tests.browser.conftest import Open
from tests.web.documents import convolution
from tests.web.planners import GivenPlanner
from tests.web.serving import Stages
from topos_web.plans import PlannerError

expect = pytest.importorskip("playwright.sync_api", reason="the package playwright is missing").expect


def test_every_fix_says_what_it_changes_with_its_basis(open_page: Open) -> None:
    document = convolution(observed=True)
    page, *_ = open_page(document)
    page.locator('.entry[data-verdict="blocked"]').click()
    buttons = page.locator("[data-fix]")
    expect(buttons).to_have_count(4)
    told = [" ".join(text.split()) for text in buttons.all_inner_texts()]
    assert told[0].endswith("−3.15 us a run modelled")
    assert told[2] == "Keep observing windows and recompute it on the side −2.54 us a run modelled"
    assert "only in debug runs" in told[3]


def test_recomputing_on_the_side_is_asked_as_a_what_if_and_taken_back(open_page: Open) -> None:
    page, _, planner = open_page(convolution(observed=True))
    page.locator('.entry[data-verdict="blocked"]').click()
    page.locator("[data-fix=beside]").click()
    expect(page.get_by_test_id("whatif")).to_contain_text("recomputing windows on the side")
    expect(page.locator('.entry[data-verdict="taken"]')).to_have_count(2)
    assert planner.asked[0][1]["beside"] == [1]
    expect(page).to_have_url(re.compile("beside=1"))
    page.get_by_role("button", name="Undo").click()
    expect(page.locator('.entry[data-verdict="blocked"]')).to_have_count(1)


def test_a_fix_for_debug_runs_is_its_own_patch(open_page: Open) -> None:
    page, *_ = open_page(convolution(observed=True))
    page.locator('.entry[data-verdict="blocked"]').click()
    page.locator("[data-fix=debug]").click()
    expect(page.get_by_test_id("whatif")).to_contain_text("not observing windows")
    page.get_by_role("button", name="Apply as code").click()
    expect(page.get_by_label("patch", exact=True)).to_contain_text("+    if __debug__:")


class SlowPlanner(GivenPlanner):
    """Answers a what-if when it is given up, as an agent that was ended does."""

    def __init__(self, *documents: Any) -> None:
        super().__init__(*documents)
        self.let_go = threading.Event()

    def changes(self, target: str, options: Mapping[str, Any]) -> Mapping[str, Any]:
        assert self.let_go.wait(30)
        raise PlannerError({"code": "cancelled", "message": "the question was cancelled; ask again"})

    def give_up(self, target: str) -> None:
        super().give_up(target)
        self.let_go.set()


def test_a_question_over_its_budget_shows_that_it_runs_and_can_be_cancelled(page: Any, stages: Stages) -> None:
    planner = SlowPlanner(convolution(observed=True))
    with stages.serving(planner) as served:
        page.goto(served.url)
        page.locator('.entry[data-verdict="blocked"]').click()
        page.keyboard.press("m")
        expect(page.locator('.page > [role="status"]')).to_have_text("no near miss region here")
        page.locator("[data-fix=stop]").click()
        bar = page.get_by_test_id("whatif")
        expect(bar.get_by_role("progressbar", name="planning")).to_be_visible()
        assert page.locator('.page > [role="status"]').text_content() == ""  # what was said before is no answer to this
        bar.get_by_role("button", name="Cancel").click()
        expect(bar).to_have_count(0)
        expect(page.locator('.entry[data-verdict="blocked"]')).to_have_count(1)
        expect(page.get_by_test_id("trouble")).to_have_count(0)
        assert planner.given_up == ["examples/convolution.py:hidden_observed"]
