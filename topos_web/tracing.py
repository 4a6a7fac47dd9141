"""Tells the page what is being traced and since when, before there is a plan to show; cancels a trace, and starts it again."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response

from topos_web.events import Hub
from topos_web.plans import Plans, Running


@dataclass(frozen=True, slots=True)
class Tracer:
    """Traces for a server: what goes wrong on the way is told on the page instead of ending a thread in silence."""

    plans: Plans
    hub: Hub

    def trace(self) -> None:
        """Traces every target anew; blocks until that is done."""
        try:
            self.plans.refresh()
        except Exception as error:
            self.hub.publish("broken", {"message": f"topos view: internal error while tracing: {error!r}"})
            raise

    def start(self) -> None:
        """Traces in a thread of its own, unless a trace runs."""
        if self.plans.running is None:
            threading.Thread(target=self.trace, name="topos-trace", daemon=True).start()


def told(running: Running | None) -> dict[str, Any]:
    """Gives what the page is told of a running trace; null where none runs."""
    if running is None:
        return {"running": None}
    seconds = round(time.monotonic() - running.begun, 3)
    return {"running": {"target": running.target, "step": running.step, "done": running.done, "total": running.total,
                        "seconds": seconds}}  # fmt: skip


def router(
    tracer: Tracer,
    problems: dict[int | str, dict[str, Any]],
    answer: Callable[[Request, Any], Response],
    only_known: Callable[[Request], None],
) -> APIRouter:
    """Builds the part of the API that is about traces; answers are written as the rest of the API writes them."""
    api = APIRouter(prefix="/api/v1/trace", responses=problems, dependencies=[Depends(only_known)])
    plans = tracer.plans

    def state() -> dict[str, Any]:
        targets: Sequence[str] = plans.planner.targets()
        return {"targets": targets, **told(plans.running)}

    @api.get("", summary="What is to be traced, and what a running trace is at")
    def trace(request: Request) -> Response:
        return answer(request, state())

    @api.post("/cancel", summary="Ends the running trace; the last good plans stay")
    def cancel(request: Request) -> Response:
        plans.planner.cancel()
        return answer(request, state())

    @api.post("/again", summary="Traces every target anew")
    def again(request: Request) -> Response:
        tracer.start()
        return answer(request, state())

    return api
