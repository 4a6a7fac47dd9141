"""What a worker does for each request: trace a file's entries, plan them again, emit and run them.

User code runs in `_trace` (the import and the recording) and in `_run` (`example=` and `metric=`); whatever it raises there is
described by `places.error_of` and never passes on.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from topos_core.errors import ConfigurationError, TraceError
from topos_core.session import entries as entry_marks
from topos_core.session.loading import load
from topos_core.session.places import error_of, relative_path
from topos_core.session.sources import read_source

Report = Callable[[str, int, int], None]


@dataclass(slots=True)
class State:
    """What one worker holds: the project's root and the traced targets."""

    settings: Mapping[str, Any]
    targets: dict[str, Any] = field(default_factory=dict)

    @property
    def root(self) -> str:
        """Gives the project's root."""
        return str(self.settings["root"])


def warm_up() -> None:
    """Imports what every trace needs and nothing that starts threads."""


def perform(state: State, request: Mapping[str, Any], progress: Report) -> dict[str, Any]:
    """Does one request; what goes wrong with user code comes back as `error`."""
    os.chdir(state.root)  # user code may have moved away
    match request["do"]:
        case "trace":
            return _trace(state, request, progress)
        case "replan" | "emit" | "run" if request["target"] not in state.targets:
            message = f"no traced target is called {request['target']!r}"
            return {"error": error_of(ConfigurationError(message, code="TP505"), "", state.root)}
    raise ValueError(f"no request is called {request['do']!r}")


def _trace(state: State, request: Mapping[str, Any], progress: Report) -> dict[str, Any]:
    path = os.path.normpath(os.path.join(state.root, request["path"]))
    try:
        text = request["text"] if request["text"] is not None else read_source(path)
        marks = entry_marks.find(text, path)
        wanted = _wanted(request, marks, relative_path(path, state.root))
        progress("importing", 0, len(wanted) + 1)
        module = load(path, text, state.root)
    except BaseException as error:  # SystemExit and KeyboardInterrupt too: whatever user code raises is its answer
        return {"error": error_of(error, path, state.root)}
    progress("recording", 1, len(wanted) + 1)
    return {"entries": [_record(module, name, path, state.root) for name in wanted]}


def _record(module: ModuleType, name: str, path: str, root: str) -> dict[str, Any]:
    target = f"{relative_path(path, root)}:{name}"
    missing = ConfigurationError(f"{target} cannot be recorded by this build yet", code="TP507")
    return {"target": target, "error": error_of(missing, path, root)}


def _wanted(request: Mapping[str, Any], marks: entry_marks.Marks, path: str) -> list[str]:
    names = request["entries"]
    marked = [entry.name for entry in marks.entries]
    if names is None:
        if not marked:
            raise TraceError(f"{path} has no marked entry; decorate a function with `@tp.model(...)`", code="TP408")
        return marked
    return list(names)
