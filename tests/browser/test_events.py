"""What the page hears: a stream of events, or the last ones where somebody holds the stream back."""

from __future__ import annotations

from typing import Any

import pytest

from tests.web.documents import convolution
from tests.web.planners import GivenPlanner
from tests.web.serving import Stages
from topos_web.plans import Traced

expect = pytest.importorskip("playwright.sync_api", reason="the package playwright is missing").expect


@pytest.mark.parametrize("held_back", [False, True])
def test_a_save_arrives_through_a_proxy_that_holds_streams_back(browser: Any, stages: Stages, held_back: bool) -> None:
    planner = GivenPlanner(convolution(observed=True))
    with stages.serving(planner) as served:
        page = browser.new_page()
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
        page.close()


def test_a_document_of_another_major_version_is_told_and_not_drawn(browser: Any, stages: Stages) -> None:
    newer = convolution(observed=True) | {"schema": "topos.plan/2"}
    with stages.serving(GivenPlanner(newer)) as served:
        page = browser.new_page()
        page.goto(served.url)
        told = page.get_by_test_id("trouble")
        expect(told).to_contain_text("the plan is written as topos.plan/2, and this page reads topos.plan/1")
        expect(page.locator("[data-box]")).to_have_count(0)
        page.close()
