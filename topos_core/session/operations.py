"""What a worker does for each request: trace a file's entries, plan them again, emit and run them.

User code runs in `_trace` (the import and the recording) and in `run` (`example=` and `metric=`); whatever it raises there is
described by `places.error_of` and never passes on.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import CodeType, ModuleType
from typing import Any

import numpy as np

from topos_core.errors import ConfigurationError, ToposError, TraceError
from topos_core.importers.imported import loading
from topos_core.importers.model_file import ENTRY
from topos_core.recording.collector import collector_rare
from topos_core.session import entries as entry_marks
from topos_core.session.dimensions import AskedDims
from topos_core.session.imports import imported_files
from topos_core.session.loading import compiled, load
from topos_core.session.places import error_of, position, relative_path
from topos_core.session.roots import enter_root
from topos_core.session.sources import MODEL_FILES, read_source, refuse_other_kinds
from topos_core.session.traced import Traced, trace_entry, traced_model
from topos_core.session.warming import imported

Report = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Prepared:
    """What was made ahead of a trace: of a path and a text, the marks, and the code where it compiles without a warning."""

    path: str
    text: str
    marks: entry_marks.Marks
    code: CodeType | None


@dataclass(slots=True)
class State:
    """What one worker holds: the project's root, the traced targets, what was prepared of a text that may be traced next, and which
    modules it found imported."""

    settings: Mapping[str, Any]
    targets: dict[str, Traced] = field(default_factory=dict)
    prepared: Prepared | None = None
    before: frozenset[str] = field(default_factory=lambda: frozenset(sys.modules))

    @property
    def root(self) -> str:
        """Gives the project's root."""
        return str(self.settings["root"])


def warm_up() -> None:
    """Records, searches and plans a small program, so that every import and table of a trace is there before a fork.

    Nothing of it starts a thread; what it costs once, each trace would cost again.
    """
    text = "def warm(x, w):\n    return np.maximum(np.einsum('bchwij,ocij->bohw', unfold(x), w), 0).sum()\n"
    path = "<warm>"
    scope: dict[str, Any] = {"np": np, "unfold": _unfold}
    exec(compile(text, path, "exec"), scope)
    try:
        trace_entry(scope["warm"], "f32[1,2,4,4],f32[2,2,3,3]", path, path, text, "/", (), {}).document({})
    except Exception:
        return  # a bug of ours: the first real trace tells it with its place


def _unfold(x: Any) -> Any:
    return np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(2, 3))


def perform(state: State, request: Mapping[str, Any], progress: Report) -> dict[str, Any]:
    """Does one request; what goes wrong with user code comes back as `error`."""
    enter_root(state.root)  # user code may have moved away
    if request["do"] == "prepare":
        return _prepare(state, request)
    if request["do"] == "trace":
        return _trace(state, request, progress)
    traced = state.targets.get(request["target"])
    if traced is None:
        missing = ConfigurationError(f"no traced target is called {request['target']!r}", code="TP505")
        return {"error": error_of(missing, "", state.root)}
    try:
        match request["do"]:
            case "replan" if request.get("changes"):
                return {"changes": traced.changes(request.get("options") or {})}
            case "replan":
                return {"document": traced.document(request.get("options") or {})}
            case "emit":
                return traced.emit(request.get("options") or {}, verify=bool(request.get("verify")), progress=progress)
            case "phases":
                return {"phases": traced.phases(request["values"], request.get("options") or {})}
            case "kernels":
                return {"listing": traced.kernels(request["region"], request.get("options") or {})}
            case "certificate":
                return {"certificate": traced.certificate(request["region"], request.get("options") or {})}
            case "run":
                return {"result": traced.run(request, progress)}
            case "bench":
                return {"result": traced.bench(request, progress)}
    except BaseException as error:  # SystemExit and KeyboardInterrupt too: `example=` and `metric=` are user code
        return {"error": error_of(error, traced.path, state.root)}
    raise ValueError(f"no request is called {request['do']!r}")


def _prepare(state: State, request: Mapping[str, Any]) -> dict[str, Any]:
    """Does ahead of a trace what runs nothing of the text; what is wrong with the text is for the trace to tell."""
    path = os.path.normpath(os.path.join(state.root, request["path"]))
    if state.prepared is None:
        warm_up()  # the first touch of memory that was forked costs as much as the work
    try:
        marks = entry_marks.find(request["text"], path)
        state.prepared = Prepared(path, request["text"], marks, compiled(path, request["text"]))
    except ToposError:
        state.prepared = None
    return {}


def _prepared(state: State, path: str, text: str) -> Prepared:
    known = state.prepared
    if known is not None and (known.path, known.text) == (path, text):
        return known
    return Prepared(path, text, entry_marks.find(text, path), None)


def _trace(state: State, request: Mapping[str, Any], progress: Report) -> dict[str, Any]:
    path = os.path.normpath(os.path.join(state.root, request["path"]))
    if path.endswith(MODEL_FILES):
        return _read_model(state, path, request.get("options") or {}, progress)
    try:
        text = request["text"] if request["text"] is not None else _read(path)
        prepared = _prepared(state, path, text)
        marks = prepared.marks
        names = request["entries"] if request["entries"] is not None else [entry.name for entry in marks.entries]
        if not names:
            raise TraceError("the file has no marked entry; decorate a function with `@tp.model(...)`", code="TP408")
        specs = dict(zip(names, request.get("specs") or [None] * len(names), strict=True))
        for entry in marks.entries:
            if specs.get(entry.name) is None and entry.name in specs:
                specs[entry.name] = entry.specs
        progress("importing", 0, len(names) + 1)
        with collector_rare(), loading(text):
            module = load(path, text, state.root, prepared.code)
    except BaseException as error:  # SystemExit and KeyboardInterrupt too: whatever user code raises is its answer
        told = error_of(error, path, state.root)
        return {"error": told, "imports": imported_files(path, state.root, told)}
    options = request.get("options") or {}
    replies = []
    for number, name in enumerate(names, 1):
        progress(name, number, len(names) + 1)
        target = f"{relative_path(path, state.root)}:{name}"
        dims = AskedDims(options.get("dims") or {})
        try:
            with collector_rare():
                traced = trace_entry(
                    _find(module, name), specs[name], target, path, text, state.root, marks.comments, dims
                )
                state.targets[target] = traced
                reply = _traced(traced, options, dims)
            if options.get("prove"):
                reply["proofs"] = traced.proofs(options, progress)
            replies.append(reply)
        except BaseException as error:
            state.targets.pop(target, None)
            replies.append(
                {"target": target, "error": _placed(error_of(error, path, state.root), marks, name, state.root)}
            )
    return {"entries": replies, "modules": imported(state.before), "imports": imported_files(path, state.root)}


def _read_model(state: State, path: str, options: Mapping[str, Any], progress: Report) -> dict[str, Any]:
    """Traces the one entry of a model file; nothing of it is run."""
    target = f"{relative_path(path, state.root)}:{ENTRY}"
    progress("reading", 0, 2)
    try:
        dims = AskedDims(options.get("dims") or {})
        traced = traced_model(target, path, state.root, dims)
        progress(ENTRY, 1, 2)
        state.targets[target] = traced
        return {"entries": [_traced(traced, options, dims)]}
    except BaseException as error:
        state.targets.pop(target, None)
        return {"entries": [{"target": target, "error": error_of(error, path, state.root)}]}


def _traced(traced: Traced, options: Mapping[str, Any], dims: AskedDims) -> dict[str, Any]:
    document = traced.document(options)
    return {
        "target": traced.target, "document": document, "off": traced.off_lines, "off_unknown": traced.off_unknown,
        "dims": sorted(dims.asked),
    }  # fmt: skip


def _placed(error: dict[str, Any], marks: entry_marks.Marks, name: str, root: str) -> dict[str, Any]:
    """Puts an error without a place, as one of an input spec, at the entry's mark."""
    entry = next((entry for entry in marks.entries if entry.name == name), None)
    return error if error["path"] is not None or entry is None else {**error, **position(entry.mark, root)}


def _read(path: str) -> str:
    """Reads a Python file.

    Raises:
        ConfigurationError: TP505, it is of another kind, or cannot be read.
    """
    refuse_other_kinds(path)
    return read_source(path)


def _find(module: ModuleType, name: str) -> Any:
    """Gives the function, class or instance that an entry names.

    Raises:
        TraceError: TP408, the module has no such name once it has run.
    """
    found: Any = module
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise TraceError(f"the module has no {name!r} once it has run", code="TP408") from None
    return found
