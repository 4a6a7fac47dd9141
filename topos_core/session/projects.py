"""What front ends run code with: one workspace and one agent for each project root that their targets touch."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from topos_core.document.display import display
from topos_core.errors import ConfigurationError, ToposError
from topos_core.importers.model_file import ENTRY
from topos_core.session.client import Agent, Cancelled, Progress
from topos_core.session.messages import failure
from topos_core.session.places import error_of
from topos_core.session.sources import MODEL_FILES, refuse_other_kinds
from topos_core.session.workspace import Target, Workspace, find_root, marked_files, open_workspace


@dataclass(slots=True)
class Projects:
    """Opens workspaces and agents as they are needed and closes them together.

    `untrusted` says that a path named on the command line is not trusted by that alone.
    """

    progress: Progress | None = None
    untrusted: bool = False
    _workspaces: dict[str, Workspace] = field(default_factory=dict)
    _agents: dict[str, Agent] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _closed: bool = False

    def workspace(self, path: str) -> Workspace:
        """Gives the project around a path."""
        root = find_root(path)
        if root not in self._workspaces:
            self._workspaces[root] = open_workspace(path)
        return self._workspaces[root]

    def agent(self, workspace: Workspace) -> Agent:
        """Gives the agent of a project, started at once.

        Raises:
            Cancelled: All was closed meanwhile.
        """
        with self._lock:
            if self._closed:
                raise Cancelled
            if workspace.root not in self._agents:
                interpreter = workspace.interpreter(trusted=not self.untrusted or workspace.is_trusted(workspace.root))
                self._agents[workspace.root] = Agent(
                    workspace.root, interpreter=interpreter.path, limits=workspace.limits()
                )
            return self._agents[workspace.root]

    def trace(self, target: Target, options: Mapping[str, Any]) -> dict[str, Any]:
        """Traces a file's entries, or the one that the target names; the reply is as the agent's.

        An untrusted file is not run: its reply is a TP410 error. So is an entry that the file does not have (TP408).
        """
        try:
            return self._trace(target, options)
        except ToposError as error:  # of this file: the others are still told
            root = find_root(target.path)
            return {"error": error_of(error, target.path, root), "output": ""}

    def _trace(self, target: Target, options: Mapping[str, Any]) -> dict[str, Any]:
        workspace = self.workspace(target.path)
        relative = workspace.relative(target.path)
        if self.untrusted and not workspace.is_trusted(target.path):
            message = (
                f"{relative} was not run: its folder is not in your list of trusted folders; drop --untrusted to run it"
            )
            return {"error": failure("TP410", message, path=relative), "output": ""}
        missing = self.missing(target)
        if missing is not None:
            return {"error": missing, "output": ""}
        if target.path.endswith(".py"):
            entries = workspace.entries(target.path)
            names = list(entries) if target.name is None else [target.name]
            specs = [entries[name] for name in names]
            return self.agent(workspace).trace(
                target.path, entries=names, specs=specs, options=options, progress=self.progress
            )
        return self.agent(workspace).trace(target.path, options=options, progress=self.progress)

    def missing(self, target: Target) -> dict[str, Any] | None:
        """Gives the error of a target that its file does not have (TP408); None where it has it. Nothing is run.

        Raises:
            ToposError: The file is of no kind that topos reads, cannot be read or does not parse.
        """
        workspace = self.workspace(target.path)
        relative = workspace.relative(target.path)
        if target.path.endswith(MODEL_FILES):
            if target.name in (None, ENTRY):
                return None
            message = f"{relative} has no entry {target.name!r}; a model file has one, {ENTRY}, which need not be named"
            return failure("TP408", message, path=relative)
        refuse_other_kinds(target.path)
        entries = workspace.entries(target.path)
        if entries and target.name in (None, *entries):
            return None
        return _no_entry(relative, target.name, list(entries))

    def cancel(self) -> None:
        """Ends what every agent is at; the requests raise `Cancelled`. Does not wait."""
        for agent in tuple(self._agents.values()):
            agent.cancel()

    def close(self) -> None:
        """Ends every agent; none starts after that."""
        with self._lock:
            self._closed = True
            agents = tuple(self._agents.values())
            self._agents.clear()
        for agent in agents:
            agent.close()


@contextlib.contextmanager
def projects(progress: Progress | None = None, *, untrusted: bool = False) -> Iterator[Projects]:
    """Opens projects for one command, or for one server's life."""
    opened = Projects(progress, untrusted)
    try:
        yield opened
    finally:
        opened.close()


def expand(target: Target, opened: Projects) -> list[Target]:
    """Gives the marked files of a folder, or the target itself.

    Raises:
        ConfigurationError: TP505, the folder has none.
    """
    if not os.path.isdir(target.path):
        return [target]
    workspace = opened.workspace(target.path)
    found = [Target(path) for path in marked_files(target.path, workspace.configuration.exclude)]
    for configured in workspace.configuration.entries:
        path = os.path.join(workspace.root, configured.rpartition(":")[0])
        inside = os.path.normpath(path).startswith(target.path.rstrip(os.sep) + os.sep)
        if inside and all(each.path != os.path.normpath(path) for each in found):
            found.append(Target(os.path.normpath(path)))
    if not found:
        raise ConfigurationError(
            f"{workspace.relative(target.path)} has no marked file; mark a function with `@tp.model(...)` or a comment "
            "`# topos: entry inputs=f32[...]` above it",
            code="TP505",
        )
    return found


def only(target: str, reply: Mapping[str, Any]) -> dict[str, Any]:
    """Gives the one entry of a reply.

    Raises:
        ConfigurationError: TP504, there are several.
    """
    entries: list[dict[str, Any]] = reply["entries"]
    if len(entries) != 1:
        names = ", ".join(display(entry["target"]) for entry in entries)
        raise ConfigurationError(f"{target} has {len(entries)} entries; name one of {names}", code="TP504")
    return entries[0]


def _no_entry(path: str, name: str | None, entries: list[str]) -> dict[str, Any]:
    mark = "mark one with `@tp.model(...)` or a comment `# topos: entry inputs=f32[...]` above it"
    has = f"it has {', '.join(entries)}; {mark}" if entries else mark
    what = f"{path} has no marked entry" if name is None else f"{path} has no entry {name!r}"
    return failure("TP408", f"{what}; {has}", path=path)
