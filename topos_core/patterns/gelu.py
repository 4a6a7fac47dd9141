"""Gaussian error linear unit, in three forms.

Recognises
    By erf, `0.5 * x * (1 + erf(x / sqrt(2)))` or `0.5 * x * (1 - erf(-x / sqrt(2)))`; by tanh, `0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))`; by the
    logistic function, `x * sigmoid(1.702 * x)`, and the form by tanh as `x * sigmoid(2 * sqrt(2 / pi) * (x + 0.044715 * x^3))`: with the half anywhere, inside the bracket or distributed, the cube in any
    spelling, x drawn out of the cubic, literals with the digits of float32. `approximate` says which.

Why it pays
    One kernel reads x once and writes once; the recorded ops read and write it about eight times.

Declines when
    Nothing beside the common rules.

Differs from the recorded ops
    Recorded as `x * e / (1 + e)` with `e = exp(1.702 * x)`, where `x * e` overflows before e does (x from 49.9 to 52.1 in f32): the
    kernel gives x for a recorded infinity.

Not recognised
    By the normal distribution function, the tanh form as `x * e / (1 + e)` (NaN where e overflows) or with tanh as `(e - 1) / (e + 1)`, other constants (they
    are told; in float64 a constant counts with all its digits). The form by sigmoid with a sigmoid by tanh, or one that is
    chosen by the sign of x, or by a softplus or `logaddexp` (behind a linear layer or a convolution it is).

Source
    Hendrycks, Gimpel, Gaussian Error Linear Units (arXiv 1606.08415).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from topos_core.cost.work import Work
from topos_core.matching.answers import ROOTS, finder, places
from topos_core.matching.binding import Found
from topos_core.matching.declared import Form, Term, anchor
from topos_core.matching.facts import CoreFacts
from topos_core.matching.match import Match
from topos_core.matching.pattern import Example, Pattern
from topos_core.matching.summary import core_facts, evaluated
from topos_core.patterns.silu import worth
from topos_core.recording.elementary import erf
from topos_core.tape.tape import Tape

SLOPE, CUBIC, LOGISTIC = math.sqrt(2 / math.pi), 0.044715, 1.702


def by_erf(x: Any) -> Any:
    """`0.5 * x * (1 + erf(x / sqrt(2)))`."""
    return 0.5 * x * (1 + anchor(erf(x / math.sqrt(2))))


def by_erf_distributed(x: Any) -> Any:
    """Both halves by themselves."""
    return 0.5 * x + 0.5 * x * anchor(erf(x / math.sqrt(2)))


def by_complement(x: Any) -> Any:
    """`0.5 * x * (1 - erf(-x / sqrt(2)))`: what `erfc(-x / sqrt(2))` records as."""
    return 0.5 * x * (1 - anchor(erf(-x / math.sqrt(2))))


def by_tanh(x: Any) -> Any:
    """`0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))`."""
    return 0.5 * x * (1 + anchor(np.tanh(SLOPE * (x + CUBIC * (x * x * x)))))


def by_tanh_distributed(x: Any) -> Any:
    """Both halves by themselves."""
    return 0.5 * x + 0.5 * x * anchor(np.tanh(SLOPE * (x + CUBIC * (x * x * x))))


def by_tanh_factored(x: Any) -> Any:
    """With x drawn out of the cubic."""
    return x * 0.5 * (1 + anchor(np.tanh(x * (SLOPE + SLOPE * CUBIC * (x * x)))))


def by_tanh_factored_distributed(x: Any) -> Any:
    """With x drawn out of the cubic, both halves by themselves."""
    return 0.5 * x + 0.5 * x * anchor(np.tanh(x * (SLOPE + SLOPE * CUBIC * (x * x))))


def by_tanh_logistic(x: Any) -> Any:
    """`x * sigmoid(2 * sqrt(2 / pi) * (x + 0.044715 * x^3))`, which is the form by tanh."""
    return x / (1 + anchor(np.exp(-2 * SLOPE * (x + CUBIC * (x * x * x)))))


def by_tanh_logistic_factored(x: Any) -> Any:
    """The same with x drawn out of the cubic."""
    return x / (1 + anchor(np.exp(x * (-2 * SLOPE - 2 * SLOPE * CUBIC * (x * x)))))


def by_logistic(x: Any) -> Any:
    """`x / (1 + exp(-1.702 * x))`."""
    return x / anchor(1 + np.exp(-LOGISTIC * x))


def by_logistic_of_exp(x: Any) -> Any:
    """`x * e / (1 + e)` with `e = exp(1.702 * x)`."""
    power = np.exp(LOGISTIC * x)
    return x * power / anchor(1 + power)


_KINDS = {
    by_erf: "none", by_erf_distributed: "none", by_complement: "none", by_logistic: "sigmoid", by_logistic_of_exp: "sigmoid of exp",
}  # fmt: skip
_FORMULAS = {"none": by_erf, "tanh": by_tanh, "sigmoid": by_logistic, "sigmoid of exp": by_logistic_of_exp}


def facts(found: Found) -> CoreFacts | None:
    """Gives the facts of a match; `approximate` is none or tanh, as torch calls it, sigmoid, or sigmoid of exp."""
    return core_facts(found, approximate=_KINDS.get(found.template.form, "tanh"))


def evaluate(facts: CoreFacts, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Computes the match's own formula."""
    return evaluated(TERM.holes, facts, arrays, "k", _FORMULAS[facts.options["approximate"]])


def work(tape: Tape, match: Match) -> Work:
    """One erf, tanh or exp per element, and four to eight operations around it."""
    x, root = tape.type_of(match.bindings["x"]), tape.type_of(match.root)
    flops = {"none": 4, "tanh": 8, "sigmoid": 3, "sigmoid of exp": 3}[match.facts.options["approximate"]]
    return Work(flops * root.size, root.size, x.bytes, root.bytes)


TERM = Term(
    formula=by_erf,
    facts=facts,
    holes={"x": "k"},
    forms=(
        by_erf_distributed, by_complement, by_tanh, by_tanh_distributed, by_tanh_factored, by_tanh_factored_distributed,
        Form(by_tanh_logistic, silent=True), Form(by_tanh_logistic_factored, silent=True), by_logistic, Form(by_logistic_of_exp, silent=True),
    ),
    worth=worth,
)  # fmt: skip


def _by_erf(x: Any) -> Any:
    return x * 0.5 * (1.0 + erf(x / math.sqrt(2.0)))


def _by_complement(x: Any) -> Any:
    return 0.5 * x * (1 - erf(-x * math.sqrt(0.5)))


def _by_tanh(x: Any) -> Any:
    return 0.5 * x * (1.0 + np.tanh(0.7978845608 * (x + 0.044715 * x**3)))


def _by_tanh_as_sigmoid(x: Any) -> Any:
    return x * (1 / (1 + np.exp(-1.5957691216 * (x + 0.044715 * x**3))))


def _by_logistic(x: Any) -> Any:
    return x / (1 + np.exp(-1.702 * x))


def _coarse_slope(x: Any) -> Any:
    return 0.5 * x * (1 + np.tanh(0.798 * (x + 0.044715 * x**3)))


def _coarse_root(x: Any) -> Any:
    return 0.5 * x * (1 + erf(x / 1.414))


def _coarse_logistic(x: Any) -> Any:
    return x / (1 + np.exp(-1.7 * x))


_X = {"x": "f32[3,7]"}

PATTERN = Pattern(
    identifier="gelu",
    documentation=__doc__ or "",
    roots=ROOTS,
    find=finder("gelu"),
    where=places("gelu"),
    work=work,
    evaluate=evaluate,
    examples=(
        Example("by erf", _by_erf, _X),
        Example("by the complement of erf", _by_complement, _X),
        Example("by tanh", _by_tanh, _X),
        Example("by sigmoid", _by_logistic, _X),
        Example("by tanh, as a sigmoid", _by_tanh_as_sigmoid, _X),
    ),
    counterexamples=(
        Example("another slope inside tanh", _coarse_slope, _X, "constant"),
        Example("another root inside erf", _coarse_root, _X, "constant"),
        Example("another factor inside the sigmoid", _coarse_logistic, _X, "constant"),
    ),
    term=TERM,
)
