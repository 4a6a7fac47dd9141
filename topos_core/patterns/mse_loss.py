"""Mean squared error.

Recognises
    The mean of the squared difference of two values of one shape, over all elements, as a power, a product, an einsum or a
    matrix product, axis by axis or at once; and the sum without the division (`reduction`: mean or sum).

Why it pays
    One kernel reads both values once and writes one number; the recorded ops write and read the difference and its square.

Declines when
    Nothing beside the common rules.

Not recognised
    A sum that is divided by something else than the count (the sum itself is), a loss per example, a difference that
    broadcasts one of the values, weights per element, the variance of the difference plus its squared mean, the square of
    the size of the difference (`abs(y - x) ** 2`).

Source
    Gauss, Theoria motus (1809).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from topos_core.cost.work import Work
from topos_core.matching.answers import ROOTS, finder, places
from topos_core.matching.attempt import Attempt
from topos_core.matching.binding import Found
from topos_core.matching.core import Keys
from topos_core.matching.declared import Form, Term, anchor
from topos_core.matching.facts import CoreFacts
from topos_core.matching.match import Match
from topos_core.matching.pattern import Example, Pattern
from topos_core.matching.summary import core_facts, evaluated
from topos_core.tape.tape import Tape


def averaged(x: Any, target: Any) -> Any:
    """The mean over all elements."""
    distance = x - target
    return anchor((distance * distance).sum(0)) / len(x)


def summed(x: Any, target: Any) -> Any:
    """The sum over all elements."""
    distance = x - target
    return (distance * distance).sum(0)


def whole(keys: Keys, attempt: Attempt) -> bool:
    """Says whether a failed try gives one number and compares given values: variances and losses per row are others."""
    return not attempt.top.shape and all(func.kind != "reduce" for func, _ in attempt.bound.values())


def facts(found: Found) -> CoreFacts | None:
    """Gives the facts of a match; `reduction` is mean or sum."""
    return core_facts(found, reduction="sum" if found.template.form is summed else "mean")


def evaluate(facts: CoreFacts, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Computes the match's own formula."""
    return evaluated(TERM.holes, facts, arrays, "", summed if facts.options["reduction"] == "sum" else averaged)


def work(tape: Tape, match: Match) -> Work:
    """A difference, a square and a sum per element."""
    types = [tape.type_of(value) for value in match.bindings.values()]
    return Work(3 * types[0].size, 0, sum(t.bytes for t in types), tape.type_of(match.root).bytes)


TERM = Term(
    formula=averaged, facts=facts, holes={"x": "n", "target": "n"}, forms=(Form(summed, silent=True),), worth=whole
)  # fmt: skip


def _power(x: Any, target: Any) -> Any:
    return ((x - target) ** 2).mean()


def _axis_by_axis(x: Any, target: Any) -> Any:
    return ((target - x) ** 2).mean(1).mean(0)


def _fewer(x: Any, target: Any) -> Any:
    return ((x - target) ** 2).sum() / 19


def _broadcast(x: Any, target: Any) -> Any:
    return ((x - target) ** 2).mean()


def _added(x: Any, target: Any) -> Any:
    return ((x + target) ** 2).mean()


_BOTH = {"x": "f32[4,5]", "target": "f32[4,5]"}

PATTERN = Pattern(
    identifier="mse_loss",
    documentation=__doc__ or "",
    roots=ROOTS,
    find=finder("mse_loss"),
    where=places("mse_loss"),
    work=work,
    evaluate=evaluate,
    examples=(Example("mean of a power", _power, _BOTH), Example("axis by axis", _axis_by_axis, _BOTH)),
    counterexamples=(
        Example("divided by n - 1", _fewer, _BOTH),
        Example("the square of a sum", _added, _BOTH, "sign"),
        Example("a broadcast target", _broadcast, {"x": "f32[5,5]", "target": "f32[5]"}, "axis"),
    ),
    term=TERM,
)
