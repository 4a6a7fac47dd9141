"""What a page is told before there is a plan: the target, the step, since when; a trace can be ended and begun anew."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.web.documents import convolution, decoder, norms
from tests.web.planners import GivenPlanner
from tests.web.serving import TOKEN
from topos_web import app, static
from topos_web.agents import AgentPlanner
from topos_web.events import Hub
from topos_web.plans import Plans, Progress, Traced, untold

MODEL = """\
import pathlib, time
import numpy as np
import topos_core as tp

begun = pathlib.Path(__file__).with_name("begun")
begun.touch()
while not begun.with_name("go on").exists():
    time.sleep(0.01)


@tp.model(x=tp.f32[4, 8])
def main(x):
    return np.tanh(x) * 2.0
"""


BROKEN = {"code": "TP403", "message": "syntax error: invalid syntax", "path": "a.py", "line": 3, "column": 0}


class HeldPlanner(GivenPlanner):
    """Traces until it is let go or cancelled."""

    def __init__(self, *documents: dict[str, Any]) -> None:
        super().__init__(*documents)
        self.begun, self.go = threading.Event(), threading.Event()

    def trace(self, progress: Progress = untold) -> Iterator[Traced]:
        progress("models/norms.py", "importing", 0, 2)
        self.begun.set()
        assert self.go.wait(20)
        self.begun.clear()
        self.go.clear()
        yield from self.traced

    def cancel(self) -> None:
        self.go.set()


@pytest.fixture
def held() -> HeldPlanner:
    return HeldPlanner(norms())


@pytest.fixture
def client(held: HeldPlanner) -> Iterator[TestClient]:
    with TestClient(app.build(Plans(held), Hub(), TOKEN, static.load()), base_url="http://127.0.0.1:8470") as client:
        client.headers["authorization"] = f"Bearer {TOKEN}"
        yield client
        held.go.set()


def test_a_running_trace_is_told_with_its_step(client: TestClient, held: HeldPlanner) -> None:
    assert client.get("/api/v1/trace").json() == {"targets": [norms()["target"]], "running": None}
    client.post("/api/v1/trace/again")
    assert held.begun.wait(20)
    running = client.get("/api/v1/trace").json()["running"]
    assert {"target": "models/norms.py", "step": "importing", "done": 0, "total": 2}.items() <= running.items()
    assert 0 <= running["seconds"] < 20
    assert client.get("/api/v1/plans").json() == []
    client.post("/api/v1/trace/cancel")
    until(lambda: client.get("/api/v1/trace").json()["running"] is None)
    assert [plan["target"] for plan in client.get("/api/v1/plans").json()] == [norms()["target"]]


def test_one_trace_runs_at_a_time(client: TestClient, held: HeldPlanner) -> None:
    client.post("/api/v1/trace/again")
    assert held.begun.wait(20)
    before = threading.active_count()
    assert client.post("/api/v1/trace/again").json()["running"] is not None
    assert threading.active_count() == before


class SteppedPlanner(GivenPlanner):
    """Lets the test look at every step between two targets."""

    def __init__(self, *documents: dict[str, Any]) -> None:
        super().__init__(*documents)
        self.between: Callable[[], None] = lambda: None

    def trace(self, progress: Progress = untold) -> Iterator[Traced]:
        for traced in self.traced:
            progress(traced.target, "importing", 0, 2)
            self.between()
            yield traced


def test_each_target_is_told_as_soon_as_it_is_traced() -> None:
    planner = SteppedPlanner(norms(), convolution(observed=True), decoder(100))
    planner.traced[1] = Traced("models/broken.py", None, BROKEN)
    names = [traced.target for traced in planner.traced]
    told: list[list[str]] = []
    ends: list[int] = []
    plans = Plans(planner, lambda moved: told.append([plan.target for plan in moved]), progressed=lambda running: None)
    seen: list[list[str]] = []
    planner.between = lambda: seen.append([plan.target for plan in plans.all()])
    plans.progressed = lambda running: ends.append(len(plans.all())) if running is None else None
    assert [plan.target for plan in plans.refresh()] == names
    assert seen == [names[:0], names[:1], names[:2]]
    assert told == [[name] for name in names]
    assert ends == [3]  # the end is told behind all states
    told.clear()
    assert plans.refresh() == plans.all()[1:2]  # what failed has failed again, nothing else is new
    assert told == [["models/broken.py"]]


def test_a_file_that_fails_whole_is_told_at_its_entries_and_its_repair_at_once() -> None:
    entry, other = norms(), convolution(observed=True)
    planner = SteppedPlanner(entry, other)
    good = list(planner.traced)
    plans = Plans(planner)
    whole = Traced(entry["target"].partition(":")[0], None, BROKEN)

    def states() -> list[tuple[str, bool, bool]]:
        return [(plan.target, plan.document is not None, plan.error is not None) for plan in plans.all()]

    planner.traced[0] = whole
    plans.refresh()
    assert states() == [(whole.target, False, True), (other["target"], True, False)]
    planner.traced[:] = good
    seen: list[list[tuple[str, bool, bool]]] = []
    planner.between = lambda: seen.append(states())
    plans.refresh()
    assert whole.target not in [target for target, *_ in seen[1]]  # while the second is still to come
    assert (entry["target"], True, False) in seen[1]
    planner.traced[0] = whole
    seen.clear()
    plans.refresh()
    assert seen[1][0] == (entry["target"], True, True)
    assert states() == [(entry["target"], True, True), (other["target"], True, False)]


def test_an_end_in_the_middle_keeps_what_was_traced() -> None:
    planner = SteppedPlanner(norms(), convolution(observed=True))
    ends: list[None] = []
    plans = Plans(planner, progressed=lambda running: ends.append(running) if running is None else None)

    def fails_at_the_second() -> None:
        if plans.all():
            raise RuntimeError("the agent is gone")

    planner.between = fails_at_the_second
    with pytest.raises(RuntimeError, match="the agent is gone"):
        plans.refresh()
    assert [plan.target for plan in plans.all()] == [norms()["target"]]
    assert ends == [None]
    planner.between = lambda: None
    assert len(plans.refresh()) == 1


def test_a_cancelled_trace_is_told_and_can_be_begun_anew(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(MODEL)
    planner = AgentPlanner([str(tmp_path / "model.py")])
    steps: list[tuple[str, str]] = []
    plans = Plans(planner, progressed=lambda running: running and steps.append((running.target, running.step)))
    try:
        thread = threading.Thread(target=plans.refresh)
        thread.start()
        until((tmp_path / "begun").exists)
        planner.cancel()
        thread.join(20)
        (plan,) = plans.all()
        assert plan.error is not None
        assert (plan.target, plan.error["code"]) == ("model.py", "cancelled")
        assert steps == [("model.py", "starting"), ("model.py", "importing")]
        (tmp_path / "go on").touch()
        (plan,) = plans.refresh()
        assert (plan.target, plan.error) == ("model.py:main", None)
        assert steps[-1] == ("model.py", "main")
    finally:
        planner.close()


def until(holds: Callable[[], bool], seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)
