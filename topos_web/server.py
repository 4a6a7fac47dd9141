"""Runs the page's server on loopback until it is told to stop."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
from collections.abc import Callable, Iterator, Sequence
from types import FrameType

import uvicorn

from topos_web import app, static
from topos_web.events import Hub
from topos_web.plans import Plan, Planner, Plans, Running
from topos_web.profiles import Profile
from topos_web.stop import Stop
from topos_web.tracing import Tracer, told
from topos_web.watch import Watcher

HOST = "127.0.0.1"


class _Server(uvicorn.Server):
    """Ends the pages' event streams on a signal, else they would hold the server open."""

    def __init__(self, config: uvicorn.Config, hub: Hub) -> None:
        super().__init__(config)
        self._hub = hub

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leaves signals to `Stop`, which listens before and after serving too."""
        yield

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stops serving; ends the streams first."""
        self._hub.close()
        super().handle_exit(sig, frame)


def serve(
    planner: Planner,
    port: int,
    stop: Stop,
    *,
    profiles: Sequence[Profile] = (),
    framed: bool = False,
    listening: Callable[[str], None],
    traced: Callable[[Sequence[Plan]], None],
    rested: Callable[[Sequence[Plan]], None],
) -> None:
    """Serves until `stop` is asked.

    Calls `listening` with the URL at once, `traced` with every plan that changed as soon as its target is traced, and `rested`
    with all plans after every trace of all targets.

    `framed` lets VS Code show the page in a panel of its own; otherwise no page may hold it in a frame.
    """
    token = secrets.token_urlsafe(24)
    hub = Hub()

    def changed(moved: Sequence[Plan]) -> None:
        traced(moved)
        for plan in moved:
            graph = plan.graph.digest if plan.graph else None
            state = {"id": plan.id, "revision": plan.revision, "graph": graph, "failed": plan.error is not None}
            hub.publish("plan", {**state, "changed_files": list(saved)})
        hub.publish("traced", {"plans": [plan.id for plan in plans.all()]})

    def progressed(running: Running | None) -> None:
        if running is None:
            rested(plans.all())
        hub.publish("tracing", told(running))

    saved: list[str] = []

    def noticed(files: Sequence[str]) -> None:
        saved[:] = [shown(file) for file in files]
        hub.publish("saved", {"files": list(saved)})
        tracer.trace()

    plans = Plans(planner, changed, profiles, progressed)
    tracer = Tracer(plans, hub)
    bound = bind(port)
    bound.listen(128)  # who reads the URL may connect at once; the server takes over what waits
    config = uvicorn.Config(
        app.build(plans, hub, token, static.load(), framed=framed), log_level="error", access_log=False, server_header=False,
        timeout_graceful_shutdown=2, ws="none", lifespan="off",
    )  # fmt: skip
    watcher = Watcher(planner.files, noticed)
    server = _Server(config, hub)
    stop.then(server.handle_exit)
    listening(f"http://{HOST}:{bound.getsockname()[1]}/?token={token}")
    tracer.start()
    watcher.start()
    try:
        server.run(sockets=[bound])
    finally:
        watcher.stop()
        planner.close()
        bound.close()


def shown(path: str) -> str:
    """Names a file for people: from the working directory where it is in there, else without its folder."""
    relative = os.path.relpath(path)
    return os.path.basename(path) if relative.startswith(os.pardir) else relative.replace(os.sep, "/")


def bind(port: int) -> socket.socket:
    """Binds the wished loopback port, or a free one where it is taken."""
    for wished in (port, 0):
        bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind((HOST, wished))
        except OSError:
            bound.close()
            if wished == 0:
                raise
        else:
            return bound
    raise AssertionError("unreachable: port 0 binds or raises")
