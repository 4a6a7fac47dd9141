"""Elementwise ops side by side: groups of one shape that read the same value.

Recognises
    Two or more groups of elementwise ops (of one op each or more) that read one value at the same positions, have its shape and
    need nothing of each other: `cos(x)` and `sin(x)`, a sum and a difference. The root is the last one's result; the others are
    named results `sibling0`, `sibling1` and so on, so each may be read, returned or observed. Up to 8 results and 64 ops; the
    ops are those that no other pattern has.

Why it pays
    What they share is read once, and one kernel starts instead of several.

Declines when
    As a chain does: an op without a kernel; recorded bits with an op that is rounded otherwise; a comparison or a rounding to
    whole numbers on such an op.

Not recognised
    Groups that read a value along other axes, or repeated; groups of which one waits for what the other's reader makes, or
    reads a slice that is cut after the first of them.

Source
    Chen et al., TVM: An Automated End-to-End Optimizing Compiler for Deep Learning (OSDI 2018), section 3.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from topos_core.cost.work import Work
from topos_core.matching.chains import ELEMENTWISE
from topos_core.matching.expression import ExpressionFacts, evaluated, work_of
from topos_core.matching.match import Match
from topos_core.matching.pattern import Example, Pattern
from topos_core.matching.siblings import siblings
from topos_core.tape.tape import Tape

if TYPE_CHECKING:
    from topos_core.matching.context import Context

IDENTIFIER = "sibling_elementwise"


def find(context: Context, root: int, /) -> Match | None:
    """Gives the siblings whose last exit the value is."""
    return context.once(siblings).get(root)


def places(context: Context) -> Mapping[int, Match]:
    """Gives the last exits."""
    return context.once(siblings)


def evaluate(facts: ExpressionFacts, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Computes the match's own formula."""
    return evaluated(facts, arrays)


def work(tape: Tape, match: Match) -> Work:
    """Counts every op at every position, every binding once and every result."""
    return work_of(tape, match)


def _three(x: Any) -> Any:
    return np.tanh(x), np.abs(x) * 2.0, x * x


def _sides(x: Any, y: Any) -> Any:
    return (x + y) * 0.5, (x - y) * 0.5


def _in_turn(x: Any) -> Any:
    y = np.tanh(x)
    return y, y.sum(-1, keepdims=True) * x


def _repeated(x: Any, y: Any) -> Any:
    return x * 2.0, y + x


_X = {"x": "f32[6,40]"}

PATTERN = Pattern(
    identifier=IDENTIFIER,
    documentation=__doc__ or "",
    roots=ELEMENTWISE,
    find=find,
    where=places,
    work=work,
    last=True,
    evaluate=evaluate,
    examples=(
        Example("three functions of one value", _three, _X),
        Example("a sum and a difference", _sides, {**_X, "y": "f32[6,40]"}),
    ),
    counterexamples=(
        Example("one waits for the other", _in_turn, _X),
        Example("a value that one of them repeats", _repeated, {"x": "f32[40]", "y": "f32[6,40]"}),
    ),
)
