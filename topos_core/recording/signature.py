"""Where a function declares its arguments and its return: spans of parameters in a signature and of a lone `return`."""

from __future__ import annotations

import ast
import dis
import inspect
import textwrap
from collections.abc import Callable
from types import CodeType
from typing import Any

from topos_core.recording.location import frame_of
from topos_core.recording.source import SourceSnapshot
from topos_core.tape.span import UNKNOWN, Frame, Location, Span


def code_of(function: Callable[..., Any]) -> CodeType | None:
    """Gives the code that a call of `function` runs: its own, its wrapped function's or its class's `__call__`."""
    unwrapped = inspect.unwrap(function)
    for candidate in (
        unwrapped,
        getattr(unwrapped, "__func__", None),
        inspect.getattr_static(type(unwrapped), "__call__", None),
    ):
        code = getattr(candidate, "__code__", None)
        if isinstance(code, CodeType):
            return code
    inner = getattr(unwrapped, "func", None)  # functools.partial
    return code_of(inner) if callable(inner) else None


def arguments_of(code: CodeType | None, sources: SourceSnapshot) -> Callable[[str], Location]:
    """Gives, by argument name, the place in the function's signature, else the line on which the function starts."""
    spans = {} if code is None else _argument_spans(code, sources)

    def declared(name: str) -> Location:
        if code is None:
            return Location((Frame(UNKNOWN, "<unknown>", "user"),))
        return Location((Frame(spans.get(name) or _first_line(code, sources), code.co_qualname, "user"),))

    return declared


def returned_at(code: CodeType | None, sources: SourceSnapshot) -> Location | None:
    """Gives the place of a function's `return` where it has exactly one with a value."""
    if code is None or code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE):
        return None
    frames = {
        frame_of(code, instruction.offset, sources)
        for instruction in dis.get_instructions(code)
        if instruction.opname == "RETURN_VALUE" and instruction.positions and instruction.positions.lineno
    }
    frames = {
        frame
        for frame in frames
        if sources.line(frame.span.path, frame.span.line)[frame.span.column :].startswith("return")
    }
    return Location((frames.pop(),)) if len(frames) == 1 else None


def _first_line(code: CodeType, sources: SourceSnapshot) -> Span:
    line = sources.line(code.co_filename, code.co_firstlineno)
    start = len(line) - len(line.lstrip())
    return Span(code.co_filename, code.co_firstlineno, start, code.co_firstlineno, max(start, len(line.rstrip())))


def _argument_spans(code: CodeType, sources: SourceSnapshot) -> dict[str, Span]:
    path, first = code.co_filename, code.co_firstlineno
    lines = sources.lines(path)[first - 1 :]
    try:
        block = inspect.getblock(lines)
        text = textwrap.dedent("".join(block))
        tree = ast.parse(text)
    except (SyntaxError, IndentationError, IndexError):
        return {}  # a lambda inside an expression: its line will do
    indent = len(block[0]) - len(block[0].lstrip()) if block else 0
    found: dict[str, Span] = {}
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            arguments = node.args
            named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
            if tuple(argument.arg for argument in named) != code.co_varnames[: len(named)]:
                continue
            for argument in (*named, *filter(None, (arguments.vararg, arguments.kwarg))):
                line = first + argument.lineno - 1
                start = sources.code_points(path, line, indent + argument.col_offset)
                found.setdefault(argument.arg, Span(path, line, start, line, start + len(argument.arg)))
            break
    return found
