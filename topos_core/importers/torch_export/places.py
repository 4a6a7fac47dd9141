"""From live frames, constructor calls and stack traces to locations."""

from __future__ import annotations

import re
from types import CodeType
from typing import Any, Final

from topos_core.importers.torch_export.construction import built_at
from topos_core.importers.torch_export.frames import CallPath, Calls
from topos_core.recording.location import frame_of, role_of
from topos_core.recording.source import SourceSnapshot
from topos_core.tape.span import UNKNOWN, Frame, Location, Span

_LINE: Final = re.compile(r'File "(?P<path>[^"]+)", line (?P<line>\d+), in (?P<function>\S+)')


class Places:
    """Resolves the nodes of one exported program.

    A module that another of torch's own modules calls (in an `nn.Sequential`, inside of `nn.TransformerEncoderLayer`) has no
    line of its own in any `forward`: its op stands at its constructor's call, with the call of the container around it.
    """

    def __init__(self, calls: Calls, root: Any, sources: SourceSnapshot, entry: Location) -> None:
        self._calls = calls
        self._root = root
        self._sources = sources
        self._entry = entry
        self._modules = dict(root.named_modules(remove_duplicate=False))
        self._frames: dict[tuple[int, int], Frame] = {}

    def of(self, node: Any) -> Location:
        """Gives the place of a node of the exported graph."""
        scope = scope_of(node)
        number = self._calls.number_of(node)
        if number is not None:
            return self.path_of(self._calls.paths[number], scope)
        text = node.stack_trace or node.meta.get("stack_trace") or ""
        return Location(self._of_text(text, scope), scope, self._built(scope, ()))

    def of_code(self, code: CodeType, scope: tuple[str, ...] = ()) -> Location:
        """Gives the first line of a function: where a hook is written."""
        line = self._sources.line(code.co_filename, code.co_firstlineno)
        start = len(line) - len(line.lstrip())
        span = Span(code.co_filename, code.co_firstlineno, start, code.co_firstlineno, max(start, len(line.rstrip())))
        return Location((Frame(span, code.co_qualname, "user"),), scope)

    def of_call(self, number: int, scope: tuple[str, ...] = ()) -> Location:
        """Gives the place of a call that was seen, whether its node was kept or not."""
        return self.path_of(self._calls.paths[number], scope)

    def path_of(self, path: CallPath, scope: tuple[str, ...] = ()) -> Location:
        """Gives the place of live frames."""
        frames = [self._frame(code, instruction) for code, instruction in path.frames]
        built = self._built(scope, path.modules)
        if built is not None and (len(path.modules) > 1 or not any(frame.kind == "user" for frame in frames)):
            frames.insert(0, built)
        owned = bool(scope or path.modules)
        return Location(tuple(frames) or self._entry.frames, scope, built if owned else None)

    def _of_text(self, text: str, scope: tuple[str, ...]) -> tuple[Frame, ...]:
        """Reads torch's own stack trace: files and lines, outermost first, and no columns."""
        frames: list[Frame] = []
        for found in _LINE.finditer(text):
            path, number = found["path"], int(found["line"])
            role = _role_of_path(path)
            line = self._sources.line(path, number)
            start = len(line) - len(line.lstrip())
            span = Span(path, number, start, number, max(start, len(line.rstrip())))
            if role is not None:
                frames.insert(0, Frame(span, found["function"], "user" if role == "user" else "framework"))
        return tuple(frames) or self._entry.frames

    def _built(self, scope: tuple[str, ...], modules: tuple[Any, ...]) -> Frame | None:
        """Finds the constructor's call of the innermost module that user code built: the op's own, else one around it."""
        paths = [".".join(scope[:end]) for end in range(len(scope), -1, -1)]
        for module in (*modules, *(self._modules.get(path) for path in paths)):
            built = built_at(module)
            if built is not None and role_of(built.code) == "user":
                return self._frame(*built)
        return None

    def _frame(self, code: CodeType, instruction: int) -> Frame:
        key = (id(code), instruction)
        found = self._frames.get(key)
        if found is None:
            found = self._frames[key] = frame_of(code, instruction, self._sources)
        return found


def scope_of(node: Any) -> tuple[str, ...]:
    """Gives the path of the module that a node ran in: `("layer1", "0", "conv1")`."""
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    if not stack:
        return ()
    path = str(stack[-1][0]).removeprefix("L['self']").lstrip(".")
    return tuple(part for part in path.split(".") if part)


def entry_place(target: Any, sources: SourceSnapshot) -> Location:
    """Gives the line on which a function or class starts; for an instance that of its class."""
    import inspect

    subject = target if inspect.isfunction(target) or isinstance(target, type) else type(target)
    try:
        path = inspect.getsourcefile(subject) or "<unknown>"
        _, number = inspect.getsourcelines(subject)
    except (OSError, TypeError):
        return Location((Frame(UNKNOWN, getattr(subject, "__qualname__", "<unknown>"), "user"),))
    line = sources.line(path, number)
    start = len(line) - len(line.lstrip())
    span = Span(path, number, start, number, max(start, len(line.rstrip())))
    return Location((Frame(span, subject.__qualname__, "user"),))


def _role_of_path(path: str) -> str | None:
    """Sorts a file: None for torch's own."""
    import os

    import torch

    if path.startswith((os.path.dirname(torch.__file__) + os.sep, "<")):
        return None
    return role_of(compile("", path, "exec"))
