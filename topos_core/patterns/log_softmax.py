"""The logarithm of softmax along any set of axes.

Recognises
    `x - m - log(sum(exp(x - m)))` with m the maximum, `x - (m + log(sum(exp(x - m))))`, `x - log(sum(exp(x)))`,
    `log(softmax(x))` with or without the shift and `x - logsumexp(x)`, also where that shifts by the maximum only if it is finite; over one axis or
    several, in any rank and layout.

Why it pays
    One kernel reads x twice and writes once; the recorded ops read and write it five times.

Declines when
    Nothing beside the common rules.

Differs from the recorded ops
    Recorded as `log(softmax(x))`, where the softmax underflows to 0: the kernel gives the logarithm for a recorded -infinity.

Not recognised
    A logarithm of softmax plus a constant or of the reciprocal of the sum; sums of exponentials that are collected block by
    block.

Source
    Blanchard, Higham, Higham, Accurately computing the log-sum-exp and softmax functions (2021).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from topos_core.cost.work import Work
from topos_core.matching.answers import ROOTS, finder, places
from topos_core.matching.attempt import Attempt
from topos_core.matching.binding import Found
from topos_core.matching.core import Keys
from topos_core.matching.declared import Term, anchor, difference
from topos_core.matching.facts import CoreFacts
from topos_core.matching.lookalikes import epsilon_in_sum
from topos_core.matching.match import Match
from topos_core.matching.pattern import Example, Pattern
from topos_core.matching.summary import core_facts, evaluated, shift_of
from topos_core.recording.elementary import logsumexp
from topos_core.tape.tape import Tape


def formula(x: Any) -> Any:
    """The logarithm of softmax of `x: [k, n]` over n."""
    shifted = x - x.max(-1, keepdims=True)
    return shifted - anchor(np.log(np.exp(shifted).sum(-1, keepdims=True)))


def summed(x: Any) -> Any:
    """With the maximum added to the logarithm first."""
    most = x.max(-1, keepdims=True)
    return x - (most + anchor(np.log(np.exp(x - most).sum(-1, keepdims=True))))


def shifted_if_finite(x: Any) -> Any:
    """With the maximum where it is finite, added to the logarithm first, as functions for logsumexp have it."""
    most = x.max(-1, keepdims=True)
    most = np.where(np.isfinite(most), most, 0.0)
    return x - (most + anchor(np.log(np.exp(x - most).sum(-1, keepdims=True))))


def unshifted(x: Any) -> Any:
    """Without the shift by the maximum, which overflows where x is large."""
    return x - anchor(np.log(np.exp(x).sum(-1, keepdims=True)))


def of_softmax(x: Any) -> Any:
    """As the logarithm of a quotient, which is -inf where the quotient underflows."""
    powers = np.exp(x - x.max(-1, keepdims=True))
    return anchor(np.log(powers / powers.sum(-1, keepdims=True)))


def of_unshifted_softmax(x: Any) -> Any:
    """As the logarithm of a quotient of powers that overflow where x is large."""
    powers = np.exp(x)
    return anchor(np.log(powers / powers.sum(-1, keepdims=True)))


def from_finite_maximum(x: Any) -> Any:
    """Of what is shifted by the maximum where that is finite, which rounds less than to add it to the logarithm."""
    most = x.max(-1, keepdims=True)
    return unshifted(x - np.where(np.isfinite(most), most, np.zeros_like(most)))


FORMS: Final = {"yes": formula, "no": unshifted, "finite": from_finite_maximum}
"""What is computed, by `shifted`."""


def guarded(x: Any, epsilon: float) -> Any:
    """With something added to the sum, which makes no row sum to one."""
    shifted = x - x.max(-1, keepdims=True)
    return shifted - np.log(difference(np.exp(shifted).sum(-1, keepdims=True) + epsilon))


def facts(found: Found) -> CoreFacts | None:
    """Gives the facts of a match; `shifted` says whether the maximum is subtracted first (`summary.shift_of`)."""
    known = {unshifted: "no", of_unshifted_softmax: "no", shifted_if_finite: "finite"}
    return core_facts(found, shifted=known.get(found.template.form) or shift_of(found))


def evaluate(facts: CoreFacts, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Computes the match's own formula."""
    return evaluated(TERM.holes, facts, arrays, "k n", FORMS[facts.options["shifted"]])


def work(tape: Tape, match: Match) -> Work:
    """A maximum, two differences and a sum per element, one exp; one logarithm per row."""
    x, root = tape.type_of(match.bindings["x"]), tape.type_of(match.root)
    rows = match.facts.extents["k"]
    return Work(4 * root.size + rows, root.size + rows, x.bytes, root.bytes)


def worth(keys: Keys, attempt: Attempt) -> bool:
    """Says whether a failure is worth telling: what a loss takes from the logarithm, one logit or another value, was never meant."""
    return attempt.failure is None or attempt.failure.code != "identity"


TERM = Term(
    formula=formula,
    facts=facts,
    holes={"x": "k n"},
    forms=(summed, shifted_if_finite, unshifted, of_softmax, of_unshifted_softmax),
    lookalikes=(epsilon_in_sum(guarded, "the logarithm of the sum of powers"),),
    worth=worth,
)


def _textbook(x: Any) -> Any:
    shifted = x - x.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def _maximum_last(x: Any) -> Any:
    most = x.max(0)
    return x - (np.log(np.exp(x - most).sum(0)) + most)


def _by_logsumexp(x: Any) -> Any:
    return x - logsumexp(x, 1, keepdims=True)


def _base_two(x: Any) -> Any:
    shifted = x - x.max(axis=-1, keepdims=True)
    return shifted - np.log2(np.exp(shifted).sum(axis=-1, keepdims=True))


PATTERN = Pattern(
    identifier="log_softmax",
    documentation=__doc__ or "",
    roots=ROOTS,
    find=finder("log_softmax"),
    where=places("log_softmax"),
    work=work,
    evaluate=evaluate,
    examples=(
        Example("textbook", _textbook, {"x": "f32[4,6]"}),
        Example("maximum added to the logarithm", _maximum_last, {"x": "f32[6,6]"}),
        Example("by logsumexp", _by_logsumexp, {"x": "f32[4,6]"}),
    ),
    counterexamples=(Example("logarithm to base 2", _base_two, {"x": "f32[4,6]"}, "constant"),),
    term=TERM,
)
