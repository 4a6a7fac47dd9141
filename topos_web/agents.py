"""Plans through the session's agents: one per project, in which the user's code runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from topos_core.errors import ConfigurationError, ToposError, TraceError
from topos_core.session.asking import asked_of_plan
from topos_core.session.client import Agent, Cancelled
from topos_core.session.dimensions import refuse_unknown_dims
from topos_core.session.machines import machines
from topos_core.session.messages import failure
from topos_core.session.places import error_of
from topos_core.session.projects import Projects, expand
from topos_core.session.workspace import Target, Workspace, parse_target
from topos_web.plans import Failure, Options, PlannerError, Progress, Traced, untold

_CANCELLED: Final = failure("cancelled", "the trace was cancelled; a save of the file starts it again")


class AgentPlanner:
    """Traces the command line's targets, each in its own project's agent; named there, they are trusted.

    Raises:
        ConfigurationError: A target names no file, or a project's settings cannot be used.
        TraceError: TP408, a target's file has no such entry. An error that an edit of the file mends is told by the trace.
    """

    def __init__(self, texts: Sequence[str], *, untrusted: bool = False, dims: Sequence[tuple[str, int]] = ()) -> None:
        self._projects = Projects(self._step, untrusted=untrusted)
        self._dims = dims
        self._of_target: dict[str, Workspace] = {}
        self._read: dict[str, frozenset[str]] = {}
        self._progress: Progress = untold
        self._at = ""
        self._cancelled = False
        targets = [target for text in texts for target in expand(parse_target(text), self._projects)]
        self._targets = list(dict.fromkeys(targets))
        for target in self._targets:
            self._find(target)

    def targets(self) -> Sequence[str]:
        """Names what is traced, relative to its project."""
        return [self._name(target) for target in self._targets]

    def cancel(self) -> None:
        """Ends the running trace; the targets that are still to come are not traced either."""
        self._cancelled = True
        self._projects.cancel()

    def trace(self, progress: Progress = untold) -> Iterator[Traced]:
        """Traces every target anew and gives each when it is traced; what fails is told, and stops none of the others."""
        self._cancelled, self._progress = False, progress
        for target in self._targets:
            yield from self._trace(target)

    def changes(self, target: str, options: Options) -> Mapping[str, Any]:
        """Plans a traced target again under other options and gives what differs."""
        found: Mapping[str, Any] = self._ask(
            target, lambda agent: agent.replan(target, self._asked(target, options), changes=True)
        )["changes"]
        return found

    def give_up(self, target: str) -> None:
        """Ends the process that answers the running question; the next question finds the target traced anew."""
        workspace = self._of_target[target]
        self._projects.agent(workspace).cancel(os.path.join(workspace.root, target.rpartition(":")[0]))

    def emit(self, target: str, options: Options) -> str:
        """Emits a traced target as StableHLO text."""
        return str(self._ask(target, lambda agent: agent.emit(target, self._asked(target, options)))["text"])

    def phases(self, target: str, value: int, options: Options) -> Mapping[str, Any]:
        """Gives the recorded ops, the group and the loop nest of what runs at a value."""
        groups: list[dict[str, Any]] = self._ask(
            target, lambda agent: agent.phases(target, [value], self._asked(target, options))
        )["phases"]
        return groups[0]

    def kernels(self, target: str, region: str, options: Options) -> Mapping[str, Any]:
        """Lists the kernels that run a taken region, with their texts."""
        found: Mapping[str, Any] = self._ask(
            target, lambda agent: agent.kernels(target, region, self._asked(target, options))
        )["listing"]
        return found

    def certificate(self, target: str, region: str, options: Options) -> Mapping[str, Any]:
        """Gives what algebra says of a taken region's match."""
        found: Mapping[str, Any] = self._ask(
            target, lambda agent: agent.certificate(target, region, self._asked(target, options))
        )["certificate"]
        return found

    def files(self) -> Sequence[str]:
        """Names every file that the traces read, as absolute paths."""
        named = {target.path for target in self._targets}
        return sorted(named.union(*list(self._read.values())))

    def root(self, target: str) -> str:
        """Names the folder that a target's paths are relative to."""
        return self._of_target[target].root

    def dims(self) -> Sequence[tuple[str, int]]:
        """Gives the extents that the command line named."""
        return self._dims

    def machines(self) -> Sequence[str]:
        """Names the machine profiles that may be asked for."""
        return machines()

    def close(self) -> None:
        """Ends the agents."""
        self._projects.close()

    def _find(self, target: Target) -> None:
        self._projects.workspace(target.path)
        try:
            missing = self._projects.missing(target)
        except ToposError as error:
            if error.code == "TP505":
                raise
            return  # an edit mends it: which entries the file has is then known
        if missing is not None:
            raise TraceError(missing["message"], code=missing["code"])

    def _name(self, target: Target) -> str:
        relative = self._projects.workspace(target.path).relative(target.path)
        return relative + (f":{target.name}" if target.name else "")

    def _step(self, step: str, done: int, total: int) -> None:
        self._progress(self._at, step, done, total)

    def _trace(self, target: Target) -> list[Traced]:
        workspace = self._projects.workspace(target.path)
        name = self._name(target)
        if self._cancelled:
            return [Traced(name, None, _CANCELLED)]
        self._at = name
        self._progress(name, "starting", 0, 0)
        options = asked_of_plan(workspace.configuration, {"sources": True}, dims=self._dims)
        try:
            reply = self._projects.trace(target, options)
            if len(self._targets) == 1:  # of several, each may have its own
                refuse_unknown_dims(self._dims, [reply])
        except Cancelled:
            return [Traced(name, None, _CANCELLED)] if self._cancelled else []  # else the server ends
        except ConfigurationError as error:
            return [Traced(name, None, error_of(error, target.path, workspace.root))]
        if "imports" in reply:  # of a process that ended early it is not known: what it read before still counts
            self._read[target.path] = frozenset(reply["imports"])
        entries = reply.get("entries", [{"target": name, "error": reply.get("error")}])
        for entry in entries:
            if self._of_target.setdefault(entry["target"], workspace).root != workspace.root:
                message = f"two projects have a target called {entry['target']}; open them one by one"
                raise ConfigurationError(message, code="TP504")
        return [Traced(e["target"], e.get("document"), _with_output(e.get("error"), reply)) for e in entries]

    def _asked(self, target: str, options: Options) -> dict[str, Any]:
        """Completes the page's options by those of the target's project, as every command does."""
        return asked_of_plan(self._of_target[target].configuration, {**options, "sources": True}, dims=self._dims)

    def _ask(self, target: str, question: Callable[[Agent], dict[str, Any]]) -> dict[str, Any]:
        workspace = self._of_target[target]
        try:
            reply = question(self._projects.agent(workspace))
        except ToposError as error:
            raise PlannerError(error_of(error, "", workspace.root)) from error
        except Cancelled as error:
            raise PlannerError(failure("cancelled", "the question was cancelled; ask again")) from error
        if "error" in reply:
            raise PlannerError(reply["error"])
        return reply


def _with_output(error: Failure | None, reply: Mapping[str, Any]) -> Failure | None:
    return error if error is None or error.get("output") else {**error, "output": reply.get("output", "")}
