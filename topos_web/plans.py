"""The targets on the page: each keeps its last good document, the error that a later save brought, and a revision."""

from __future__ import annotations

import hashlib
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from topos_web import payloads
from topos_web.payloads import Document, Payload
from topos_web.profiles import Profile

Options = Mapping[str, Any]
Failure = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Traced:
    """What tracing one target gave: a document, or the error that stopped it."""

    target: str
    document: Document | None
    error: Failure | None


@dataclass(frozen=True, slots=True)
class Running:
    """What a running trace is at: the target, the agent's step, how many of how many are done, and since when it runs."""

    target: str
    step: str
    done: int
    total: int
    begun: float


Progress = Callable[[str, str, int, int], None]
"""Told the target, the step, how many steps are done and how many there are; 0 where that is not known."""


def untold(target: str, step: str, done: int, total: int) -> None:
    """Hears of progress and does nothing."""


class Planner(Protocol):
    """Turns targets into documents; everything that runs the user's code stands behind it."""

    def targets(self) -> Sequence[str]:
        """Names what is traced, as the command line gave it."""
        ...

    def trace(self, progress: Progress = untold) -> Iterator[Traced]:
        """Traces every target anew, one after the other; gives each as soon as it is traced, in the command line's order."""
        ...

    def cancel(self) -> None:
        """Ends the running trace, which then gives an error per target; does not wait."""
        ...

    def changes(self, target: str, options: Options) -> Mapping[str, Any]:
        """Plans a traced target again under other options and gives what differs; raises `PlannerError`."""
        ...

    def give_up(self, target: str) -> None:
        """Ends the running question about a target, which then raises `PlannerError`; does not wait."""
        ...

    def emit(self, target: str, options: Options) -> str:
        """Emits a traced target as StableHLO text; raises `PlannerError`."""
        ...

    def phases(self, target: str, value: int, options: Options) -> Mapping[str, Any]:
        """Gives what runs at a value in its three forms; raises `PlannerError`."""
        ...

    def kernels(self, target: str, region: str, options: Options) -> Mapping[str, Any]:
        """Lists the kernels that run a taken region; raises `PlannerError`."""
        ...

    def certificate(self, target: str, region: str, options: Options) -> Mapping[str, Any]:
        """Gives what algebra says of a taken region's match; raises `PlannerError`."""
        ...

    def files(self) -> Sequence[str]:
        """Names the files whose change asks for a new trace, as absolute paths."""
        ...

    def root(self, target: str) -> str:
        """Names the folder that a target's paths are relative to."""
        ...

    def dims(self) -> Sequence[tuple[str, int]]:
        """Gives the extents that the command line named."""
        ...

    def machines(self) -> Sequence[str]:
        """Names the machine profiles that may be asked for."""
        ...

    def close(self) -> None:
        """Ends the process behind it."""
        ...


class PlannerError(Exception):
    """A target that could not be planned or emitted; `failure` is the agent's error object."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure["message"])
        self.failure = failure


@dataclass(frozen=True, slots=True)
class Plan:
    """One target's state; `revision` grows with every trace. `previous` is the document before the last good save, and
    `previous_graph` the digest of its graph."""

    id: str
    target: str
    revision: int = 0
    document: Document | None = None
    error: Failure | None = None
    previous: Document | None = None
    graph: Payload | None = None
    regions: Payload | None = None
    previous_graph: str | None = None


@dataclass(slots=True)
class Plans:
    """All targets' states; replaced whole under a lock, read without one.

    `changed` is told every state as soon as its target is traced, `progressed` None when the trace is over.
    """

    planner: Planner
    changed: Callable[[Sequence[Plan]], None] = lambda plans: None
    profiles: Sequence[Profile] = ()
    progressed: Callable[[Running | None], None] = lambda running: None
    running: Running | None = None
    _emitted: deque[tuple[Document, str]] = field(default_factory=lambda: deque(maxlen=8))
    _plans: dict[str, Plan] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def all(self) -> tuple[Plan, ...]:
        """Lists every target's state in the order of the command line."""
        return tuple(self._plans.values())

    def get(self, plan_id: str) -> Plan | None:
        """Finds a target's state by its id."""
        return self._plans.get(plan_id)

    def profile(self, target: str) -> Profile | None:
        """Finds the measurements of a target; the last one named on the command line wins."""
        return next((one for one in reversed(self.profiles) if one["target"] == target), None)

    def keep_emitted(self, document: Document, text: str) -> None:
        """Remembers what a document's plan emits: after a save nobody can emit it again."""
        if self.emitted(document) is None:
            self._emitted.append((document, text))

    def emitted(self, document: Document) -> str | None:
        """Gives what was kept of a document's plan."""
        return next((text for kept, text in tuple(self._emitted) if kept is document), None)

    def refresh(self) -> tuple[Plan, ...]:
        """Traces every target; keeps the last good document of one that fails now. Returns the states that changed."""
        with self._lock:
            before = self._plans
            found: dict[str, Plan] = {}
            moved: list[Plan] = []
            try:
                for traced in self.planner.trace(self._progress(time.monotonic())):
                    states = self._with_their_file(traced) or [self._next(traced)]
                    found |= {plan.id: plan for plan in states}
                    left = {id: plan for id, plan in self._plans.items() if not _failed_whole(plan, traced)}
                    moved += self._now(left | {plan.id: plan for plan in states})
                for old in before.values():  # a mark that an edit removed: the plan stays, with the reason
                    if old.id not in found and old.document is not None:
                        found[old.id] = self._next(Traced(old.target, None, _unmarked(old.target)))
                moved += self._now(found)
            finally:
                self._at(None)
        return tuple(moved)

    def _now(self, plans: dict[str, Plan]) -> list[Plan]:
        """Replaces all states, and tells those that are new."""
        moved = [plan for plan in plans.values() if plan is not self._plans.get(plan.id)]
        self._plans = plans
        if moved:
            self.changed(moved)
        return moved

    def _with_their_file(self, traced: Traced) -> list[Plan]:
        """Gives the states of entries whose whole file failed: they stay, with its error, in place of the file."""
        entries = [old for old in self._plans.values() if old.target.startswith(f"{traced.target}:") and old.document]
        return [self._next(Traced(old.target, None, traced.error)) for old in entries if traced.error is not None]

    def _progress(self, begun: float) -> Progress:
        return lambda target, step, done, total: self._at(Running(target, step, done, total, begun))

    def _at(self, running: Running | None) -> None:
        self.running = running
        self.progressed(running)

    def _next(self, traced: Traced) -> Plan:
        old = self._plans.get(plan_id(traced.target), Plan(plan_id(traced.target), traced.target))
        if traced.document is None:
            return replace(old, revision=old.revision + 1, error=traced.error)
        if old.document == traced.document and old.error is None:
            return old
        document = traced.document
        previous, known = old.previous, old.previous_graph
        if old.document != document:
            previous, known = old.document, old.graph.digest if old.graph is not None else None
        graph, regions = payloads.graph(document), payloads.regions(document)
        return Plan(old.id, old.target, old.revision + 1, document, None, previous, graph, regions, known)


def plan_id(target: str) -> str:
    """Names a target in URLs; the same in every session, so that a link survives a restart."""
    return hashlib.sha256(target.encode()).hexdigest()[:8]


def _failed_whole(plan: Plan, traced: Traced) -> bool:
    """Whether a state is the failure of a whole file of which an entry is traced now."""
    return plan.document is None and traced.target.startswith(f"{plan.target}:")


def _unmarked(target: str) -> Failure:
    message = f"{target} is no longer a marked entry; mark it again or restart topos view"
    place = {"path": None, "line": None, "column": None, "end_line": None, "end_column": None}
    return {"code": "TP402", "message": message, **place, "related": [], "output": ""}
