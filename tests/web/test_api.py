from __future__ import annotations

import gzip
import json
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.web.documents import convolution, decoder, hostile
from tests.web.planners import GivenPlanner
from topos_web.packing import unpack
from topos_web.plans import Plans, Traced, plan_id


@pytest.fixture
def plan(client: TestClient) -> dict[str, Any]:
    found: dict[str, Any] = client.get("/api/v1/plans").json()[0]
    return found


def test_plans_are_listed_in_order_with_their_counts(client: TestClient) -> None:
    listed = client.get("/api/v1/plans").json()
    assert [p["target"] for p in listed] == ["examples/convolution.py:hidden_observed", "models/norms.py:block"]
    assert listed[0]["counts"] == {"taken": 1, "declined": 0, "blocked": 1, "near_miss": 0, "ops": 18, "opaque": 0}
    assert listed[0]["error"] is None


def test_an_id_survives_a_restart() -> None:
    assert plan_id("models/norms.py:block") == plan_id("models/norms.py:block") == "cd7b115c"


def test_skeleton_counts_ops_per_scope(client: TestClient, plan: dict[str, Any]) -> None:
    skeleton = client.get(f"/api/v1/plans/{plan['id']}/skeleton").json()
    assert skeleton["scope_ops"] == [18]
    assert skeleton["root"] == "/srv/models"
    assert skeleton["consumer"] == "home"


def test_graph_columns_rebuild_the_document(client: TestClient, plan: dict[str, Any]) -> None:
    document = convolution(observed=True)
    graph = client.get(f"/api/v1/plans/{plan['id']}/graph").json()
    flat = iter(graph["ops"]["operands"])
    assert [[next(flat) for _ in range(n)] for n in graph["ops"]["arity"]] == document["ops"]["operands"]
    assert [graph["attributes"][i] for i in graph["ops"]["attributes"]] == document["ops"]["attributes"]
    assert graph["locations"] == document["locations"]
    assert "sources" not in graph


def test_graph_is_immutable_under_its_digest_only(client: TestClient, plan: dict[str, Any]) -> None:
    path = f"/api/v1/plans/{plan['id']}/graph"
    named = client.get(path, params={"digest": plan["graph"]})
    assert "immutable" in named.headers["cache-control"]
    assert client.get(path).headers["cache-control"] == "no-cache"
    answer = client.get(path, params={"digest": "another"})
    assert (answer.status_code, answer.json()["code"]) == (409, "stale")
    assert client.get(path, headers={"if-none-match": named.headers["etag"]}).status_code == 304


@pytest.mark.parametrize(
    "path", ["plans", "trace", "plans/{}/skeleton", "plans/{}/graph", "plans/{}/regions", "plans/{}/export", "diff"]
)
def test_what_a_query_asks_and_nobody_reads_is_refused(client: TestClient, plan: dict[str, Any], path: str) -> None:
    answer = client.get(f"/api/v1/{path.format(plan['id'])}", params={"format": "zz", "token": "x"})
    assert (answer.status_code, answer.json()["code"]) == (422, "request")
    if path != "diff":
        assert "query.format: no such parameter; it takes " in answer.json()["message"]


def test_graph_is_packed_where_that_is_accepted(client: TestClient, plan: dict[str, Any]) -> None:
    path = f"/api/v1/plans/{plan['id']}/graph"
    plain = client.get(path, headers={"accept-encoding": "identity"})
    assert "content-encoding" not in plain.headers
    with client.stream("GET", path, headers={"accept-encoding": "gzip"}) as packed:
        assert packed.headers["content-encoding"] == "gzip"
        assert gzip.decompress(b"".join(packed.iter_raw())) == plain.content


def test_regions_say_what_the_document_says(client: TestClient, plan: dict[str, Any]) -> None:
    document = convolution(observed=True)
    regions = client.get(f"/api/v1/plans/{plan['id']}/regions").json()
    assert unpack(regions["regions"]) == document["regions"]
    assert regions["observations"] == document["observations"]
    assert regions["totals"] == document["totals"]


def test_a_node_tells_its_readers_regions_and_call_path(client: TestClient, plan: dict[str, Any]) -> None:
    node = client.get(f"/api/v1/plans/{plan['id']}/nodes/3").json()
    assert (node["name"], node["users"], node["operands"]) == ("unfold", [4], [0])
    assert node["regions"] == ["convolution@10"]
    assert node["observations"] == [1]
    assert node["frames"][0]["line"] == 8


@pytest.mark.parametrize(
    "path",
    ["plans/ffffffff/skeleton", "plans/{id}/nodes/18", "plans/{id}/sources/1", "diff?a={id}&b=ffffffff", "diff?a={id}&b={id}@previous"],
)  # fmt: skip
def test_what_is_not_there_is_told(client: TestClient, plan: dict[str, Any], path: str) -> None:
    answer = client.get("/api/v1/" + path.format(id=plan["id"]))
    assert answer.status_code == 404
    assert answer.json()["code"] == "unknown"


def ask(client: TestClient, plan: dict[str, Any], options: dict[str, Any], base: int | None = None, **more: Any) -> Any:
    body = {"base": plan["revision"] if base is None else base, "options": options, **more}
    return client.post(f"/api/v1/plans/{plan['id']}/whatif", json=body)


def test_whatif_gives_only_what_changes(client: TestClient, plan: dict[str, Any], planner: GivenPlanner) -> None:
    changes = ask(client, plan, {"ignore": [1]}).json()
    changed = unpack(changes["changed"])
    assert [region["id"] for region in changed] == ["convolution@10"]
    assert changed[0]["verdict"] == "taken"
    assert changes["removed"] == []
    assert changes["counts"]["blocked"] == 0
    assert planner.asked == [("examples/convolution.py:hidden_observed", {"ignore": [1]})]


def test_whatif_carries_the_curve_only_where_it_is_asked_for(client: TestClient, plan: dict[str, Any]) -> None:
    assert ask(client, plan, {"ignore": [1]}).json()["liveness"] is None
    assert ask(client, plan, {"ignore": [1]}, liveness=True).json()["liveness"]["steps"]


def test_whatif_on_an_old_revision_is_stale(client: TestClient, plan: dict[str, Any]) -> None:
    answer = ask(client, plan, {}, base=0)
    assert (answer.status_code, answer.json()["code"]) == (409, "stale")


@pytest.mark.parametrize(
    "options",
    [{"consumer": "mars"}, {"observe": [-1]}, {"observe": ["x"]}, {"off": ["../x"]}, {"unknown": 1}, {"observe": [1] * 5000}],
)  # fmt: skip
def test_whatif_refuses_options_that_are_none(
    client: TestClient, plan: dict[str, Any], options: dict[str, Any]
) -> None:
    assert ask(client, plan, options).status_code == 422


def test_what_is_switched_off_is_written_as_comments_and_the_rest_as_a_command(
    client: TestClient, plan: dict[str, Any]
) -> None:
    options = {"off": ["convolution"], "fidelity": "exact", "observe": [3]}
    answer = client.post(f"/api/v1/plans/{plan['id']}/ascode", json={"base": plan["revision"], "options": options})
    found = answer.json()
    assert [edit["text"].strip() for edit in found["edits"]] == ["# topos: off[convolution]"]
    assert found["edits"][0]["path"] == "examples/convolution.py"
    assert found["nowhere"] == []
    assert found["command"] == "topos plan examples/convolution.py:hidden_observed --fidelity exact --observe 3"


def test_emitted_text_comes_from_the_planner(client: TestClient, plan: dict[str, Any]) -> None:
    body = {"base": plan["revision"], "options": {"consumer": "stablehlo"}}
    answer = client.post(f"/api/v1/plans/{plan['id']}/emitted", json=body)
    assert answer.json()["text"].startswith("module {")


def test_a_failed_emission_is_told_in_its_own_words() -> None:
    from tests.web.serving import TOKEN
    from topos_web import app, static
    from topos_web.events import Hub

    plans = Plans(GivenPlanner(hostile()))
    plans.refresh()
    with TestClient(app.build(plans, Hub(), TOKEN, static.load()), base_url="http://127.0.0.1") as client:
        plan = client.get(f"/api/v1/plans?token={TOKEN}").json()[0]
        path = f"/api/v1/plans/{plan['id']}/emitted?token={TOKEN}"
        answer = client.post(path, json={"base": plan["revision"]})
        assert answer.status_code == 422
        assert answer.json() == {"code": "TP410", "message": "op <script> has no StableHLO form"}
        assert answer.headers["content-type"] == "application/json"


def test_a_failed_save_keeps_the_last_good_plan(client: TestClient, planner: GivenPlanner, plans: Plans) -> None:
    target = planner.traced[0].target
    error = {"code": "TP401", "message": "`if` on a value", "path": "examples/convolution.py", "line": 9, "column": 4}
    planner.traced[0] = Traced(target, None, error)
    plans.refresh()
    state = client.get("/api/v1/plans").json()[0]
    assert state["error"] == error
    assert state["counts"]["blocked"] == 1
    assert client.get(f"/api/v1/plans/{state['id']}/regions").status_code == 200


def test_a_save_that_changes_nothing_keeps_the_revision(planner: GivenPlanner, plans: Plans) -> None:
    assert plans.refresh() == ()
    planner.traced[0] = Traced(planner.traced[0].target, convolution(observed=True) | {"digest": "0" * 64}, None)
    assert [p.revision for p in plans.refresh()] == [2]


def test_a_removed_mark_keeps_its_plan_with_the_reason(planner: GivenPlanner, plans: Plans) -> None:
    gone = planner.traced.pop(0)
    plans.refresh()
    plan = plans.get(plan_id(gone.target))
    assert plan is not None
    assert plan.document == gone.document
    assert plan.error is not None
    assert "no longer a marked entry" in plan.error["message"]


def test_a_whole_files_error_stands_at_each_of_its_plans(planner: GivenPlanner, plans: Plans) -> None:
    error = {"code": "TP403", "message": "syntax error", "path": "models/norms.py", "line": 3, "column": 0}
    planner.traced[1] = Traced("models/norms.py", None, error)
    plans.refresh()
    kept = plans.get(plan_id("models/norms.py:block"))
    assert kept is not None
    assert kept.error == error


def test_diff_with_the_plan_before_the_save(client: TestClient, planner: GivenPlanner, plans: Plans) -> None:
    target = planner.traced[0].target
    planner.traced[0] = Traced(target, convolution(observed=False) | {"target": target}, None)
    plans.refresh()
    name = plan_id(target)
    diff = client.get("/api/v1/diff", params={"a": f"{name}@previous", "b": name}).json()
    assert diff["of_before"] == diff["of_after"] == list(range(18))
    assert diff["marks"] == [0] * 18
    told = [(r["before"] and r["before"]["verdict"], r["after"] and r["after"]["pattern"]) for r in diff["regions"]]
    assert told == [(None, "conv_bn_activation"), ("blocked", None)]


def test_values_of_before_a_save_are_told_in_the_numbers_of_now(
    client: TestClient, plan: dict[str, Any], planner: GivenPlanner, plans: Plans
) -> None:
    target = planner.traced[0].target
    planner.traced[0] = Traced(target, decoder(100) | {"target": target}, None)
    path = f"/api/v1/plans/{plan['id']}/renumbered"
    stale = client.get(path, params={"since": plan["graph"]})
    assert (stale.status_code, stale.json()["code"]) == (409, "stale")  # nothing was saved yet
    plans.refresh()
    moved = client.get(path, params={"since": plan["graph"]}).json()["values"]
    assert len(moved) == 18
    now = [value for value in moved if value is not None]
    assert len(set(now)) == len(now)
    names = [decoder(100)["names"][row] for row in decoder(100)["ops"]["name"]]
    before = convolution(observed=True)
    told = [before["names"][row] for row in before["ops"]["name"]]
    assert [
        (value, told[old]) for old, value in enumerate(moved) if value is not None and names[value] != told[old]
    ] == []
    assert client.get(path, params={"since": "another"}).status_code == 409


def test_events_are_not_to_be_packed_on_the_way(plans: Plans) -> None:
    """A proxy that compresses answers holds events back until there are enough of them."""
    from tests.web.serving import TOKEN
    from topos_web import app, static
    from topos_web.events import Hub

    hub = Hub()
    hub.close()  # the stream then ends behind its first line
    with TestClient(app.build(plans, hub, TOKEN, static.load()), base_url="http://127.0.0.1") as client:
        answer = client.get(f"/api/v1/events?token={TOKEN}")
    assert answer.text.startswith("event: hello")
    assert "no-transform" in answer.headers["cache-control"]


def test_openapi_describes_every_route(client: TestClient) -> None:
    spec = client.get("/api/v1/openapi.json").json()
    names = {path.rsplit("/", 1)[1] for path in spec["paths"]}
    assert {"plans", "skeleton", "graph", "regions", "whatif", "emitted", "diff", "events"} <= names
    assert all(operation["summary"] for path in spec["paths"].values() for operation in path.values())


def test_payloads_stay_within_their_budget() -> None:
    plans = Plans(GivenPlanner(decoder(10_000)))
    plan = plans.refresh()[0]
    assert plan.graph is not None
    assert plan.regions is not None
    assert plan.graph.packed is not None
    assert plan.regions.packed is not None
    assert len(plan.graph.packed) + len(plan.regions.packed) <= 200_000
    json.loads(plan.graph.body)


def test_a_taken_region_has_a_certificate_and_no_other_has(client: TestClient, plan: dict[str, Any]) -> None:
    at = f"/api/v1/plans/{plan['id']}/certificate"
    said = client.post(at, json={"base": 1, "region": "window_reduce@17"}).json()
    assert said["answer"] == "true"
    assert said["text"].endswith("equal by algebra in 36 elements, with `max` left open")
    refused = client.post(at, json={"base": 1, "region": "convolution@10"})
    assert (refused.status_code, refused.json()["code"]) == (422, "TP505")
    assert client.post(at, json={"base": 7, "region": "window_reduce@17"}).status_code == 409


TITLES = ["window f32 max", "tile f32 8x3", "expression over rows: exp, sum (f32)"]


def test_kernels_of_a_taken_region_come_with_their_texts(client: TestClient, plan: dict[str, Any]) -> None:
    at = f"/api/v1/plans/{plan['id']}/kernels"
    listed = client.post(at, json={"base": 1, "region": "window_reduce@17"}).json()
    assert [kernel["title"] for kernel in listed["kernels"]] == TITLES
    assert listed["kernels"][0]["starts"] == [{"threads": 2, "words": {"items": 4, "rows": 6, "inner": 0}}]
    refused = client.post(at, json={"base": 1, "region": "convolution@10"})
    assert (refused.status_code, refused.json()["code"]) == (422, "TP505")
    assert client.post(at, json={"base": 7, "region": "window_reduce@17"}).status_code == 409
