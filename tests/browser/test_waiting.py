"""The page before there is a plan: what is traced, since when, how to end it; and why there is none."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Open
from tests.web.documents import norms
from tests.web.planners import GivenPlanner
from tests.web.serving import serving
from topos_web.plans import Progress, Traced, untold

CANCELLED = {"code": "cancelled", "message": "the trace was cancelled", "path": None, "line": None, "column": None}


class HeldPlanner(GivenPlanner):
    """Traces for as long as nobody cancels it; gives an error then, and its documents the next time."""

    def __init__(self, *documents: dict[str, Any]) -> None:
        super().__init__(*documents)
        self.go = threading.Event()
        self.begun = threading.Event()

    def trace(self, progress: Progress = untold) -> Sequence[Traced]:
        progress("models/norms.py", "importing", 0, 2)
        if self.begun.is_set():
            return list(self.traced)
        self.begun.set()
        assert self.go.wait(30)
        return [Traced("models/norms.py", None, CANCELLED)]

    def cancel(self) -> None:
        self.go.set()


@pytest.fixture
def page(browser: Any, theme: str) -> Any:
    context = browser.new_context(color_scheme=theme)
    yield context.new_page()
    context.close()


def test_a_trace_is_told_cancelled_and_begun_anew(page: Any) -> None:
    planner = HeldPlanner(norms())
    with serving(planner, trace=False) as served:
        running = threading.Thread(target=served.refresh)
        running.start()
        assert planner.begun.wait(20)
        page.goto(served.url)
        card = page.get_by_role("region", name="Before the first plan")
        expect(card).to_contain_text("Tracing models/norms.py")
        expect(card).to_contain_text("importing · step 1 of 2 · since")
        assert "0" not in page.locator("main").inner_text().split("since")[0].split("step")[0]  # no count of nothing
        card.get_by_role("button", name="Cancel").click()
        expect(card.get_by_test_id("failure")).to_contain_text("the trace was cancelled")
        card.get_by_role("button", name="Trace again").click()
        page.locator("[data-box]").first.wait_for()
        expect(card).to_have_count(0)
        running.join(20)


def test_every_failed_target_is_told_with_its_place(page: Any) -> None:
    planner = GivenPlanner()
    error = {"code": "TP403", "message": "syntax error: invalid syntax", "path": "models/a.py", "line": 3, "column": 0}
    planner.traced = [Traced(name, None, error | {"path": name}) for name in ("models/a.py", "models/b.py")]
    with serving(planner) as served:
        page.goto(served.url)
        failures = page.get_by_test_id("failure")
        expect(failures).to_have_count(2)
        expect(failures.nth(1)).to_contain_text("TP403 syntax error: invalid syntax at models/b.py:3")


def test_a_trace_behind_a_plan_is_a_word_in_the_bar(open_page: Open) -> None:
    page, served, _ = open_page(norms())
    served.hub.publish(
        "tracing", {"running": {"target": "models/norms.py", "step": "importing", "done": 0, "total": 2, "seconds": 3}}
    )
    expect(page.get_by_role("banner")).to_contain_text("tracing again, 3 s")
    served.hub.publish("tracing", {"running": None})
    expect(page.get_by_role("banner")).not_to_contain_text("tracing again")
