"""A chain of elementwise ops and the one reduction that reads it.

Recognises
    One or more elementwise ops of one shape whose result only a sum, product, maximum or minimum reads, over any axes: a sum
    of squares, a largest difference, a count of what holds. The ops are those that no other pattern has.

Why it pays
    The operands are read once and nothing of their size is written; the recorded ops write and read every value on the way.

Declines when
    It has an op without a kernel; bits must be the recorded ones and floats are summed or multiplied, or some op is rounded
    otherwise than recorded; a comparison or a rounding to whole numbers stands on such an op.

Not recognised
    Positions of a maximum, cumulative sums, logsumexp; an inner value that is read outside; movement between the ops beside
    axes of extent 1.

Source
    Chen et al., TVM: An Automated End-to-End Optimizing Compiler for Deep Learning (OSDI 2018), section 3.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from topos_core.cost.work import Work
from topos_core.matching.expression import REDUCTIONS, ExpressionFacts, evaluated, work_of
from topos_core.matching.folds import elementwise_reductions
from topos_core.matching.match import Match
from topos_core.matching.pattern import Example, Pattern
from topos_core.tape.tape import Tape

if TYPE_CHECKING:
    from topos_core.matching.context import Context

IDENTIFIER = "elementwise_reduction"


def find(context: Context, root: int, /) -> Match | None:
    """Gives the chain that a reduction alone reads."""
    return context.once(elementwise_reductions).get(root)


def places(context: Context) -> Mapping[int, Match]:
    """Gives the reductions."""
    return context.once(elementwise_reductions)


def evaluate(facts: ExpressionFacts, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Computes the match's own formula."""
    return evaluated(facts, arrays)


def work(tape: Tape, match: Match) -> Work:
    """Counts every op and a step of the reduction at every position, every binding once and the result."""
    return work_of(tape, match)


def _magnitudes(x: Any, w: Any) -> Any:
    return (np.abs(x) * 2 + w).sum(-1)


def _largest(x: Any, y: Any) -> Any:
    return np.abs(x - y).max()


def _columns(x: Any) -> Any:
    return np.exp(x).sum(0)


def _bare(x: Any) -> Any:
    return x.sum(-1)


def _read_twice(x: Any) -> Any:
    y = np.tanh(x)
    return y.sum(-1), y


_X = {"x": "f32[6,40]"}

PATTERN = Pattern(
    identifier=IDENTIFIER,
    documentation=__doc__ or "",
    roots=frozenset(REDUCTIONS),
    find=find,
    where=places,
    work=work,
    last=True,
    evaluate=evaluate,
    examples=(
        Example("a sum of magnitudes", _magnitudes, {**_X, "w": "f32[40]"}),
        Example("the largest difference", _largest, {**_X, "y": "f32[6,40]"}),
        Example("columns", _columns, _X),
    ),
    counterexamples=(
        Example("a reduction alone", _bare, _X),
        Example("a value that is returned too", _read_twice, _X),
    ),
)
