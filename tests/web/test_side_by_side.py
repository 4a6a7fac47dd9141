"""The texts of two plans beside each other."""

from __future__ import annotations

from typing import Any

from starlette.testclient import TestClient

from tests.web.documents import convolution, norms
from tests.web.planners import GivenPlanner
from topos_web.plans import Plans, Traced, plan_id
from topos_web.side_by_side import emitted, sources

ONE = plan_id("examples/convolution.py:hidden_observed")


def changed(file: dict[str, Any]) -> list[tuple[list[str], list[str]]]:
    """Gives the lines of both sides that differ."""
    left, right = file["before"].split("\n"), file["after"].split("\n")
    return [(left[a:b], right[c:d]) for tag, a, b, c, d in file["blocks"] if tag != "equal"]


def test_sources_are_aligned_by_lines() -> None:
    (file,) = sources(convolution(observed=False), convolution(observed=True))
    assert changed(file) == [(["    # windows"], ['    tp.observe(windows, "windows")'])]


def test_a_targets_own_file_stands_beside_the_others_whatever_it_is_called() -> None:
    (file,) = sources(convolution(observed=True), norms())
    assert (file["path_before"], file["path_after"]) == ("examples/convolution.py", "models/norms.py")


def test_a_file_that_one_of_them_has_not_stands_alone() -> None:
    longer = norms() | {"paths": ["models/norms.py", "models/more.py"], "sources": [norms()["sources"][0], "x = 1\n"]}
    alone, same = sources(norms(), longer)
    assert (alone["path_before"], alone["path_after"]) == (None, "models/more.py")
    assert changed(same) == []


def test_emitted_lines_are_the_same_where_only_numbers_and_places_moved() -> None:
    before = 'a {\n  %v1 = exp %v0 loc("m.py":2:1)\n  %v2 = neg %v1 loc("m.py":3:1)\n}'
    after = 'a {\n  %v1 = exp %v0 loc("m.py":3:1)\n  %v2 = abs %v1\n  %v3 = neg %v1 loc("m.py":5:1)\n}'
    file = emitted(before, after, [0, 1, 3], [0, 1, 2, 3])
    assert changed(file) == [([], ["  %v2 = abs %v1"])]


def test_what_was_emitted_before_a_save_is_there_where_it_was_looked_at(
    client: TestClient, plans: Plans, planner: GivenPlanner
) -> None:
    query = {"a": f"{ONE}@previous", "b": ONE}
    document = convolution(observed=False) | {"target": "examples/convolution.py:hidden_observed"}
    planner.traced[0] = Traced(document["target"], document, None)
    plans.refresh()
    refused = client.get("/api/v1/diff/emitted", params=query)
    assert refused.status_code == 404
    assert "was not looked at" in refused.json()["message"]
    client.post(f"/api/v1/plans/{ONE}/emitted", json={"base": 2, "options": {"consumer": "stablehlo"}})
    planner.traced[0] = Traced(document["target"], convolution(observed=True), None)
    plans.refresh()
    (file,) = client.get("/api/v1/diff/emitted", params=query).json()
    assert "stablehlo.add" in file["before"]
    (text,) = client.get("/api/v1/diff/sources", params=query).json()
    assert len(changed(text)) == 1
    index = {"previous": "true"}
    assert "# windows" in client.get(f"/api/v1/plans/{ONE}/sources/0", params=index).json()["text"]


def test_a_running_question_is_given_up(client: TestClient, planner: GivenPlanner) -> None:
    assert client.post(f"/api/v1/plans/{ONE}/whatif/cancel").status_code == 200
    assert planner.given_up == ["examples/convolution.py:hidden_observed"]
