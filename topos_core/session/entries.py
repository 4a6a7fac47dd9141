"""Finds marked entries and topos comments by syntax alone; nothing is imported.

An entry is a function decorated with `@tp.model(...)`, whatever `topos_core` or `model` are called in the file (a name that the
file binds to `tp.model(...)` marks too, so that several functions can share one mark), or a function, a class or an object that
is assigned (`net = Net()`) below a comment

    # topos: entry inputs=f32[1,3,224,224]

`inputs=` takes what an input spec takes, keyword inputs (`image=f32[...], mask=bool[...]`) among them; `inputs=` itself may be
left out before them. Further comments are `# topos: ignore[TP202] reason` and `# topos: off[convolution]`; no others.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Literal

from topos_core.document.syntax import parsed
from topos_core.errors import ConfigurationError, TraceError
from topos_core.tape.span import Span

CommentKind = Literal["entry", "ignore", "off"]

_COMMENT: Final = re.compile(r"#\s*topos:\s*(?P<body>.*)$")
_MENTION: Final = re.compile(r"#\s*topos:")
_LISTED: Final = re.compile(r"(?P<kind>ignore|off)\s*\[(?P<names>[^\]]*)\]\s*(?P<reason>.*)$")
_MEANT: Final = re.compile(r"\w+\s*\[|(ignore|off|entry|entries)\b", re.IGNORECASE)
_CODE: Final = re.compile(r"TP\d{3}$")


@dataclass(frozen=True, slots=True)
class Comment:
    """One `# topos:` comment.

    Args:
        kind: entry, ignore or off.
        names: Codes of an `ignore`, pattern identifiers of an `off`.
        text: The specs of an `entry`, the reason of an `ignore`.
        span: The comment itself.
        line: The line that it speaks of: its own, or the next line with code where it stands alone.
        removal: What goes when it is removed: the whole line where it stands alone, else the space before it too.
    """

    kind: CommentKind
    names: tuple[str, ...]
    text: str
    span: Span
    line: int
    removal: Span


@dataclass(frozen=True, slots=True)
class Entry:
    """One marked function, class or object.

    Args:
        name: Its name in the module, dotted inside classes.
        kind: function, class, or the instance that a name is bound to.
        specs: The comment's input specs; None where the decorator has them.
        span: The name on the `def` or `class` line, or left of the `=`.
        mark: The decorator or the comment.
        end_line: The last line of its body.
    """

    name: str
    kind: Literal["function", "class", "instance"]
    specs: str | None
    span: Span
    mark: Span
    end_line: int = 0


@dataclass(frozen=True, slots=True)
class Marks:
    """Everything in one file that concerns topos."""

    entries: tuple[Entry, ...]
    comments: tuple[Comment, ...] = field(default=())


def find(text: str, path: str) -> Marks:
    """Finds the entries and comments of a file; a text that never says `topos` is not even parsed.

    Raises:
        TraceError: TP403, the text does not parse; the place is the parser's.
        ConfigurationError: TP501, a `# topos:` comment that is none of the three kinds, or stands over nothing.
    """
    if "topos" not in text:
        return Marks(())
    text = text.removeprefix("\ufeff")
    try:
        tree = parsed(text)
        comments = tuple(_comments(text, path)) if _MENTION.search(text) else ()  # tokens cost more than the tree
    except SyntaxError as error:
        raise TraceError(f"syntax error: {error.msg}", code="TP403", span=_syntax_span(error, path)) from None
    except (ValueError, RecursionError, MemoryError) as error:  # null bytes, or nesting that no parser follows
        raise TraceError(f"syntax error: {error}", code="TP403", span=Span(path, 1, 0, 1, 1)) from None
    entries = {entry.name: entry for entry in _entries(tree, comments, text, path)}  # a later definition wins
    return Marks(tuple(sorted(entries.values(), key=lambda entry: entry.span)), comments)


def _entries(tree: ast.Module, comments: tuple[Comment, ...], text: str, path: str) -> Iterator[Entry]:
    lines = split_lines(text)
    aliases = _aliases(tree)
    wanted = {comment.line: comment for comment in comments if comment.kind == "entry"}
    for name, node in _definitions(tree.body, ""):
        kind: Literal["function", "class"] = "class" if isinstance(node, ast.ClassDef) else "function"
        first = min((node.lineno, *(decorator.lineno for decorator in node.decorator_list)))
        comment = wanted.pop(first, None) or wanted.pop(node.lineno, None)
        decorator = next((d for d in node.decorator_list if _is_model(d, aliases)), None)
        if comment is None and decorator is None:
            continue
        mark = comment.span if comment is not None else _span(decorator, lines, path) if decorator is not None else None
        assert mark is not None
        specs = comment.text if comment is not None else None
        yield Entry(name, kind, specs, _name_span(node, lines, path), mark, node.end_lineno or node.lineno)
    for name, target, end in _assignments(tree.body):
        comment = wanted.pop(target.lineno, None)
        if comment is not None:
            yield Entry(name, "instance", comment.text, _span(target, lines, path), comment.span, end)
    for comment in wanted.values():
        raise ConfigurationError(
            "`# topos: entry` stands over neither a function nor a class nor an assigned object; put it on the line above one",
            code="TP501",
            span=comment.span,
        )


def _definitions(
    body: list[ast.stmt], prefix: str
) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]]:
    for node in body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield prefix + node.name, node
            case ast.ClassDef():
                yield prefix + node.name, node
                yield from _definitions(node.body, f"{prefix}{node.name}.")
            case ast.If() | ast.Try() | ast.With():
                for block in (node.body, getattr(node, "orelse", []), getattr(node, "finalbody", [])):
                    yield from _definitions(block, prefix)


def _assignments(body: list[ast.stmt]) -> Iterator[tuple[str, ast.Name, int]]:
    """Gives the names that a file binds at its top level to what may be a model, and the line on which each ends."""
    for node in body:
        match node:
            case ast.Assign(targets=[ast.Name() as target]) | ast.AnnAssign(target=ast.Name() as target):
                if not isinstance(node.value, (ast.Constant, ast.JoinedStr, ast.List, ast.Tuple, ast.Dict, type(None))):
                    yield target.id, target, node.end_lineno or node.lineno
            case ast.If() | ast.Try() | ast.With():
                for block in (node.body, getattr(node, "orelse", []), getattr(node, "finalbody", [])):
                    yield from _assignments(block)


@dataclass(slots=True)
class _Aliases:
    """What the file calls `topos_core` and `topos_core.model`."""

    modules: set[str] = field(default_factory=set)
    models: set[str] = field(default_factory=set)


def _aliases(tree: ast.Module) -> _Aliases:
    found = _Aliases()
    for node in _statements(tree):
        match node:
            case ast.Import():
                for name in node.names:
                    if name.name == "topos_core":
                        found.modules.add(name.asname or name.name)
                    elif name.name.startswith("topos_core.") and name.asname is None:
                        found.modules.add("topos_core")
            case ast.ImportFrom(module="topos_core" | "topos_core.api"):
                found.models |= {name.asname or name.name for name in node.names if name.name in ("model", "*")}
                if any(name.name == "*" for name in node.names):
                    found.models.add("model")
    for statement in tree.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=shared)], value=ast.Call() as call) if _is_model(call, found):
                found.models.add(shared)
    return found


def _statements(node: ast.AST) -> Iterator[ast.stmt]:
    """Walks every statement, in whatever block; expressions, of which a file has ten times as many, hold no imports."""
    for part in ("body", "orelse", "finalbody", "handlers", "cases"):
        inside = getattr(node, part, None)
        for each in inside if isinstance(inside, list) else ():
            if isinstance(each, ast.stmt):
                yield each
            yield from _statements(each)


def _is_model(decorator: ast.expr, aliases: _Aliases) -> bool:
    function = decorator.func if isinstance(decorator, ast.Call) else decorator
    match function:
        case ast.Attribute(attr="model", value=ast.Name(id=module)):
            return module in aliases.modules
        case ast.Name(id=name):
            return name in aliases.models
    return False


def _comments(text: str, path: str) -> Iterator[Comment]:
    tokens = list(tokenize.generate_tokens(io.StringIO(text, newline=None).readline))
    silent = (tokenize.NL, tokenize.COMMENT, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    code_lines = sorted({token.start[0] for token in tokens if token.type not in silent})
    for token in tokens:
        if token.type != tokenize.COMMENT or not (match := _COMMENT.match(token.string)):
            continue
        line = token.start[0]
        alone = not token.line[: token.start[1]].strip()
        below = next((each for each in code_lines if each > line), line) if alone else line
        span = Span(path, line, token.start[1], token.end[0], token.end[1])
        code = token.line[: token.start[1]].rstrip()
        removal = Span(path, line, 0, line + 1, 0) if alone else span._replace(column=len(code))
        comment = _comment(match["body"].strip(), span, below, removal)
        if comment is not None:
            yield comment


def _comment(body: str, span: Span, line: int, removal: Span) -> Comment | None:
    if body == "entry" or re.match(r"entry\s", body):
        specs = re.sub(r"^inputs\s*=\s*", "", body[len("entry") :].strip())
        return Comment("entry", (), specs, span, line, removal)
    match = _LISTED.match(body)
    if match is None and not _MEANT.match(body):
        return None  # a sentence about topos
    names = tuple(name.strip() for name in match["names"].split(",")) if match else ()
    if match is None or not all(names):
        raise ConfigurationError(
            f"`# topos: {body}` is no comment that topos knows; write `entry inputs=...`, `ignore[CODE] reason` or `off[PATTERN]`",
            code="TP501",
            span=span,
        )
    if match["kind"] == "ignore" and (wrong := next((name for name in names if not _CODE.match(name)), None)):
        raise ConfigurationError(f"`ignore[{wrong}]` names no code; codes look like TP202", code="TP501", span=span)
    return Comment(
        "ignore" if match["kind"] == "ignore" else "off", names, match["reason"].strip(), span, line, removal
    )


def split_lines(text: str) -> list[str]:
    r"""Splits a text where Python and editors do, at \r\n, \n and \r, and nowhere else."""
    return re.split(r"\r\n|\n|\r", text)


def _span(node: ast.expr, lines: list[str], path: str) -> Span:
    end_line, end_column = node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
    return Span(
        path,
        node.lineno,
        _code_points(lines, node.lineno, node.col_offset),
        end_line,
        _code_points(lines, end_line, end_column),
    )


def _name_span(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, lines: list[str], path: str) -> Span:
    column = lines[node.lineno - 1].find(node.name, _code_points(lines, node.lineno, node.col_offset))
    start = max(column, 0)
    return Span(path, node.lineno, start, node.lineno, start + len(node.name))


def _code_points(lines: list[str], line: int, column: int) -> int:
    """Turns a UTF-8 byte column, which is what `ast` gives, into code points."""
    return len(lines[line - 1].encode()[:column].decode("utf-8", "ignore"))


def _syntax_span(error: SyntaxError, path: str) -> Span:
    line, column = error.lineno or 1, max((error.offset or 1) - 1, 0)
    end = error.end_lineno or line, max((error.end_offset or 0) - 1, 0)
    return Span(path, line, column, *(end if end > (line, column) else (line, column + 1)))
