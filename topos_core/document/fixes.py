"""Edits that end a blocked finding: move the observation to a free value, or remove it. Derived from the source's syntax."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from topos_core.document import advice
from topos_core.document.display import display
from topos_core.document.finding import Edit, Fix
from topos_core.document.places import Places, split_lines
from topos_core.document.syntax import parsed
from topos_core.tape.span import Span
from topos_core.tape.tape import Observation

_REMOVABLE: Final = ("observe", "print")


@dataclass(slots=True)
class Sources:
    """The syntax trees of the traced texts; parsed only where a fix is looked for."""

    places: Places
    _files: dict[str, _File | None] = field(init=False, default_factory=dict)

    def fixes(self, observation: Observation, nearest_free: int | None) -> tuple[Fix, ...]:
        """Lists the edits that end the observation, best first; nothing where the syntax does not say how."""
        if observation.kind not in _REMOVABLE:
            return ()
        tape = self.places.tape
        raw = tape.locations[observation.location].span
        file = self._file(raw.path)
        if file is None:
            return ()
        call = file.call_at(raw)
        if call is None:
            return ()
        shown = self.places.path(raw.path)
        name = observation.name or tape.names.get(observation.value)
        removed = file.removal(call, shown)
        found = []
        if nearest_free is not None and observation.kind == "observe":
            free = tape.location_of(nearest_free).span
            moved = file.move(call, free, shown) if free.path == raw.path else None
            if moved is not None:
                target, edits = moved
                found.append(Fix(advice.fix_move(display(target)), edits))
        if removed is not None:
            found.append(Fix(advice.fix_remove(display(name) if name else None), (removed,)))
        return tuple(found)

    def in_debug_runs(self, observation: Observation) -> tuple[Edit, ...]:
        """Gives the edit after which the observation is made unless Python runs optimised (`-O`); none where it is no statement."""
        raw = self.places.tape.locations[observation.location].span
        file = self._file(raw.path)
        call = file.call_at(raw) if file is not None else None
        edit = file.guarded(call, self.places.path(raw.path)) if file is not None and call is not None else None
        return () if edit is None else (edit,)

    def beside(self, observation: Observation, made: Sequence[int]) -> tuple[Edit, ...]:
        """Gives the edit that reads an expression of its own, where one assignment of the block makes all of `made`."""
        tape = self.places.tape
        raw = tape.locations[observation.location].span
        file = self._file(raw.path)
        call = file.call_at(raw) if file is not None else None
        if file is None or call is None:
            return ()
        spans = [tape.location_of(value).span for value in made]
        edit = file.repeated(call, tape.location_of(observation.value).span, spans, self.places.path(raw.path))
        return () if edit is None else (edit,)

    def _file(self, path: str) -> _File | None:
        if path not in self._files:
            text = self.places.tape.sources.get(path)
            try:
                self._files[path] = _File(text, parsed(text)) if text is not None else None
            except (
                SyntaxError,
                ValueError,
                RecursionError,
            ):  # a tape may carry a text that is no Python: there is no edit of it
                self._files[path] = None
        return self._files[path]


@dataclass
class _File:
    """One source text with its tree. Columns of `ast` are UTF-8 bytes; spans count code points."""

    text: str
    tree: ast.Module

    def call_at(self, span: Span) -> ast.Call | None:
        """Finds the call that stands exactly at a span."""
        for statement in self._block_on(span.line):
            if _holds(statement, span.line):
                for node in ast.walk(statement):
                    if isinstance(node, ast.Call) and node.lineno == span.line and self.place(node, span.path) == span:
                        return node
        return None

    def removal(self, call: ast.Call, path: str) -> Edit | None:
        """Removes a call that is a statement of its own: its lines, or `pass` where nothing else is left in the block."""
        statement, block = self._own_statement(call)
        if statement is None:
            return None
        if len(block) == 1:
            return Edit(self.place(statement, path), "pass")
        assert statement.end_lineno is not None
        return Edit(Span(path, statement.lineno, 0, statement.end_lineno + 1, 0), "")

    def guarded(self, call: ast.Call, path: str) -> Edit | None:
        """Puts a call that is a statement of its own under `if __debug__:`; further lines stand inside its parentheses."""
        statement, _ = self._own_statement(call)
        if statement is None:
            return None
        assert statement.end_lineno is not None
        first, *more = self._lines[statement.lineno - 1 : statement.end_lineno]
        indent = first[: self.place(statement, path).column]
        lines = [f"{indent}if __debug__:", f"{indent}    {first[len(indent) :]}", *more]
        place = Span(path, statement.lineno, 0, statement.end_lineno + 1, 0)
        return Edit(place, "".join(f"{line}\n" for line in lines))

    def repeated(self, call: ast.Call, made: Span, parts: Sequence[Span], path: str) -> Edit | None:
        """Writes the assigned expression in place of the variable that a call reads, where it still means the same there."""
        statement, block = self._statement(call)
        read = call.args[0] if call.args else None
        if statement is None or not isinstance(read, ast.Name) or not all(_within(part, made) for part in parts):
            return None
        for number, other in enumerate(block):
            if not (
                isinstance(other, ast.Assign) and len(other.targets) == 1 and isinstance(other.targets[0], ast.Name)
            ):
                continue
            if other.targets[0].id != read.id or self.place(other.value, made.path) != made:
                continue
            used = {node.id for node in ast.walk(other.value) if isinstance(node, ast.Name)}
            between = block[number : block.index(statement)]
            bound = {n.id for each in between for n in ast.walk(each) if isinstance(n, ast.Name) and _binds(n)}
            return None if used & bound else Edit(self.place(read, path), self._written(other.value))
        return None

    def move(self, call: ast.Call, free: Span, path: str) -> tuple[str, tuple[Edit, ...]] | None:
        """Observes the free value instead: its variable, behind the assignment, or else the expression where it stands."""
        removed = self.removal(call, path)
        statement, block = self._statement(call)
        if removed is None or statement is None:
            return None
        for other in block:
            if (
                isinstance(other, ast.Assign)
                and len(other.targets) == 1
                and isinstance(other.targets[0], ast.Name)
                and self.place(other.value, free.path) == free
                and self._alone_on_its_lines(other)
                and len(call.args) >= 1
                and isinstance(call.args[0], ast.Name)
            ):
                assert other.end_lineno is not None
                target = other.targets[0].id
                called = self._written(call.func)
                label = self._label(call, target)
                indent = self._lines[other.lineno - 1][: self.place(other, path).column]
                inserted = Edit(
                    Span(path, other.end_lineno + 1, 0, other.end_lineno + 1, 0), f"{indent}{called}({target}{label})\n"
                )
                if (
                    statement.lineno == other.end_lineno + 1
                ):  # the observation already stands there: one edit, no overlap
                    return target, (Edit(removed.place, inserted.text),)
                return target, tuple(sorted((removed, inserted), key=lambda edit: edit.place))
        return self._wrapped(call, block, removed, free, path)

    def _wrapped(
        self, call: ast.Call, block: list[ast.stmt], removed: Edit, free: Span, path: str
    ) -> tuple[str, tuple[Edit, ...]] | None:
        """Puts the observation around an expression of the same block, which it passes on as it is."""
        if free.line != free.end_line or not call.args:
            return None
        for other in block:
            for node in ast.walk(other) if isinstance(other, (ast.Assign, ast.Return, ast.Expr)) else ():
                if isinstance(node, ast.expr) and node.lineno == free.line and self.place(node, free.path) == free:
                    written = self._written(node)
                    called = self._written(call.func)
                    before = Span(path, free.line, free.column, free.line, free.column)
                    behind = Span(path, free.line, free.end_column, free.line, free.end_column)
                    edits = (removed, Edit(before, f"{called}("), Edit(behind, f"{self._label(call, None)})"))
                    return written, tuple(sorted(edits, key=lambda edit: edit.place))
        return None

    def _label(self, call: ast.Call, target: str | None) -> str:
        """Names the new value after its variable where the old one was named after its own; other labels stay."""
        observed = call.args[0]
        rest = [*call.args[1:], *(keyword.value for keyword in call.keywords)]
        if not rest:
            return ""
        if isinstance(observed, ast.Name) and isinstance(rest[0], ast.Constant) and rest[0].value == observed.id:
            return f', "{target}"' if target is not None else ""
        return f", {self._written(rest[0])}"

    def _written(self, node: ast.expr) -> str:
        """Gives the text of an expression; `ast.get_source_segment` splits the whole file for each."""
        span = self.place(node, "")
        lines = self._lines[span.line - 1 : span.end_line]
        lines[-1] = lines[-1][: span.end_column]
        lines[0] = lines[0][span.column :]
        return "\n".join(lines)

    def place(self, node: ast.expr | ast.stmt, path: str) -> Span:
        """Gives a node's span in code points."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return Span(
            path,
            node.lineno,
            self._column(node.lineno, node.col_offset),
            node.end_lineno,
            self._column(node.end_lineno, node.end_col_offset),
        )

    def _column(self, line: int, offset: int) -> int:
        return len(self._lines[line - 1].encode("utf-8", "surrogatepass")[:offset].decode("utf-8", "replace"))

    def _statement(self, call: ast.Call) -> tuple[ast.stmt | None, list[ast.stmt]]:
        """Finds the innermost statement around a call and the block that it stands in."""
        block = self._block_on(call.lineno)
        statement = next((each for each in block if any(inner is call for inner in ast.walk(each))), None)
        return statement, block

    def _own_statement(self, call: ast.Call) -> tuple[ast.stmt | None, list[ast.stmt]]:
        """Finds the statement that is a call and nothing else, alone on its lines, and the block that it stands in."""
        statement, block = self._statement(call)
        own = isinstance(statement, ast.Expr) and statement.value is call and self._alone_on_its_lines(statement)
        return (statement if own else None), block

    def _block_on(self, line: int) -> list[ast.stmt]:
        """Finds the innermost block that has a statement on a line; descends by lines, since a walk of the file is long."""
        found = self.tree.body
        inner: list[ast.stmt] | None = found
        while inner is not None:
            found = inner
            around = (statement for statement in found if _holds(statement, line))
            blocks = (block for statement in around for block in _blocks(statement))
            inner = next((block for block in blocks if any(_holds(each, line) for each in block)), None)
        return found

    def _alone_on_its_lines(self, statement: ast.stmt) -> bool:
        """Tells whether nothing but the statement stands on its lines (`a; b` and `if x: a` do not qualify)."""
        assert statement.end_lineno is not None
        place = self.place(statement, "")
        before = self._lines[statement.lineno - 1][: place.column]
        after = self._lines[statement.end_lineno - 1][place.end_column :].strip()
        ends_with_newline = statement.end_lineno < len(self._lines)
        return not before.strip() and (not after or after.startswith("#")) and ends_with_newline

    @cached_property
    def _lines(self) -> list[str]:
        return split_lines(self.text)


def _within(part: Span, whole: Span) -> bool:
    start, end = (part.line, part.column), (part.end_line, part.end_column)
    return part.path == whole.path and (whole.line, whole.column) <= start and end <= (whole.end_line, whole.end_column)


def _binds(name: ast.Name) -> bool:
    return not isinstance(name.ctx, ast.Load)


def _holds(node: ast.stmt, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or node.lineno)


def _blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """Lists the blocks of a statement: bodies, other branches, handlers' and cases' bodies."""
    for part in ("body", "orelse", "finalbody"):
        block = getattr(node, part, None)
        if isinstance(block, list):
            yield block
    for part in ("handlers", "cases"):
        for each in getattr(node, part, ()):
            yield each.body
