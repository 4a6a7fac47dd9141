"""The page before there is a plan: what is traced, since when, how to end it; and why there is none."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

from playwright.sync_api import expect

from tests.browser.conftest import Open
from tests.web.documents import convolution, norms
from tests.web.planners import GivenPlanner
from tests.web.serving import Stages
from topos_web.plans import Progress, Traced, plan_id, untold

CANCELLED = {"code": "cancelled", "message": "the trace was cancelled", "path": None, "line": None, "column": None}


class HeldPlanner(GivenPlanner):
    """Traces for as long as nobody cancels it; gives an error then, and its documents the next time."""

    def __init__(self, *documents: dict[str, Any]) -> None:
        super().__init__(*documents)
        self.go = threading.Event()
        self.begun = threading.Event()

    def trace(self, progress: Progress = untold) -> Iterator[Traced]:
        progress("models/norms.py", "importing", 0, 2)
        if self.begun.is_set():
            yield from self.traced
            return
        self.begun.set()
        assert self.go.wait(30)
        yield Traced("models/norms.py", None, CANCELLED)

    def cancel(self) -> None:
        self.go.set()


def test_a_trace_is_told_cancelled_and_begun_anew(page: Any, stages: Stages) -> None:
    planner = HeldPlanner(norms())
    with stages.serving(planner, trace=False) as served:
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


def test_every_failed_target_is_told_with_its_place(page: Any, stages: Stages) -> None:
    planner = GivenPlanner()
    error = {"code": "TP403", "message": "syntax error: invalid syntax", "path": "models/a.py", "line": 3, "column": 0}
    planner.traced = [Traced(name, None, error | {"path": name}) for name in ("models/a.py", "models/b.py")]
    with stages.serving(planner) as served:
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


class GatedPlanner(GivenPlanner):
    """Traces each target when the test opens its gate."""

    def __init__(self, *traced: Traced) -> None:
        super().__init__()
        self.traced = list(traced)
        self.gates = [threading.Event() for _ in traced]

    def trace(self, progress: Progress = untold) -> Iterator[Traced]:
        for traced, gate in zip(self.traced, self.gates, strict=True):
            progress(traced.target, "importing", 0, 2)
            assert gate.wait(60)
            yield traced


BROKEN = {"code": "TP403", "message": "syntax error: invalid syntax", "path": "models/b.py", "line": 3, "column": 0}
NORMS, OTHER = norms(), convolution(observed=True)


THREE = (
    Traced(NORMS["target"], NORMS, None), Traced("models/b.py", None, BROKEN), Traced(OTHER["target"], OTHER, None)
)  # fmt: skip


@contextlib.contextmanager
def gated(stages: Stages, *targets: Traced) -> Iterator[tuple[GatedPlanner, Any]]:
    planner = GatedPlanner(*targets)
    with stages.serving(planner, trace=False) as served:
        running = threading.Thread(target=served.refresh, daemon=True)
        running.start()
        yield planner, served
        for gate in planner.gates:
            gate.set()
        running.join(20)


def test_each_target_is_drawn_as_soon_as_it_is_traced(page: Any, stages: Stages) -> None:
    with gated(stages, *THREE) as (planner, served):
        page.goto(served.url)
        targets = page.get_by_role("list", name="Targets").get_by_role("listitem")
        expect(targets).to_have_text(
            [f"{NORMS['target']}being traced", "models/b.pyto be traced", f"{OTHER['target']}to be traced"]
        )
        planner.gates[0].set()
        page.locator("[data-box]").first.wait_for()
        choice = page.get_by_label("Target", exact=True)
        expect(choice.locator("option")).to_have_text(
            [NORMS["target"], "models/b.py (being traced)", f"{OTHER['target']} (to be traced)"]
        )
        expect(page.get_by_role("banner")).to_contain_text("tracing models/b.py")
        planner.gates[1].set()
        expect(choice.locator("option").nth(1)).to_have_text("models/b.py (failed)")
        expect(choice.locator("option").nth(2)).to_have_text(f"{OTHER['target']} (being traced)")
        choice.select_option(label="models/b.py (failed)")
        expect(page.get_by_test_id("failure")).to_contain_text("syntax error")
        planner.gates[2].set()
        expect(choice.locator("option")).to_have_text([NORMS["target"], "models/b.py (failed)", OTHER["target"]])
        expect(page.get_by_test_id("failure")).to_contain_text("syntax error")  # who reads of a failure is not led away
        page.get_by_role("listitem").filter(has_text=OTHER["target"]).get_by_role("button", name="Show").click()
        page.locator("[data-box]").first.wait_for()
        expect(choice).to_have_value(plan_id(OTHER["target"]))


def test_a_failed_first_target_gives_way_to_the_first_that_works(page: Any, stages: Stages) -> None:
    with gated(stages, THREE[1], THREE[0]) as (planner, served):
        page.goto(served.url)
        planner.gates[0].set()
        expect(page.get_by_test_id("failure")).to_contain_text("syntax error")
        expect(page.get_by_text(f"Tracing {NORMS['target']}")).to_be_visible()
        planner.gates[1].set()
        page.locator("[data-box]").first.wait_for()
        expect(page.get_by_label("Target", exact=True)).to_have_value(plan_id(NORMS["target"]))


def test_an_address_waits_for_its_plan_while_others_are_there(page: Any, stages: Stages) -> None:
    with gated(stages, *THREE) as (planner, served):
        planner.gates[0].set()
        page.goto(f"{served.url}#plan={plan_id(OTHER['target'])}&sel=o:17")
        first = page.get_by_role("listitem").filter(has_text=NORMS["target"])
        expect(first.get_by_role("button", name="Show")).to_be_visible()
        expect(page.locator("[data-box]")).to_have_count(0)
        planner.gates[1].set()
        planner.gates[2].set()
        expect(page.get_by_label("Target", exact=True)).to_have_value(plan_id(OTHER["target"]))
        expect(page.locator('[data-box="op"].selected')).to_have_attribute("data-op", "17")


def test_an_address_of_no_plan_shows_another_once_the_trace_is_over(page: Any, stages: Stages) -> None:
    with gated(stages, *THREE) as (planner, served):
        page.goto(f"{served.url}#plan=00000000")
        planner.gates[0].set()
        expect(page.get_by_role("button", name="Show")).to_be_visible()
        planner.gates[1].set()
        planner.gates[2].set()
        page.locator("[data-box]").first.wait_for()
        expect(page.get_by_label("Target", exact=True)).to_have_value(plan_id(NORMS["target"]))


def test_an_answer_that_a_later_one_overtook_is_not_taken(page: Any, stages: Stages) -> None:
    planner = GivenPlanner()
    planner.traced = [Traced(NORMS["target"].partition(":")[0], None, BROKEN)]
    late: list[tuple[Any, Any]] = []

    def hold(route: Any) -> None:
        if late:
            route.continue_()
        else:
            late.append((route, route.fetch()))  # answered before the save, and read behind it

    with stages.serving(planner) as served:
        page.goto(served.url)
        page.get_by_test_id("failure").wait_for()
        page.route("**/api/v1/plans", hold)
        served.hub.publish("traced", {"plans": []})
        while not late:
            page.wait_for_timeout(20)
        planner.traced = [Traced(NORMS["target"], NORMS, None)]
        served.refresh()
        page.locator("[data-box]").first.wait_for()
        route, answer = late[0]
        route.fulfill(response=answer)
        page.wait_for_timeout(300)
        page.locator("[data-box]").first.wait_for()
        expect(page.get_by_test_id("failure")).to_have_count(0)
