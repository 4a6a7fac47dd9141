"""A project as the commands and front ends see it: its root, its configuration, its targets and its marked files."""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from topos_core.errors import TARGET_FORMS, ConfigurationError, TraceError
from topos_core.session.configuration import Configuration, read_configuration
from topos_core.session.entries import Marks, find
from topos_core.session.interpreter import Interpreter, find_interpreter
from topos_core.session.limits import SECONDS, Limits, default_memory
from topos_core.session.places import relative_path
from topos_core.session.settings import Settings, is_trusted, read_settings
from topos_core.session.sources import MODEL_FILES, read_source

_MENTION: Final = re.compile(r"\btopos_core\b|#\s*topos:")
_LEFT_OUT: Final = frozenset({"node_modules", "__pycache__", "build", "dist", "site-packages"})


@dataclass(frozen=True, slots=True)
class Target:
    """One file of a project and, unless all its entries are meant, the name of one.

    `path` is absolute; `line` and `column` count from 1 and are only understood by `topos explain`.
    """

    path: str
    name: str | None = None
    line: int | None = None
    column: int | None = None


@dataclass(frozen=True, slots=True)
class Workspace:
    """One project.

    Args:
        root: The folder of its pyproject.toml, else the working directory.
        configuration: Its `[tool.topos]`.
        settings: The user's own settings.
    """

    root: str
    configuration: Configuration
    settings: Settings = field(default_factory=Settings)

    def limits(self, seconds: float = SECONDS) -> Limits:
        """Gives the limits of a request: the user's settings, else the project's, else `seconds` and half the memory."""
        return Limits(
            seconds=self.settings.seconds or self.configuration.seconds or seconds,
            memory=self.settings.memory or self.configuration.memory or default_memory(),
            network=self.settings.network,
            fork=self.settings.fork,
            seconds_in="[tool.topos]" if self.settings.seconds is None else "your settings.toml",
            memory_in="[tool.topos]" if self.settings.memory is None else "your settings.toml",
        )

    def interpreter(self, *, trusted: bool, environment: Mapping[str, str] | None = None) -> Interpreter:
        """Finds the Python that runs this project's code."""
        return find_interpreter(self.root, self.settings, trusted=trusted, environment=environment)

    def relative(self, path: str) -> str:
        """Gives a path as documents and messages show it."""
        return relative_path(os.path.abspath(path), self.root)

    def marks(self, path: str, text: str | None = None) -> Marks:
        """Finds a file's marked entries and comments in `text`, or in the file; nothing is imported."""
        return find(read_source(path) if text is None else text, os.path.abspath(path))

    def entries(self, path: str, text: str | None = None) -> dict[str, str | None]:
        """Gives a file's entries, marked and configured, with their input specs where the decorator has none."""
        return self.named(self.marks(path, text), path)

    def named(self, marks: Marks, path: str) -> dict[str, str | None]:
        """Gives the entries of a file's marks and the configured ones, with their input specs where the decorator has none."""
        entries = {entry.name: entry.specs for entry in marks.entries}
        relative = self.relative(path)
        for target, specs in self.configuration.entries.items():
            configured, _, name = target.rpartition(":")
            if os.path.normpath(configured) == os.path.normpath(relative):
                entries[name] = specs
        return entries

    def is_trusted(self, path: str, environment: Mapping[str, str] | None = None) -> bool:
        """Says whether the user's list of trusted folders holds this path."""
        return is_trusted(path, environment)


def open_workspace(path: str, environment: Mapping[str, str] | None = None) -> Workspace:
    """Opens the project around a file or folder.

    Raises:
        ConfigurationError: TP501, its pyproject.toml or the user's settings cannot be used.
    """
    root = find_root(path)
    return Workspace(root, read_configuration(root), read_settings(environment))


def find_root(path: str) -> str:
    """Finds the nearest folder with a pyproject.toml; else the working directory if it holds the path, else the path's folder."""
    folder = os.path.abspath(path)
    if not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    nearest = folder
    while True:
        if os.path.isfile(os.path.join(nearest, "pyproject.toml")):
            return nearest
        above = os.path.dirname(nearest)
        if above == nearest:
            break
        nearest = above
    here = os.getcwd()
    return here if folder == here or folder.startswith(here.rstrip(os.sep) + os.sep) else folder


def parse_target(text: str, *, place: bool = False) -> Target:
    """Reads `path/model.py`, `path/model.py:name`, either with `:LINE` or `:LINE:COLUMN` behind, `model.onnx` or a folder.

    Raises:
        ConfigurationError: TP505, no such file, a name that is none, or a line where no `place` is asked for.
    """
    path, name = text, None
    numbers: list[int] = []
    while not os.path.exists(path) and len(numbers) < 2:
        before, separator, last = path.rpartition(":")
        if not separator or not last.isdecimal():
            break
        path, numbers = before, [int(last), *numbers]
    if not os.path.exists(path) and ":" in path:
        path, _, name = path.rpartition(":")
    if not os.path.exists(path):
        raise ConfigurationError(f"{path or text} does not exist; a target is written {TARGET_FORMS}", code="TP505")
    if name is not None and not all(part.isidentifier() for part in name.split(".")):
        raise ConfigurationError(f"{name!r} is no name; a target is written {TARGET_FORMS}", code="TP505")
    if name is not None and not os.path.isfile(path):
        raise ConfigurationError(f"{path} is a folder, so it has no {name!r}; name a file of it", code="TP505")
    if numbers and not place:
        raise ConfigurationError(
            f"{text} names a line, and whole entries are asked for; `topos explain {text}` tells one line", code="TP505"
        )
    line, column = (*numbers, None, None)[:2]
    return Target(os.path.abspath(path), name, line, column)


def marked_files(folder: str, exclude: tuple[str, ...] = ()) -> Iterator[str]:
    """Walks a folder for files with a mark, and for model files, in order; nothing is imported.

    Hidden folders, environments, caches and builds are left out, and symlinks to folders are not followed. A file that does
    not parse counts if it mentions topos, so that its error is told.
    """
    for here, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not _is_left_out(here, name))
        for name in sorted(files):
            path = os.path.join(here, name)
            if any(fnmatch.fnmatch(relative_path(path, folder), pattern) for pattern in exclude):
                continue
            if name.endswith(MODEL_FILES) or (name.endswith(".py") and _is_marked(path)):
                yield path


def _is_left_out(here: str, name: str) -> bool:
    return name.startswith(".") or name in _LEFT_OUT or os.path.exists(os.path.join(here, name, "pyvenv.cfg"))


def _is_marked(path: str) -> bool:
    try:
        text = read_source(path)
    except (ConfigurationError, TraceError):
        return False  # a file of another kind: only what says `topos` concerns us, and this says nothing readable
    if not _MENTION.search(text):
        return False
    try:
        return bool(find(text, path).entries)
    except (ConfigurationError, TraceError):
        return True
