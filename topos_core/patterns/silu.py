"""Sigmoid linear unit, also called swish.

Recognises
    `x * sigmoid(x)` as `x / (1 + exp(-x))`, `x * (1 / (1 + exp(-x)))`, `x * e / (1 + e)` with `e = exp(x)`,
    `x * exp(-log1p(exp(-x)))`, and `x * 0.5 * (1 + tanh(x / 2))`; with a sigmoid that no power of e overflows in: by
    `exp(-logaddexp(0, -x))`, by the softplus of -x with the larger of 0 and -x taken out, or chosen by the sign of x (`>=`, `>`,
    `<=` or `<`) from `1 / (1 + exp(-x))` and `exp(x) / (1 + exp(x))`, the powers of x or of -|x|.

Why it pays
    One kernel reads x once and writes once; the recorded ops read and write it about five times.

Declines when
    Nothing beside the common rules.

Differs from the recorded ops
    Recorded as `x * e / (1 + e)`, where `x * e` overflows before e does (x from 84.3 to 88.7 in f32): the kernel gives x for a
    recorded infinity.

Not recognised
    `exp(0 - x)`, an exponent that is clipped, `1 / exp(x)`, `exp2`, `e ** -x` or `2 + expm1(-x)` for `1 + exp(-x)`;
    `x * (1 - 1 / (1 + exp(x)))` and `x - x / (1 + exp(x))`, which cancel; a choice by a negated comparison (`~(x < 0)`), or by the sign of x of whole
    products with x (behind a linear layer or a convolution it is); a factor on x inside the sigmoid (1.702 is `gelu`;
    others are told).

Source
    Elfwing, Uchibe, Doya, Sigmoid-Weighted Linear Units (arXiv 1702.03118).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

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


def formula(x: Any) -> Any:
    """`x / (1 + exp(-x))`."""
    return x / anchor(1 + np.exp(-x))


def by_exp(x: Any) -> Any:
    """`x * e / (1 + e)`."""
    power = np.exp(x)
    return x * power / anchor(1 + power)


def by_tanh(x: Any) -> Any:
    """`0.5 * x * (1 + tanh(x / 2))`."""
    return 0.5 * x * (1 + np.tanh(0.5 * x))


def by_tanh_distributed(x: Any) -> Any:
    """Both halves by themselves."""
    return 0.5 * x + 0.5 * x * np.tanh(0.5 * x)


def sigmoid_by_softplus(x: Any) -> Any:
    """`exp(-log(1 + exp(-x)))`, the larger of 0 and -x taken out of the logarithm."""
    return np.exp(-(np.maximum(-x, 0) + np.log1p(np.exp(-np.abs(x)))))


def sigmoid_by_softplus_of_negative(x: Any) -> Any:
    """The same with |-x|, as a function for softplus writes it."""
    return np.exp(-(np.maximum(-x, 0) + np.log1p(np.exp(-np.abs(-x)))))


def sigmoid_by_softplus_of_smaller(x: Any) -> Any:
    """The same with the smaller of 0 and x."""
    return np.exp(np.minimum(x, 0) - np.log1p(np.exp(-np.abs(x))))


def sigmoid_by_logaddexp(x: Any) -> Any:
    """`exp(-logaddexp(0, -x))`."""
    return np.exp(-np.logaddexp(0, -x))


def sigmoid_by_logaddexp_commuted(x: Any) -> Any:
    """`exp(-logaddexp(-x, 0))`, which compares the other way round."""
    return np.exp(-np.logaddexp(-x, 0))


def _by_sign() -> Iterator[Callable[[Any], Any]]:
    """Gives the sigmoids that are chosen by the sign of x: each comparison, and powers of x, of -|x|, or one quotient of these."""

    def of_x(x: Any, choose: Any) -> Any:
        return choose(1 / (1 + np.exp(-x)), np.exp(x) / (1 + np.exp(x)))

    def of_size(x: Any, choose: Any) -> Any:
        power = np.exp(-np.abs(x))
        return choose(1 / (1 + power), power / (1 + power))

    def of_size_drawn_out(x: Any, choose: Any) -> Any:
        power = np.exp(-np.abs(x))
        return choose(1, power) / (1 + power)

    signs: tuple[Callable[[Any, Any, Any], Any], ...] = (
        lambda x, positive, negative: np.where(x >= 0, positive, negative),
        lambda x, positive, negative: np.where(x > 0, positive, negative),
        lambda x, positive, negative: np.where(x <= 0, negative, positive),
        lambda x, positive, negative: np.where(x < 0, negative, positive),
    )
    for sigmoid in (of_x, of_size, of_size_drawn_out):
        for sign in signs:

            def chosen(x: Any, _sigmoid: Any = sigmoid, _sign: Any = sign) -> Any:
                return _sigmoid(x, lambda positive, negative: _sign(x, positive, negative))

            yield chosen


SIGMOIDS: Final = (
    sigmoid_by_softplus, sigmoid_by_softplus_of_negative, sigmoid_by_softplus_of_smaller, sigmoid_by_logaddexp,
    sigmoid_by_logaddexp_commuted, *_by_sign(),
)  # fmt: skip
"""Sigmoids that no power of e overflows in."""


def _times(sigmoid: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def written(x: Any) -> Any:
        return x * sigmoid(x)

    return written


_FORMULAS = {"logistic": formula, "of exp": by_exp}


def facts(found: Found) -> CoreFacts | None:
    """Gives the facts of a match; `sigmoid` is `of exp` where e / (1 + e) overflows to NaN, as recorded."""
    return core_facts(found, sigmoid="of exp" if found.template.form is by_exp else "logistic")


def evaluate(facts: CoreFacts, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Computes the match's own formula."""
    return evaluated(TERM.holes, facts, arrays, "k", _FORMULAS[facts.options["sigmoid"]])


def work(tape: Tape, match: Match) -> Work:
    """One exp, one sum and one quotient per element."""
    x, root = tape.type_of(match.bindings["x"]), tape.type_of(match.root)
    return Work(3 * root.size, root.size, x.bytes, root.bytes)


def worth(keys: Keys, attempt: Attempt) -> bool:
    """Says whether a failure is worth telling: a gate of something else, `x * sigmoid(y)`, was never meant as one, nor were
    other powers, such as a focal loss's `(1 - exp(x))^2 * x`.
    """
    return attempt.failure is None or attempt.failure.code not in ("identity", "exponent")


TERM = Term(
    formula=formula,
    facts=facts,
    holes={"x": "k"},
    forms=tuple(
        Form(written, silent=True) for written in (by_exp, by_tanh, by_tanh_distributed, *map(_times, SIGMOIDS))
    ),
    worth=worth,
)


def _quotient(x: Any) -> Any:
    return x / (1 + np.exp(-x))


def _by_tanh(x: Any) -> Any:
    return x * (0.5 * (np.tanh(x / 2) + 1))


def _by_log1p(x: Any) -> Any:
    return x * np.exp(-np.log1p(np.exp(-x)))


def _scaled(x: Any) -> Any:
    return x / (1 + np.exp(-1.25 * x))


_X = {"x": "f32[3,7]"}

PATTERN = Pattern(
    identifier="silu",
    documentation=__doc__ or "",
    roots=ROOTS,
    find=finder("silu"),
    where=places("silu"),
    work=work,
    evaluate=evaluate,
    examples=(
        Example("as a quotient", _quotient, _X),
        Example("by tanh", _by_tanh, _X),
        Example("by log1p", _by_log1p, _X),
    ),
    counterexamples=(Example("a factor inside the sigmoid", _scaled, _X, "constant"),),
    term=TERM,
)
