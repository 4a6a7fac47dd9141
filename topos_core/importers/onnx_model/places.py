"""Where a node stands: its line in a listing of the graph, and the source that the exporter noted, if it is really there.

A model file has no lines, so the tape's snapshot of it is a listing: one line for each input and node, in the graph's
order. An exporter's stack trace is believed only where the file is a Python file inside the project (or beside the model)
whose line is the noted text.
"""

from __future__ import annotations

import ast
import os
import re
from typing import Any, Final

from topos_core.importers.onnx_model.attributes import graphs_of
from topos_core.recording.source import SourceSnapshot
from topos_core.tape.span import Frame, Location, Span

_STACK: Final = "pkg.torch.onnx.stack_trace"
_SCOPES: Final = "pkg.torch.onnx.name_scopes"
_FRAME: Final = re.compile(r'^\s*File "(?P<path>[^"]+)", line (?P<line>\d+), in (?P<function>\S+)$')
_WIDEST: Final = 400
_LARGEST_SOURCE: Final = 2**20


class Listing:
    """The graph as text, and the line of each of its parts."""

    def __init__(self, path: str, root: str | None) -> None:
        self.path = path
        self.lines: list[str] = []
        self._rows: dict[int, int] = {}
        self._kept: list[Any] = []  # protobuf makes a node's object again once nobody holds it
        self._sources = SourceSnapshot()
        self._folders = [each.rstrip(os.sep) + os.sep for each in (root, os.path.dirname(path)) if each]
        self._readable: dict[str, bool] = {}

    @property
    def text(self) -> str:
        """Gives the whole listing."""
        return "".join(line + "\n" for line in self.lines)

    def add(self, key: Any, text: str) -> None:
        """Appends the line of an input or node."""
        line = "".join(character if character.isprintable() else "?" for character in text)
        self.lines.append(line if len(line) <= _WIDEST else line[: _WIDEST - 3] + "...")
        self._rows[id(key)] = len(self.lines)
        self._kept.append(key)

    def add_nodes(self, graph: Any, indent: str = "") -> None:
        """Appends the lines of a graph's nodes, those of nested graphs below their node."""
        for node in graph.node:
            self.add(node, indent + _shown(node))
            for nested in graphs_of(node):
                self.add_nodes(nested, indent + "    ")

    def location(self, key: Any, function: str) -> Location:
        """Gives the place of an input."""
        return Location((self._frame(key, function),))

    def of_node(self, node: Any, scope: tuple[str, ...] = ()) -> Location:
        """Gives the place of a node: its source where that is known, then its line in the listing."""
        noted = {each.key: each.value for each in getattr(node, "metadata_props", ())}
        frames = [*self._noted_frames(noted.get(_STACK, "")), self._frame(node, node.name or node.op_type)]
        return Location(tuple(frames), scope or _scope(noted.get(_SCOPES), node.name))

    def _frame(self, key: Any, function: str) -> Frame:
        row = self._rows.get(id(key), 1)
        line = self.lines[row - 1] if self.lines else ""
        return Frame(Span(self.path, row, len(line) - len(line.lstrip()), row, len(line)), function, "user")

    def _noted_frames(self, stack: str) -> list[Frame]:
        """Reads an exporter's stack, innermost frame first; a frame whose line says something else is left out."""
        lines = stack.splitlines()
        frames: list[Frame] = []
        for at, line in enumerate(lines[:-1]):
            match = _FRAME.match(line)
            if match is None or len(match["line"]) > 9:
                continue
            path, number, said = match["path"], int(match["line"]), lines[at + 1].strip()
            if said and self._may_read(path) and self._sources.line(path, number).strip() == said:
                text = self._sources.line(path, number)
                start = len(text) - len(text.lstrip())
                frames.append(Frame(Span(path, number, start, number, len(text.rstrip())), match["function"], "user"))
        return frames[::-1]

    def _may_read(self, path: str) -> bool:
        """Allows Python files of a usual size in the project, or beside the model."""
        known = self._readable.get(path)
        if known is None:
            real = os.path.realpath(path)
            known = self._readable[path] = (
                path.endswith(".py")
                and os.path.isabs(path)
                and any(real.startswith(os.path.realpath(folder).rstrip(os.sep) + os.sep) for folder in self._folders)
                and os.path.isfile(real)
                and os.path.getsize(real) <= _LARGEST_SOURCE
            )
        return known


def _shown(node: Any) -> str:
    operands = ", ".join(node.input)
    settings = "".join(f", {each.name}={value}" for each in node.attribute if (value := _setting(each)) is not None)
    name = f"{node.name}: " if node.name else ""
    kind = f"{node.domain}.{node.op_type}" if node.domain not in ("", "ai.onnx") else node.op_type
    return f"{name}{', '.join(node.output)} = {kind}({operands}{settings})"


def _setting(attribute: Any) -> str | None:
    match attribute.type:
        case 1:
            return f"{attribute.f:g}"
        case 2:
            return str(attribute.i)
        case 3:
            return repr(attribute.s.decode("utf-8", "replace")[:40])
        case 7:
            return str(list(attribute.ints[:16]))
        case _:
            return None


def _scope(noted: str | None, name: str) -> tuple[str, ...]:
    """Reads module scopes from the exporter's list, else from a node name such as `/encoder/layer0/MatMul`."""
    paths = _listed(noted)
    if paths:
        return tuple(part for part in paths[-1].split(".") if part)
    parts = [part for part in name.split("/") if part]
    return tuple(parts[:-1])


def _listed(noted: str | None) -> list[str]:
    """Reads the exporter's list of texts: module paths from the outermost in, and the op's own name last."""
    if not noted or len(noted) > 10_000:
        return []
    try:
        read = ast.literal_eval(noted)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return []  # another exporter's notation
    return [each for each in read[:-1] if isinstance(each, str)] if isinstance(read, list) else []
