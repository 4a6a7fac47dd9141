"""Plans through the session's agents: one per project, in which the user's code runs."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from topos_core.errors import ConfigurationError, ToposError
from topos_core.session.client import Agent, Cancelled
from topos_core.session.messages import failure
from topos_core.session.places import error_of
from topos_core.session.workspace import Target, Workspace, marked_files, open_workspace, parse_target
from topos_web.payloads import Document
from topos_web.plans import Failure, Options, PlannerError, Traced

OPTIONS: Final = {"machine": "reference", "sources": True}  # verdicts never depend on the host


@dataclass(frozen=True, slots=True)
class _Home:
    """The project that a target belongs to."""

    workspace: Workspace
    agent: Agent


class AgentPlanner:
    """Traces the command line's targets, each in its own project's agent; named there, they are trusted.

    Raises:
        ConfigurationError: A target names nothing, or a project's settings cannot be used.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._homes: dict[str, _Home] = {}
        self._of_target: dict[str, _Home] = {}
        self._read: frozenset[str] = frozenset()
        self._lock = threading.Lock()
        self._targets = [target for text in texts for target in _expand(parse_target(text))]

    def trace(self) -> Sequence[Traced]:
        """Traces every target anew; what fails is told, and stops none of the others."""
        with self._lock:
            traced: list[Traced] = []
            read = {target.path for target in self._targets}
            for path, names in self._files().items():
                found = self._trace(path, names)
                traced += found
                read |= self._paths(path, found)
            self._read = frozenset(read)
            return traced

    def replan(self, target: str, options: Options) -> Document:
        """Plans a traced target again under other options."""
        document: Document = self._ask(target, options, "replan")["document"]
        return document

    def emit(self, target: str, options: Options) -> str:
        """Emits a traced target as StableHLO text."""
        return str(self._ask(target, options, "emit")["text"])

    def files(self) -> Sequence[str]:
        """Names every file that the traces read, as absolute paths."""
        return sorted(self._read or {target.path for target in self._targets})

    def root(self, target: str) -> str:
        """Names the folder that a target's paths are relative to."""
        return self._of_target[target].workspace.root

    def close(self) -> None:
        """Ends the agents."""
        for home in self._homes.values():
            home.agent.close()

    def _files(self) -> dict[str, list[str] | None]:
        """Groups the targets by file; None stands for all entries of one."""
        files: dict[str, list[str] | None] = {}
        for target in self._targets:
            names = files.setdefault(target.path, [])
            files[target.path] = None if target.name is None or names is None else [*names, target.name]
        return files

    def _trace(self, path: str, names: list[str] | None) -> list[Traced]:
        try:
            home = self._home(path)
            relative = home.workspace.relative(path)
            entries = home.workspace.entries(path) if path.endswith(".py") else {}
            wanted = list(entries) if names is None else names
            missing = next((name for name in wanted if name not in entries), None) if path.endswith(".py") else None
            if missing is not None or (path.endswith(".py") and not wanted):
                return _failed(relative, names, _no_entry(relative, missing, list(entries)))
            if path.endswith(".py"):
                reply = home.agent.trace(
                    path, entries=wanted, specs=[entries[name] for name in wanted], options=OPTIONS
                )
            else:
                reply = home.agent.trace(path, options=OPTIONS)
        except ToposError as error:
            root = os.path.dirname(path)
            return _failed(os.path.basename(path), names, error_of(error, path, root))
        except Cancelled:
            return []
        if "error" in reply:
            return _failed(relative, names, reply["error"])
        for entry in reply["entries"]:
            if self._of_target.setdefault(entry["target"], home) is not home:
                message = f"two projects have a target called {entry['target']}; open them one by one"
                raise ConfigurationError(message, code="TP504")
        return [
            Traced(entry["target"], entry.get("document"), _with_output(entry.get("error"), reply))
            for entry in reply["entries"]
        ]

    def _home(self, path: str) -> _Home:
        workspace = open_workspace(path)
        if workspace.root not in self._homes:
            interpreter = workspace.interpreter(trusted=True)
            agent = Agent(workspace.root, interpreter=interpreter.path, limits=workspace.limits())
            self._homes[workspace.root] = _Home(workspace, agent)
        return self._homes[workspace.root]

    def _ask(self, target: str, options: Options, what: str) -> dict[str, Any]:
        home = self._of_target[target]
        asked = {**OPTIONS, **options}
        try:
            reply = home.agent.replan(target, asked) if what == "replan" else home.agent.emit(target, asked)
        except ToposError as error:
            raise PlannerError(error_of(error, "", home.workspace.root)) from error
        except Cancelled as error:
            raise PlannerError(failure("cancelled", "the question was cancelled; ask again")) from error
        if "error" in reply:
            raise PlannerError(reply["error"])
        return reply

    def _paths(self, path: str, found: Sequence[Traced]) -> set[str]:
        """Names the project's files that the documents and errors speak of."""
        home = next((h for h in self._homes.values() if any(self._of_target.get(t.target) is h for t in found)), None)
        if home is None:
            return set()
        named = {name for t in found if t.document is not None for name in t.document["paths"]}
        named |= {t.error["path"] for t in found if t.error is not None and t.error["path"] is not None}
        full = {os.path.normpath(os.path.join(home.workspace.root, name)) for name in named}
        return {name for name in full if os.path.isfile(name)}


def _expand(target: Target) -> list[Target]:
    """Gives a folder's marked files, or the target itself.

    Raises:
        ConfigurationError: TP505, the folder has none.
    """
    if not os.path.isdir(target.path):
        return [target]
    exclude = open_workspace(target.path).configuration.exclude
    found = [Target(path) for path in marked_files(target.path, exclude)]
    if not found:
        message = f"{target.path} has no marked file; mark a function with `@tp.model(...)`"
        raise ConfigurationError(message, code="TP505")
    return found


def _failed(relative: str, names: list[str] | None, error: Failure) -> list[Traced]:
    targets = [f"{relative}:{name}" for name in names] if names else [relative]
    return [Traced(target, None, error) for target in targets]


def _with_output(error: Failure | None, reply: Mapping[str, Any]) -> Failure | None:
    return error if error is None or error.get("output") else {**error, "output": reply.get("output", "")}


def _no_entry(path: str, name: str | None, entries: list[str]) -> Failure:
    has = f"it has {', '.join(entries)}" if entries else "no function or class of it is marked"
    what = f"{path} has no marked entry" if name is None else f"{path} has no entry {name!r}"
    return failure("TP408", f"{what}; {has}", path=path)
