"""The projects that open buffers belong to: root, configuration, interpreter, trust and the agent that runs their code."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from topos_core.errors import ConfigurationError, ToposError
from topos_core.session.client import Agent, Cancelled
from topos_core.session.configuration import Configuration, read_configuration
from topos_core.session.interpreter import Interpreter
from topos_core.session.limits import EDITOR_SECONDS
from topos_core.session.settings import Settings as UserSettings
from topos_core.session.settings import is_trusted, read_settings
from topos_core.session.workspace import Workspace
from topos_lsp.replies import Closed
from topos_lsp.settings import Initial

_Read = TypeVar("_Read")


@dataclass(slots=True)
class Home:
    """One project.

    Args:
        workspace: Its root, configuration and the user's settings; defaults stand where one of them cannot be used.
        problems: Why a default stands.
        closed: What was answered to its buffers that are closed by now.
    """

    workspace: Workspace
    problems: tuple[ToposError, ...] = ()
    interpreter: Interpreter | None = None
    closed: Closed = field(default_factory=Closed)
    _agent: Agent | None = None
    _closed: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def root(self) -> str:
        """Gives the project's root, to which its paths are relative."""
        return self.workspace.root

    def agent(self) -> Agent:
        """Gives the project's agent, started at the first call; from any thread. Only for trusted code.

        Raises:
            Cancelled: The project was closed.
            ConfigurationError: TP501, the interpreter cannot be started.
        """
        with self._lock:
            if self._closed:
                raise Cancelled
            if self._agent is None:
                self.interpreter = self.workspace.interpreter(trusted=True)
                self._agent = Agent(
                    self.root,
                    interpreter=self.interpreter.path,
                    limits=self.workspace.limits(EDITOR_SECONDS),
                    warming=True,
                )
            return self._agent

    def running(self) -> Agent | None:
        """Gives the agent if it was started."""
        return self._agent

    def close(self) -> None:
        """Ends the agent with everything that it started; waits for that, so not on the server's loop."""
        with self._lock:
            self._closed = True
            agent, self._agent = self._agent, None
        if agent is not None:
            agent.close()


@dataclass(slots=True)
class Homes:
    """Every project by its root.

    Args:
        initial: What the editor said at first.
        folders: The workspace's folders.
        told: Is told of a project some of whose configuration cannot be used.
    """

    initial: Initial = field(default_factory=Initial)
    folders: list[str] = field(default_factory=list)
    told: Callable[[Home], None] | None = None
    _homes: dict[str, Home] = field(default_factory=dict)

    def of(self, path: str) -> Home:
        """Gives the project around a file."""
        root = self.root_of(path)
        home = self._homes.get(root)
        if home is None:
            home = self._homes[root] = _open(root, self.initial.interpreter)
            if home.problems and self.told is not None:
                self.told(home)
        return home

    def root_of(self, path: str) -> str:
        """Finds the nearest folder with a pyproject.toml, else the workspace folder around the file, else its own folder."""
        folder = os.path.dirname(path)
        for above in _upwards(folder):
            if os.path.isfile(os.path.join(above, "pyproject.toml")):
                return above
        around = [each for each in self.folders if _inside(path, each)]
        if around:
            return max(around, key=len)
        return next((above for above in _upwards(folder) if os.path.isdir(above)), os.sep)

    def is_trusted(self, path: str) -> bool:
        """Says whether a file's code may be run.

        An editor that knows trust decides for the files of its workspace, or for every file where it has no folder open; the
        user's list of trusted folders decides for the rest.

        Raises:
            ConfigurationError: TP501, the user's list cannot be used.
        """
        if self.initial.untrusted is True:
            return False
        if self.initial.untrusted is False and (not self.folders or any(_inside(path, each) for each in self.folders)):
            return True
        return is_trusted(path)

    def forget(self, root: str | None = None) -> list[Home]:
        """Takes one project out, or all without a root, so that it is read anew; the caller closes what it gets."""
        keys = list(self._homes) if root is None else [root]
        return [self._homes.pop(key) for key in keys if key in self._homes]

    def outdate(self, path: str) -> None:
        """Lets go of what was answered to closed buffers that a changed file may have had a part in."""
        home = self._homes.get(self.root_of(path))
        if home is not None:
            home.closed.outdate(path)

    def all(self) -> list[Home]:
        """Lists the open projects."""
        return list(self._homes.values())


def _open(root: str, interpreter: str | None) -> Home:
    problems: list[ToposError] = []
    configuration = _or_default(lambda: read_configuration(root), Configuration(), problems)
    user = _or_default(read_settings, UserSettings(), problems)
    if interpreter is not None:
        user = replace(user, interpreter=os.path.expanduser(interpreter))
    return Home(Workspace(root, configuration, user), tuple(problems))


def _or_default(read: Callable[[], _Read], default: _Read, problems: list[ToposError]) -> _Read:
    try:
        return read()
    except ConfigurationError as error:
        problems.append(error)
        return default


def _inside(path: str, folder: str) -> bool:
    real, around = os.path.realpath(path), os.path.realpath(folder)
    return real == around or real.startswith(around.rstrip(os.sep) + os.sep)


def _upwards(folder: str) -> list[str]:
    found = [folder]
    while (above := os.path.dirname(found[-1])) != found[-1]:
        found.append(above)
    return found
