"""Events for pages that cannot hold a stream: numbered, kept for a while, and never silently lost."""

from __future__ import annotations

from starlette.testclient import TestClient

from topos_web import app, static
from topos_web.events import KEPT, Hub
from topos_web.plans import Plans


def test_events_behind_a_number_are_given_once() -> None:
    hub = Hub()
    hub.publish("saved", {"files": ["a.py"]})
    start = hub.after(None)
    assert start == {"last": 1, "events": [], "missed": False}
    hub.publish("traced", {"plans": ["x"]})
    found = hub.after(start["last"])
    assert [(one["event"], one["data"]) for one in found["events"]] == [("traced", {"plans": ["x"]})]
    assert hub.after(found["last"])["events"] == []


def test_who_comes_too_late_is_told_that_events_are_missing() -> None:
    hub = Hub()
    for _ in range(KEPT + 1):
        hub.publish("traced", {})
    assert hub.after(0)["missed"]
    assert not hub.after(1)["missed"]
    assert len(hub.after(1)["events"]) == KEPT
    assert hub.after(KEPT + 2)["missed"]  # another server's number


def test_the_api_gives_them(plans: Plans) -> None:
    from tests.web.serving import TOKEN

    hub = Hub()
    with TestClient(app.build(plans, hub, TOKEN, static.load()), base_url="http://127.0.0.1") as client:
        headers = {"authorization": f"Bearer {TOKEN}"}
        assert client.get("/api/v1/events/poll", headers=headers).json()["last"] == 0
        hub.publish("saved", {"files": ["model.py"]})
        told = client.get("/api/v1/events/poll", params={"after": 0}, headers=headers).json()
        assert told["events"][0] == {"number": 1, "event": "saved", "data": {"files": ["model.py"]}}
        assert client.get("/api/v1/events/poll", params={"after": -1}, headers=headers).status_code == 422
