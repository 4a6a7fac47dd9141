"""Runs the page's server in a thread, for tests that need a real socket."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import uvicorn
from starlette.responses import HTMLResponse
from starlette.types import Receive, Scope, Send

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


class Room:
    """An application that one test after another furnishes: building one takes longer than most questions to it."""

    def __init__(self, planner: Planner) -> None:
        self.plans, self.hub = Plans(planner), Hub()
        self.application = app.build(self.plans, self.hub, TOKEN, static.load())

    def furnish(self, planner: Planner, profiles: Sequence[Profile] = ()) -> None:
        """Begins anew, with nothing of what was asked and told before."""
        self.hub.close()
        Hub.__init__(self.hub)
        hub = self.hub
        Plans.__init__(
            self.plans,
            planner,
            lambda moved: hub.publish("traced", {"plans": [plan.id for plan in moved]}),
            profiles,
            lambda running: hub.publish("tracing", told(running)),
        )


class Stages:
    """Servers that one test after another plays on: starting and ending one takes longer than most tests."""

    def __init__(self) -> None:
        self._stack = contextlib.ExitStack()
        self._idle: list[_Stage] = []

    @contextlib.contextmanager
    def serving(self, planner: Planner, *, trace: bool = True, profiles: Sequence[Profile] = ()) -> Iterator[Served]:
        """Serves a planner on a server that no test uses now."""
        stage = self._idle.pop() if self._idle else self._stack.enter_context(_started(Room(planner)))
        stage.room.furnish(planner, profiles)
        if trace:
            stage.room.plans.refresh()
        try:
            yield Served(stage.base, stage.room.plans, stage.room.hub)
        finally:
            stage.room.hub.close()
            self._idle.append(stage)

    def close(self) -> None:
        self._stack.close()


@contextlib.contextmanager
def serving(planner: Planner, *, trace: bool = True, profiles: Sequence[Profile] = ()) -> Iterator[Served]:
    """Serves a planner on a server of its own."""
    with contextlib.closing(Stages()) as stages, stages.serving(planner, trace=trace, profiles=profiles) as served:
        yield served


EMPTY = "empty.html"
"""Where a page goes that shows nothing: it names an icon, since a browser would ask for one without the token."""


@dataclass(frozen=True)
class _Stage:
    base: str
    room: Room

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        nothing = HTMLResponse('<!doctype html><link rel="icon" href="data:,"><title>nothing</title>')
        answer = nothing if scope["type"] == "http" and scope["path"].endswith(f"/{EMPTY}") else self.room.application
        await answer(scope, receive, send)


@contextlib.contextmanager
def _started(room: Room) -> Iterator[_Stage]:
    bound = bind(0)
    stage = _Stage(f"http://127.0.0.1:{bound.getsockname()[1]}", room)
    config = uvicorn.Config(
        stage, interface="asgi3", log_level="error", access_log=False, lifespan="off", ws="none",
        timeout_graceful_shutdown=1,
    )  # fmt: skip
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield stage
    finally:
        server.should_exit = True
        thread.join(5)
        bound.close()
