"""Root mean square normalisation.

Recognises
    `x / sqrt(mean(x^2) + epsilon) * scale` over one axis or several, with a scale along exactly those axes, which is
    optional; any rank, layout and spelling: the square as `x * x`, a power, an einsum or a matrix product, `rsqrt` or `exp(-0.5 * log(..))`, sums
    with the factor outside, the mean of f16 and bf16 that is summed in f32 and rounded, heads inside a feature axis.

Why it pays
    One kernel reads x once and writes once, a row at a time; the recorded ops read and write it about five times.

Declines when
    x is itself centred over the same axes: that is a layer norm.

Not recognised
    An L2 norm that adds epsilon outside of the root or takes a maximum with it, or has none, or
    whose sum of squares is no mean, `x / sqrt(sum(x^2) + eps)` (it is told, with the number that is missing in front).

Source
    Zhang, Sennrich, Root Mean Square Layer Normalization (arXiv 1910.07467).
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
from topos_core.matching.declared import Form, Lookalike, Term, anchor, difference, mean_as_numpy
from topos_core.matching.facts import CoreFacts
from topos_core.matching.match import Match
from topos_core.matching.norm import is_centred
from topos_core.matching.pattern import Example, Pattern
from topos_core.matching.summary import core_facts, evaluated
from topos_core.tape.tape import Tape


def formula(x: Any, scale: Any, epsilon: float) -> Any:
    """Divides `x: [k, n]` by the root of its mean square over n."""
    y = x / np.sqrt(anchor((x * x).mean(-1, keepdims=True)) + epsilon)
    return y if scale is None else y * scale


def widened_f16(x: Any, scale: Any, epsilon: float) -> Any:
    """With the mean square of f16 that NumPy computes in f32."""
    y = x / np.sqrt(anchor(mean_as_numpy(x * x, -1, "f2")) + epsilon)
    return y if scale is None else y * scale


def widened_bf16(x: Any, scale: Any, epsilon: float) -> Any:
    """With the mean square of bf16 computed in f32."""
    y = x / np.sqrt(anchor(mean_as_numpy(x * x, -1, "bfloat16")) + epsilon)
    return y if scale is None else y * scale


def epsilon_outside(x: Any, scale: Any, epsilon: float) -> Any:
    """Epsilon beside the root instead of inside of it."""
    y = x / difference(np.sqrt((x * x).mean(-1, keepdims=True)) + epsilon)
    return y if scale is None else y * scale


def facts(found: Found) -> CoreFacts | None:
    """Gives the facts of a match that is no layer norm of something else."""
    return None if is_centred(found) else core_facts(found)


def worth(keys: Keys, attempt: Attempt) -> bool:
    """Says whether a failure is worth telling: a length without an epsilon (a weight that is normalised) is another thing."""
    failure = attempt.failure
    return failure is None or failure.code != "exponent" or failure.func.constant is not None


def evaluate(facts: CoreFacts, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Computes the match's own formula."""
    return evaluated(TERM.holes, facts, arrays, "k n", formula)


def work(tape: Tape, match: Match) -> Work:
    """A square, a sum and a product per element, one more with a scale; a root per row."""
    x, root = tape.type_of(match.bindings["x"]), tape.type_of(match.root)
    scale = tape.type_of(match.bindings["scale"]).bytes if "scale" in match.bindings else 0
    rows = match.facts.extents["k"]
    return Work((3 + bool(scale)) * root.size + 2 * rows, rows, x.bytes + scale, root.bytes)


TERM = Term(
    formula=formula,
    facts=facts,
    holes={"x": "k n", "scale": "n"},
    optional=("scale",),
    constants=("epsilon",),
    family="norm",
    worth=worth,
    forms=tuple(Form(form, silent=True) for form in (widened_f16, widened_bf16)),
    lookalikes=(
        Lookalike(
            epsilon_outside,
            "eps-outside-root",
            "epsilon added to the mean square, under the root",
            "epsilon added to the root",
        ),
    ),
)


def _llama(x: Any, scale: Any) -> Any:
    return scale * (x * (np.mean(x**2, -1, keepdims=True) + 1e-6) ** -0.5)


def _einsum(x: Any, scale: Any) -> Any:
    return x / np.sqrt(np.einsum("btc,btc->bt", x, x) / 6 + 1e-6).reshape(4, 5, 1) * scale


def _another_power(x: Any, scale: Any) -> Any:
    return x * ((x * x).mean(-1, keepdims=True) + 1e-6) ** -0.4999 * scale


def _fewer(x: Any, scale: Any) -> Any:
    return x / np.sqrt((x * x).sum(-1, keepdims=True) / 5 + 1e-6) * scale


_ROWS = {"x": "f32[4,5,6]", "scale": "f32[6]"}

PATTERN = Pattern(
    identifier="rms_norm",
    documentation=__doc__ or "",
    roots=ROOTS,
    find=finder("rms_norm"),
    where=places("rms_norm"),
    work=work,
    evaluate=evaluate,
    examples=(Example("as llama writes it", _llama, _ROWS), Example("square by einsum", _einsum, _ROWS)),
    counterexamples=(
        Example("another power", _another_power, _ROWS, "exponent"),
        Example("divided by n - 1", _fewer, _ROWS, "divisor"),
    ),
    term=TERM,
)
