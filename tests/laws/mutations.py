"""Tapes with one thing changed: a constant, a bound, an axis, an operand, an op, an epsilon outside of its root.

`python -m tests.laws.mutations` prints how many of the changes to the patterns' examples are caught.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tests.laws.metamorphic import Rewriter
from topos_core.matching.catalog import patterns
from topos_core.matching.certificate import certify
from topos_core.matching.match import Match
from topos_core.matching.pattern import Pattern
from topos_core.matching.search import search
from topos_core.ops.catalog import definition
from topos_core.ops.definition import TypeMismatch
from topos_core.recording.trace import trace
from topos_core.run.proof import difference, prove
from topos_core.run.widened import widened
from topos_core.tape.op import Op
from topos_core.tape.tape import Tape
from topos_core.tape.type import FLOATS

SWAPPED = {
    "add": "sub", "sub": "add", "mul": "div", "div": "mul", "maximum": "minimum", "minimum": "maximum", "max": "min",
    "min": "max", "exp": "expm1", "tanh": "erf", "erf": "tanh", "sqrt": "rsqrt", "rsqrt": "sqrt",
}  # fmt: skip
EQUAL = 1e-9
ORDERED = ("sub", "div", "pow", "matmul")


def mutants(tape: Tape, match: Match) -> Iterator[tuple[str, Tape]]:
    """Gives every tape that differs from `tape` in one thing inside of a match, with the kind of change."""
    inside = sorted(match.interior | {match.root} | {v for values in match.named.values() for v in values})
    for value in inside:
        op = tape.ops[value]
        for kind, other in _changed(tape, value, op):
            made = _replaced(tape, value, other)
            if made is not None:
                yield kind, made
        made = _epsilon_outside(tape, value)
        if made is not None:
            yield "epsilon outside", made


def _changed(tape: Tape, value: int, op: Op) -> Iterator[tuple[str, Op]]:
    attributes = op.attributes

    def with_attributes(**changes: Any) -> Op:
        return op._replace(attributes={**attributes, **changes})

    if op.name == "constant":
        yield from _constants(op)
    if op.name == "slice":
        for axis, extent in enumerate(tape.ops[op.operands[0]].type.shape):
            for step in (1, -1):
                start, stop = list(attributes["start"]), list(attributes["stop"])
                start[axis], stop[axis] = start[axis] + step, stop[axis] + step
                if start[axis] >= 0 and stop[axis] <= extent:
                    yield "bound of a slice", with_attributes(start=tuple(start), stop=tuple(stop))
    if op.name == "pad":
        for axis in range(len(op.type.shape)):
            for step in (1, -1):
                low, high = list(attributes["low"]), list(attributes["high"])
                if low[axis] == high[axis] == 0:
                    continue
                low[axis], high[axis] = low[axis] + step, high[axis] - step
                yield "bound of a pad", with_attributes(low=tuple(low), high=tuple(high))
        yield "fill of a pad", with_attributes(fill=type(attributes["fill"])(1.0))
    if op.name == "strided":
        for step in (1, -1):
            yield "offset", with_attributes(offset=attributes["offset"] + step)
    if op.name == "gather" and "axis" in attributes:
        yield "axis", with_attributes(axis=attributes["axis"] + 1)
    if op.name in ("sum", "max", "min"):
        rank = len(tape.ops[op.operands[0]].type.shape)
        for gone in attributes["axes"]:
            for axis in set(range(rank)) - set(attributes["axes"]):
                yield "axis", with_attributes(axes=tuple(sorted({*attributes["axes"], axis} - {gone})))
    if op.name == "permute":
        order = attributes["order"]
        for a in range(len(order)):
            for b in range(a):
                swapped = list(order)
                swapped[a], swapped[b] = swapped[b], swapped[a]
                yield "axis", with_attributes(order=tuple(swapped))
    if op.name == "compare":
        for kind in ("lt", "le", "gt", "ge", "eq", "ne"):
            if kind != attributes["kind"]:
                yield "comparison", with_attributes(kind=kind)
    if op.name in SWAPPED:
        yield "op", op._replace(name=SWAPPED[op.name])
    if op.name in ORDERED or op.name == "concat":
        yield "order of operands", op._replace(operands=op.operands[::-1])
    if op.name == "select":
        yield "order of operands", op._replace(operands=(op.operands[0], op.operands[2], op.operands[1]))


def _constants(op: Op) -> Iterator[tuple[str, Op]]:
    number = op.attributes["value"]
    if isinstance(number, np.ndarray):
        for at in {0, number.size - 1} if number.size else ():
            table = number.copy()
            table.reshape(-1)[at] = ~table.reshape(-1)[at] if number.dtype == bool else table.reshape(-1)[at] + 1
            yield "constant", op._replace(attributes={**op.attributes, "value": table})
        return
    changes = (1, -1) if op.type.dtype not in FLOATS else (1, -1, float(number) * 0.01)
    for change in changes:
        other = type(number)(number + change) if op.type.dtype != "bool" else np.bool_(not number)
        if other != number:
            yield "constant", op._replace(attributes={**op.attributes, "value": other})


def _replaced(tape: Tape, value: int, other: Op) -> Tape | None:
    """Puts another op in place of one; None where it does not fit there."""
    types = [tape.ops[operand].type for operand in other.operands]
    try:
        fits = definition(other.name).infer(types, other.attributes) == other.type
    except (TypeMismatch, IndexError):
        return None
    if not fits:
        return None
    return replace(tape, ops=(*tape.ops[:value], other, *tape.ops[value + 1 :]))


def _epsilon_outside(tape: Tape, value: int) -> Tape | None:
    """Turns `sqrt(v + e)` into `sqrt(v) + e`."""
    op = tape.ops[value]
    if op.name != "sqrt" or tape.ops[op.operands[0]].name != "add":
        return None
    sides = tape.ops[op.operands[0]].operands
    numbers = [side for side in sides if tape.ops[side].name == "constant"]
    if len(numbers) != 1:
        return None
    rewriter = Rewriter(tape, 0)
    for each in range(len(tape.ops)):
        if each == value:
            inner = next(side for side in sides if side not in numbers)
            root = rewriter.emit("sqrt", rewriter.new[inner], at=value)
            rewriter.new[each] = rewriter.emit("add", root, rewriter.new[numbers[0]], at=value)
        else:
            rewriter.new[each] = rewriter.copy(each)
    return rewriter.finish()


@dataclass
class Tally:
    """How mutants fared: by kind, how many there were, were refused, were matched as what they are, and were equal.

    `shifted` counts those that were not found as the same although they are, by algebra: a softmax shifted by something
    else. `wrong` lists those that were taken for what they are not; `fooled` those that a certificate called equal to the
    unchanged program although they compute something else.
    """

    made: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    told_apart: Counter[str] = field(default_factory=Counter)
    equal: Counter[str] = field(default_factory=Counter)
    shifted: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    fooled: list[str] = field(default_factory=list)

    @property
    def caught(self) -> int:
        return sum(self.refused.values()) + sum(self.told_apart.values())


def tried(pattern: Pattern, tally: Tally, every: int = 1) -> None:
    """Tries each `every`th mutant of a pattern's examples."""
    for example in pattern.examples:
        tape = trace(example.function, **example.specs)
        found = [one for one in search(tape, patterns().values()).matches if one.pattern == pattern.identifier]
        if not found:
            continue
        match = max(found, key=lambda one: (one.root, len(one.interior)))
        for number, (kind, mutant) in enumerate(mutants(tape, match)):
            if number % every:
                continue
            _judge(f"{pattern.identifier}, {example.name}, {kind} {number}", kind, mutant, match, tally)


def _judge(title: str, kind: str, mutant: Tape, match: Match, tally: Tally) -> None:
    tally.made[kind] += 1
    after = [one for one in search(mutant, patterns().values()).matches if one.pattern == match.pattern]
    for one in after:
        (proof,) = prove(mutant, [one])
        if proof.verdict == "refuted":
            tally.wrong.append(f"{title}: {one.id}: {proof.certificate.reason}")
    moved = kind == "epsilon outside"  # one op more: what follows has other numbers
    same = [
        one
        for one in after
        if one.facts == match.facts and one.bindings == match.bindings and (moved or one.root == match.root)
    ]
    if same:
        tally.equal[kind] += 1  # proved right above, with the facts of the unchanged program: it computes the same
        return
    (tally.told_apart if after else tally.refused)[kind] += 1
    if not moved and certify(mutant, match).answer == "true":
        tally.shifted[kind] += 1
        if difference(widened(mutant), match, (0.1,)) > EQUAL:
            tally.fooled.append(title)


def main() -> None:
    """Prints how the mutants of every pattern's examples fared."""
    whole = Tally()
    with np.errstate(all="ignore"):
        for pattern in patterns().values():
            tried(pattern, whole)
    print(f"{'change':20} {'made':>6} {'refused':>8} {'told apart':>11} {'equal':>6} {'of these equal by algebra':>26}")
    for kind, count in whole.made.most_common():
        print(
            f"{kind:20} {count:6} {whole.refused[kind]:8} {whole.told_apart[kind]:11} {whole.equal[kind]:6} {whole.shifted[kind]:26}"
        )
    made = sum(whole.made.values())
    print(
        f"{made} mutants: {whole.caught} caught ({whole.caught / made:.1%}), {sum(whole.equal.values())} proved equal,",
        end=" ",
    )
    print(f"{len(whole.wrong)} taken for what they are not, {len(whole.fooled)} certificates fooled")
    for line in (*whole.wrong, *whole.fooled):
        print(f"  {line}")


if __name__ == "__main__":
    main()
