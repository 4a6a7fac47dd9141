"""A chain of elementwise ops that no other pattern names.

Recognises
    Two or more elementwise ops of one shape (casts, comparisons and selections too) that are connected and of which one alone
    is read outside. Operands may repeat along any axes or have them in another order; axes of extent 1 may come and go on the
    way. Each group is as large as it can be, up to 64 ops. It is formed from the ops that no other pattern has, and where
    those leave nothing at a value, from all of them: for when the other patterns cannot run.

Why it pays
    One loop reads every operand once and writes once; the recorded ops write and read every value between them.

Declines when
    It has an op without a kernel (a power of integers, a cast that would round twice); bits must be the recorded ones and some op is rounded
    otherwise than recorded (exp, tanh and their kin); a comparison or a rounding to whole numbers stands on such an op, because
    a last bit would then decide.

Not recognised
    Movement between the ops beside axes of extent 1: reshapes, slices, concatenations end a group. A value that is computed
    inside and read outside ends one too, so that nothing is computed twice.

Source
    Chen et al., TVM: An Automated End-to-End Optimizing Compiler for Deep Learning (OSDI 2018), section 3.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from topos_core.cost.work import Work
from topos_core.matching.chains import ELEMENTWISE, groupings
from topos_core.matching.expression import ExpressionFacts, evaluated, work_of
from topos_core.matching.gathering import Gathering, space_of
from topos_core.matching.match import Match
from topos_core.matching.pattern import Example, Pattern
from topos_core.recording.elementary import erf
from topos_core.tape.tape import Tape

if TYPE_CHECKING:
    from topos_core.matching.context import Context

IDENTIFIER = "elementwise_chain"


def find(context: Context, root: int, /) -> Match | None:
    """Gives the group whose exit the value is."""
    return context.once(_chains).get(root)


def places(context: Context) -> Mapping[int, Match]:
    """Gives the exits."""
    return context.once(_chains)


def evaluate(facts: ExpressionFacts, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Computes the match's own formula."""
    return evaluated(facts, arrays)


def work(tape: Tape, match: Match) -> Work:
    """Counts every op at every position, every binding once and the result."""
    return work_of(tape, match)


def _chains(context: Context) -> dict[int, Match]:
    found: dict[int, Match] = {}
    for grouping in context.once(groupings):
        for exit, group in grouping.groups.items():
            if len(group.members) > 1 and exit not in found:
                gathering = Gathering(context.tape, space_of(context.tape, exit), group.members)
                match = gathering.match(IDENTIFIER, exit)
                if match is not None:
                    found[exit] = match
    return found


def _scaled(x: Any, y: Any) -> Any:
    return np.sqrt(np.abs(x * y + 0.5)) - y


def _gate(x: Any, bias: Any) -> Any:
    t = np.tanh(x * 1.3 + bias) * x + 0.1
    return np.maximum(x / (1.0 + np.exp(-t)), -0.2) - 0.05


def _masked(x: Any, kept: Any) -> Any:
    return np.where(kept, erf(x) * 2.0, x - 1.0)


def _one(x: Any) -> Any:
    return np.tanh(x)


def _read_twice(x: Any) -> Any:
    y = np.tanh(x)
    return y, y * 2.0


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
        Example("a root of a product", _scaled, {**_X, "y": "f32[6,40]"}),
        Example("a gate with a bias", _gate, {**_X, "bias": "f32[40]"}),
        Example("a selection", _masked, {**_X, "kept": "bool[6,40]"}),
    ),
    counterexamples=(
        Example("one op", _one, _X),
        Example("an inner value that is returned", _read_twice, _X),
    ),
)
