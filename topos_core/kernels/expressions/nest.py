"""Writes the loop nest that a generated kernel runs: one line a step, intermediates as locals, arrays by their loops.

The text says what `bodies/expression.py` does for C-contiguous operands: rows are dealt to threads, the innermost loop runs in
whole registers, and what is read twice is computed twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from topos_core.kernels.expressions.loops import Axes, Loops, lay_out
from topos_core.kernels.expressions.runner import readings_of
from topos_core.matching.expression import REDUCTIONS, ExpressionFacts, Step
from topos_core.matching.match import Match
from topos_core.tape.tape import Tape
from topos_core.tape.type import FLOATS

ROWS: Final = "abcdefgh"
"""Names of the loops over rows; those over blocks come from the other end."""
BLOCKS: Final = "pqrstuvw"
SIGNS: Final = {"add": "+", "sub": "-", "mul": "*", "div": "/"}


class NestLine(NamedTuple):
    """One line, and the recorded op that it is about."""

    value: int
    text: str


def loop_nest(tape: Tape, match: Match) -> tuple[NestLine, ...]:
    """Gives the lines of a match whose facts are an expression."""
    facts: ExpressionFacts = match.facts
    readings = readings_of(tape, match)
    strides = tuple(reading.usual() for reading in readings)
    copied = [
        NestLine(match.root, f"// %{match.bindings[name]} is read from a copy whose axes follow the loops")
        for name, reading in zip(facts.layouts, readings, strict=False)
        if not reading.is_dense()
    ]
    return (*copied, *_Writer(match, facts, lay_out(facts.extents, facts.reduced, strides)).lines())


@dataclass(slots=True)
class _Writer:
    match: Match
    facts: ExpressionFacts
    loops: Loops
    members: list[int] = field(init=False)
    places: list[str] = field(init=False)
    stored: dict[int, int] = field(init=False)
    inner: str = field(init=False)

    def __post_init__(self) -> None:
        named = {value for values in self.match.named.values() for value in values}
        self.members = sorted(self.match.computing | named | {self.match.root})  # as the steps were gathered
        self.inner = "i"
        count = len(self.facts.layouts)
        self.places = [self._place(number) for number in range(count + len(self.facts.results))]
        self.stored = {int(step[1:]): count + k for k, step in enumerate(self.facts.results.values())}

    @property
    def reduction(self) -> int | None:
        return next((k for k, step in enumerate(self.facts.steps) if step.op in REDUCTIONS), None)

    def lines(self) -> Iterator[NestLine]:
        """Writes all loops."""
        depth = 0
        threads = "dealt to threads"
        for name, extent in self._axes(self.loops.rows, ROWS):
            yield self._line(depth, self.match.root, self._loop(name, extent, threads))
            depth, threads = depth + 1, ""
        match self.loops.form:
            case "map":
                yield from self._pass(depth, {}, threads)
            case "rows":
                yield from self._reduced(depth)
            case "columns":
                yield self._line(
                    depth,
                    self.match.root,
                    self._loop(self.inner, self.loops.inner, "columns side by side, in registers"),
                )
                yield from self._reduced(depth + 1)
                yield self._line(depth, self.match.root, "}")
        for level in range(depth - 1, -1, -1):
            yield self._line(level, self.match.root, "}")

    def _reduced(self, depth: int) -> Iterator[NestLine]:
        """Writes the accumulation, the steps that stand on it, and the second pass over what has all axes."""
        number = self.reduction
        assert number is not None
        step = self.facts.steps[number]
        value = self.members[number]
        kind = self._accumulator(step)
        total = f"total{number}"
        start = {"sum": "0", "prod": "1", "max": "lowest", "min": "highest"}[step.op]
        yield self._line(depth, value, f"{total} = {start}{f' in {kind}' if kind != step.dtype else ''}")
        yield from self._over(depth, number, self._needed([int(step.operands[0][1:])] if step.operands[0][0] == "s" else [], {}),
                              f"{total} = {self._combined(step.op, total, self._operand(step.operands[0], {}))}")  # fmt: skip
        known = {number: f"%{value}"}
        yield self._line(
            depth, value, f"{self._target(number)} = {total}{f' to {step.dtype}' if kind != step.dtype else ''}"
        )
        for later in range(number + 1, len(self.facts.steps)):
            if self.facts.steps[later].kept:
                known[later] = f"%{self.members[later]}"
                yield self._step(depth, later, known)
        whole = [k for k in self.stored if not self.facts.steps[k].kept]
        if whole:
            yield from self._over(
                depth, whole[-1], self._needed(whole, known), "", known, "again, while it is in the cache"
            )

    def _over(
        self,
        depth: int,
        about: int,
        steps: Sequence[int],
        last: str,
        known: Mapping[int, str] | None = None,
        note: str = "",
    ) -> Iterator[NestLine]:
        """Writes one pass over the reduced axes, and over the inner one where a row is reduced along it."""
        value = self.members[about]
        loops = list(self._axes(self.loops.blocks, BLOCKS))
        if self.loops.form == "rows":
            loops.append((self.inner, self.loops.inner))
        begun = depth
        for name, extent in loops:
            inside = "in whole registers" if name == self.inner else ""
            yield self._line(depth, value, self._loop(name, extent, ", ".join(filter(None, (note, inside)))))
            depth, note = depth + 1, ""
        for number in steps:
            yield self._step(depth, number, known or {})
        if last:
            yield self._line(depth, value, last)
        for level in range(depth - 1, begun - 1, -1):
            yield self._line(level, value, "}")

    def _pass(self, depth: int, known: Mapping[int, str], note: str) -> Iterator[NestLine]:
        inside = ", ".join(filter(None, (note, "in whole registers")))
        yield self._line(depth, self.match.root, self._loop(self.inner, self.loops.inner, inside))
        for number in self._needed(list(self.stored), known):
            yield self._step(depth + 1, number, known)
        yield self._line(depth, self.match.root, "}")

    def _needed(self, numbers: Sequence[int], known: Mapping[int, str]) -> list[int]:
        """Lists the steps that some steps stand on, those included, without what is known."""
        found: set[int] = set()
        left = [number for number in numbers if number not in known]
        while left:
            number = left.pop()
            if number in found:
                continue
            found.add(number)
            read = (int(name[1:]) for name in self.facts.steps[number].operands if name[0] == "s")
            left.extend(other for other in read if other not in known)
        return sorted(found)

    def _step(self, depth: int, number: int, known: Mapping[int, str]) -> NestLine:
        step = self.facts.steps[number]
        operands = [self._operand(name, known) for name in step.operands]
        if step.op in SIGNS:
            made = f" {SIGNS[step.op]} ".join(operands)
        else:
            detail = step.dtype if step.op == "cast" else step.detail
            made = f"{step.op}{f'[{detail}]' if detail else ''}({', '.join(operands)})"
        return self._line(depth, self.members[number], f"{self._target(number)} = {made}")

    def _target(self, number: int) -> str:
        """Names what a step makes: a place in memory where it is a result, else a local."""
        value = f"%{self.members[number]}"
        return f"{value}{self.places[self.stored[number]]}" if number in self.stored else value

    def _operand(self, name: str, known: Mapping[int, str]) -> str:
        number = int(name[1:])
        match name[0]:
            case "x":
                return f"%{self.match.bindings[name]}{self.places[list(self.facts.layouts).index(name)]}"
            case "c":
                return str(self.facts.constants[name])
        return known.get(number, f"%{self.members[number]}")

    def _place(self, array: int) -> str:
        """Writes where an array is read or written: the loops along which it moves, as its own axes follow each other."""
        strides = [
            (stride, name)
            for axes, letters in ((self.loops.rows, ROWS), (self.loops.blocks, BLOCKS))
            for (name, _), stride in zip(self._axes(axes, letters), axes.strides[array], strict=True)
            if stride
        ]
        names = [name for _, name in sorted(strides, key=lambda found: -found[0])]
        return f"[{', '.join([*names, self.inner] if self.loops.along[array] else names)}]"

    def _axes(self, axes: Axes, letters: str) -> Iterator[tuple[str, int]]:
        for k, extent in enumerate(axes.extents):
            yield (letters[k] if k < len(letters) else f"{letters[0]}{k}"), extent

    def _loop(self, name: str, extent: int, note: str) -> str:
        return f"for {name} in 0..{extent} {{{f'  // {note}' if note else ''}"

    def _accumulator(self, step: Step) -> str:
        if step.op in ("max", "min"):
            return step.dtype
        return "f64" if step.dtype in FLOATS else step.detail or step.dtype

    def _combined(self, op: str, total: str, value: str) -> str:
        return {"sum": f"{total} + {value}", "prod": f"{total} * {value}"}.get(op, f"{op}({total}, {value})")

    def _line(self, depth: int, value: int, text: str) -> NestLine:
        return NestLine(value, f"{'  ' * depth}{text}")
