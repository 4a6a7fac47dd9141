"""Softmax along any set of axes.

Recognises
    `exp(x - max(x)) / sum(exp(x - max(x)))`, and without the shift, over one axis or several, in any rank and layout: axes
    kept or not, the division as a product with a reciprocal or a power or as `exp(log_softmax(x))`, the sum as a product with
    ones. A temperature is a
    factor of x. Without the shift a kernel has the better range: it overflows only where x itself is +inf. A shift by anything that is constant along the normalised axes leaves a softmax of what is shifted.

Why it pays
    One kernel reads x once and writes once, a row at a time; the recorded ops read and write it five times.

Declines when
    Nothing beside the common rules.

Not recognised
    Softmax over a concatenation, sums of exponentials that are collected block by block; powers by `exp2` or `e ** x`; two
    logits taken apart by hand; a sum of f16 powers in f32 (it is told); powers that a mask is
    multiplied with before they are divided by their sum.

Source
    Bridle, Probabilistic Interpretation of Feedforward Classification Network Outputs (1990).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from topos_core.cost.work import Work
from topos_core.matching.answers import ROOTS, finder, places
from topos_core.matching.binding import Found
from topos_core.matching.declared import Term, anchor, difference
from topos_core.matching.facts import CoreFacts
from topos_core.matching.lookalikes import epsilon_in_sum
from topos_core.matching.match import Match
from topos_core.matching.pattern import Example, Pattern
from topos_core.matching.summary import core_facts, evaluated, shift_of
from topos_core.tape.tape import Tape


def formula(x: Any) -> Any:
    """Normalises `exp(x: [k, n])` over n."""
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / anchor(powers.sum(-1, keepdims=True))


def unshifted(x: Any) -> Any:
    """Without the shift by the maximum, which overflows where x is large."""
    powers = np.exp(x)
    return powers / anchor(powers.sum(-1, keepdims=True))


def by_logarithm(x: Any) -> Any:
    """As the powers of the logarithm of softmax."""
    shifted = x - x.max(-1, keepdims=True)
    return np.exp(shifted - np.log(anchor(np.exp(shifted).sum(-1, keepdims=True))))


def by_log_of_sum(x: Any) -> Any:
    """As the powers of what x has above the logarithm of the sum, to which the maximum is added first."""
    most = x.max(-1, keepdims=True)
    return np.exp(x - (most + np.log(anchor(np.exp(x - most).sum(-1, keepdims=True)))))


def by_log_of_sum_if_finite(x: Any) -> Any:
    """The same with the maximum where it is finite, as functions for logsumexp have it."""
    most = x.max(-1, keepdims=True)
    most = np.where(np.isfinite(most), most, 0.0)
    return np.exp(x - (most + np.log(anchor(np.exp(x - most).sum(-1, keepdims=True)))))


def by_logarithm_unshifted(x: Any) -> Any:
    """As the powers of the logarithm, without the shift by the maximum."""
    return np.exp(x - np.log(anchor(np.exp(x).sum(-1, keepdims=True))))


def from_finite_maximum(x: Any) -> Any:
    """Of what is shifted by the maximum where that is finite."""
    most = x.max(-1, keepdims=True)
    return by_logarithm_unshifted(x - np.where(np.isfinite(most), most, np.zeros_like(most)))


def facts(found: Found) -> CoreFacts | None:
    """Gives the facts of a match; `shifted` says whether the maximum is subtracted first (`summary.shift_of`)."""
    known = {unshifted: "no", by_logarithm_unshifted: "no", by_log_of_sum_if_finite: "finite"}
    return core_facts(found, shifted=known.get(found.template.form) or shift_of(found))


def guarded(x: Any, epsilon: float) -> Any:
    """With something added to the sum, which makes no row sum to one."""
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / difference(powers.sum(-1, keepdims=True) + epsilon)


def evaluate(facts: CoreFacts, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Computes the match's own formula."""
    form = {"yes": formula, "no": unshifted, "finite": from_finite_maximum}[facts.options["shifted"]]
    return evaluated(TERM.holes, facts, arrays, "k n", form)


def work(tape: Tape, match: Match) -> Work:
    """A maximum, a difference, a sum and a product per element, one exp; the reciprocal is one per row."""
    x, root = tape.type_of(match.bindings["x"]), tape.type_of(match.root)
    return Work(4 * root.size + match.facts.extents["k"], root.size, x.bytes, root.bytes)


TERM = Term(
    formula=formula,
    facts=facts,
    holes={"x": "k n"},
    forms=(unshifted, by_logarithm, by_log_of_sum, by_log_of_sum_if_finite, by_logarithm_unshifted),
    lookalikes=(epsilon_in_sum(guarded, "the powers divided by their sum"),),
)


def _textbook(x: Any) -> Any:
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def _first_axis(x: Any) -> Any:
    powers = np.exp(x - x.max(0))
    return powers * (1 / powers.sum(0))


def _guarded(x: Any) -> Any:
    powers = np.exp(x - x.max(1, keepdims=True))
    return powers / (powers.sum(1, keepdims=True) + 1e-6)


def _sum_along_another_axis(x: Any, y: Any) -> Any:
    powers = np.exp(x - x.max(1, keepdims=True)) + y
    return powers / powers.sum(1, keepdims=True)


PATTERN = Pattern(
    identifier="softmax",
    documentation=__doc__ or "",
    roots=ROOTS,
    find=finder("softmax"),
    where=places("softmax"),
    work=work,
    evaluate=evaluate,
    examples=(
        Example("textbook", _textbook, {"x": "f32[4,6]"}),
        Example("over the first axis", _first_axis, {"x": "f32[6,6]"}),
    ),
    counterexamples=(
        Example("a constant added to the sum", _guarded, {"x": "f32[6,6]"}, "eps-in-sum"),
        Example("something added to the powers", _sum_along_another_axis, {"x": "f32[6,6]", "y": "f32[6,6]"}),
    ),
    term=TERM,
)
