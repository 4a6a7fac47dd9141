"""The line that keeps a value: an append, an assignment to an attribute or to an element, found by syntax.

A kept tensor tells which object holds it, not who put it there. Where the functions around the value have exactly one
expression that stores into that object, it is the place; else the value's own place stands, and the object is named.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Final

from topos_core.recording.source import SourceSnapshot
from topos_core.tape.span import Frame, Location, Span

_STORING: Final = ("append", "add", "insert", "extend", "setdefault", "update", "appendleft", "put")


def kept_at(keeper: str | None, made: Location, sources: SourceSnapshot) -> Location:
    """Gives the place of the one expression that stores into `keeper` (`LOG`, `Net.seen['y']`), else `made`."""
    name = None if keeper is None else re.sub(r"\[.*\]$", "", keeper).rpartition(".")[2]
    if not name:
        return made
    found: dict[Span, Frame] = {}
    for path in dict.fromkeys(frame.span.path for frame in made.frames if frame.kind == "user"):
        text = sources.text(path)
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError):
            continue
        lines = text.splitlines()
        for function, node in _stores(tree, name, ""):
            span = _span(node, path, lines)
            found[span] = Frame(span, function, "user")
    around = {frame.function.replace(".<locals>", "") for frame in made.frames}
    near = [frame for frame in found.values() if frame.function in around] or list(found.values())
    return Location((near[0], *made.frames), made.scope) if len(near) == 1 else made


def _stores(node: ast.AST, name: str, function: str) -> Iterator[tuple[str, ast.expr | ast.stmt]]:
    """Finds stores inside of functions: what stands at the top of a file runs when nothing is recorded."""
    for child in ast.iter_child_nodes(node):
        inside = function
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            if getattr(child, "name", "") == "__init__":
                continue
            inside = f"{function}.{child.name}" if function else child.name
        elif function and isinstance(child, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
            targets = child.targets if isinstance(child, ast.Assign) else [child.target]
            if any(_names(target, name) and not isinstance(target, ast.Name) for target in targets):
                yield function, child
        elif function and isinstance(child, ast.Call) and _fills(child.func, name):
            yield function, child
        yield from _stores(child, name, inside)


def _fills(function: ast.expr, name: str) -> bool:
    return isinstance(function, ast.Attribute) and function.attr in _STORING and _names(function.value, name)


def _names(target: ast.expr, name: str) -> bool:
    match target:
        case ast.Name(id=found) | ast.Attribute(attr=found):
            return found == name
        case ast.Subscript(value=value):
            return _names(value, name)
    return False


def _span(node: ast.expr | ast.stmt, path: str, lines: list[str]) -> Span:
    end_line, end = node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
    return Span(
        path, node.lineno, _points(lines, node.lineno, node.col_offset), end_line, _points(lines, end_line, end)
    )


def _points(lines: list[str], line: int, column: int) -> int:
    return len(lines[line - 1].encode()[:column].decode("utf-8", "ignore"))
