"""Runs the page's server in a thread, for tests that need a real socket."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import uvicorn

from topos_web import app, static
from topos_web.events import Hub
from topos_web.plans import Planner, Plans
from topos_web.profiles import Profile
from topos_web.server import bind
from topos_web.tracing import told

TOKEN = "test-token"


@dataclass(frozen=True)
class Served:
    base: str
    plans: Plans
    hub: Hub

    @property
    def url(self) -> str:
        return f"{self.base}/?token={TOKEN}"

    def refresh(self) -> None:
        """Traces again and tells the open pages, as a save does."""
        self.plans.refresh()


@contextlib.contextmanager
def serving(planner: Planner, *, trace: bool = True, profiles: Sequence[Profile] = ()) -> Iterator[Served]:
    hub = Hub()
    plans = Plans(
        planner,
        lambda moved: hub.publish("traced", {"plans": [plan.id for plan in moved]}),
        profiles,
        lambda running: hub.publish("tracing", told(running)),
    )
    if trace:
        plans.refresh()
    bound = bind(0)
    config = uvicorn.Config(
        app.build(plans, hub, TOKEN, static.load()), log_level="error", access_log=False, lifespan="off", ws="none",
        timeout_graceful_shutdown=1,
    )  # fmt: skip
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield Served(f"http://127.0.0.1:{bound.getsockname()[1]}", plans, hub)
    finally:
        hub.close()
        server.should_exit = True
        thread.join(5)
        bound.close()
