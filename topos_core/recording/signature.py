"""Where a function declares its arguments and its return: spans of parameters in a signature and of a lone `return`."""

from __future__ import annotations

import ast
import dis
import inspect
import textwrap
import tokenize
from collections.abc import Callable, Sequence
from types import CodeType
from typing import Any, Final

from topos_core.recording.location import frame_of
from topos_core.recording.source import SourceSnapshot
from topos_core.tape.span import UNKNOWN, Frame, Location, Span

_RETURN: Final = dis.opmap["RETURN_VALUE"]
_OPENING: Final = ("(", "[", "{")
_CLOSING: Final = (")", "]", "}")


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
    instructions = zip(code.co_code[::2], code.co_positions(), strict=True)
    frames = {
        frame_of(code, 2 * number, sources)
        for number, (opcode, (line, *_)) in enumerate(instructions)
        if opcode == _RETURN and line
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
        block = _head(lines) if code.co_name != "<lambda>" else inspect.getblock(lines)
        text = textwrap.dedent("".join(block))
        tree = ast.parse(text)
    except (SyntaxError, tokenize.TokenError, IndexError):
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


def _head(lines: Sequence[str]) -> list[str]:
    """Gives a function's decorators and signature with an empty body: what a long one holds need not be read."""
    depth, begun = 0, False
    for token in tokenize.generate_tokens(iter(lines).__next__):
        if token.string in _OPENING:
            depth += 1
        elif token.string in _CLOSING:
            depth -= 1
        elif token.string == "def" and depth == 0:
            begun = True
        elif token.string == ":" and begun and depth == 0:
            line, column = token.end
            return [*lines[: line - 1], f"{lines[line - 1][:column]} pass\n"]
    raise SyntaxError("no function starts here")
