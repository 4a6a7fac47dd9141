"""A reduction and the chain of elementwise ops that its result goes through.

Recognises
    A sum, product, maximum or minimum over any axes whose result is read by elementwise ops alone: as it is (the root of a
    sum), repeated along the reduced axes beside the operand itself (a value divided by its row's largest), or both in turn.
    Elementwise ops before the reduction that nothing else reads belong to it (a sum of squares). The ops are those that no
    other pattern has.

Why it pays
    A row is reduced and finished while it is in the cache; the recorded ops read it twice and write what lies between.

Declines when
    It has an op without a kernel; bits must be the recorded ones and floats are summed or multiplied, or some op is rounded
    otherwise than recorded; a comparison or a rounding to whole numbers stands on such an op.

Not recognised
    Two reductions in one; a value before the reduction that is read behind it too; a result that something else reads;
    movement between the ops beside axes of extent 1 and repetition along the reduced axes.

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
from topos_core.matching.folds import reductions_elementwise
from topos_core.matching.match import Match
from topos_core.matching.pattern import Example, Pattern
from topos_core.tape.tape import Tape

if TYPE_CHECKING:
    from topos_core.matching.context import Context

IDENTIFIER = "reduction_elementwise"


def find(context: Context, root: int, /) -> Match | None:
    """Gives the reduction that a chain alone reads."""
    return context.once(reductions_elementwise).get(root)


def places(context: Context) -> Mapping[int, Match]:
    """Gives the exits of such chains."""
    return context.once(reductions_elementwise)


def evaluate(facts: ExpressionFacts, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Computes the match's own formula."""
    return evaluated(facts, arrays)


def work(tape: Tape, match: Match) -> Work:
    """Counts every op where it stands, a step of the reduction at every position, every binding once and the result."""
    return work_of(tape, match)


def _magnitude(x: Any) -> Any:
    return np.abs(x).mean(-1)


def _shares(x: Any) -> Any:
    return x / np.maximum(np.abs(x).sum(-1, keepdims=True), 1e-6)


def _below(x: Any) -> Any:
    return x.max(0) - x


def _bare(x: Any) -> Any:
    return x.max(-1)


def _other_axis(x: Any) -> Any:
    return x - x.max(-1)


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
        Example("a mean magnitude", _magnitude, _X),
        Example("shares of a row", _shares, _X),
        Example("how far below the largest", _below, _X),
    ),
    counterexamples=(
        Example("a reduction alone", _bare, _X),
        Example("repeated along another axis than the reduced one", _other_axis, {"x": "f32[5,5]"}),
    ),
)
