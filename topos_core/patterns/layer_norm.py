"""Layer normalisation: mean and variance of each element's own features.

Recognises
    `(x - mean) / sqrt(variance + epsilon) * scale + shift` with mean and variance over one axis or several and a scale and
    shift along exactly those axes, both optional; any rank, layout and spelling: axes kept or not, `np.var` or by hand,
    `** -0.5`, `rsqrt`, sums instead of means with the factor outside, rows flattened, means by matrix product, means of f16
    and bf16 that are summed in f32 and rounded, the scale folded into the root, the affine folded into `x * k + (shift - mean * k)`
    or multiplied out with each product in an order of its own (`x * k + (shift - mean * scale / deviation)`).

Why it pays
    One kernel reads x once and writes once, a row at a time; the recorded ops read and write it about eight times.

Declines when
    There is neither scale nor shift and the statistics run over axis 0: that is a batch norm.

Differs from the recorded ops
    Where scale is infinite and the recorded ops fold it (`x * k + (shift - mean * k)`): the kernel centres first and gives an
    infinity for a recorded NaN.

Not recognised
    Means of f16 by np.mean beside np.var, which sums in f16 around a mean of its own (it is told). A one-pass variance
    `mean(x^2) - mean^2` (another formula: it cancels), bounded by 0 or not (it is told), a norm over a single feature, one
    without epsilon.

Source
    Ba, Kiros, Hinton, Layer Normalization (arXiv 1607.06450).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from topos_core.cost.work import Work
from topos_core.matching import spread
from topos_core.matching.answers import ROOTS, finder, places
from topos_core.matching.binding import Found
from topos_core.matching.declared import Form, Term, anchor, difference, mean_as_numpy
from topos_core.matching.facts import CoreFacts
from topos_core.matching.lookalikes import epsilon_outside_root, one_pass_variance
from topos_core.matching.match import Match
from topos_core.matching.norm import reduces_first_axis
from topos_core.matching.pattern import Example, Pattern
from topos_core.matching.summary import core_facts, evaluated
from topos_core.tape.tape import Tape


def formula(x: Any, scale: Any, shift: Any, epsilon: float) -> Any:
    """Normalises `x: [k, n]` over n."""
    centred = x - x.mean(-1, keepdims=True)
    return _affine(centred / np.sqrt(anchor((centred * centred).mean(-1, keepdims=True)) + epsilon), scale, shift)


def folded(x: Any, scale: Any, shift: Any, epsilon: float) -> Any:
    """`x * k + (shift - mean * k)`."""
    return spread.folded(x, *_statistics(x, epsilon), scale, shift)


def multiplied_out(x: Any, scale: Any, shift: Any, epsilon: float) -> Any:
    """`x * scale * root + (shift - mean * scale * root)`."""
    return spread.multiplied_out(x, *_statistics(x, epsilon), scale, shift)


def scaled_last(x: Any, scale: Any, shift: Any, epsilon: float) -> Any:
    """`(x * root - mean * root) * scale + shift`."""
    return spread.scaled_last(x, *_statistics(x, epsilon), scale, shift)


def _statistics(x: Any, epsilon: float) -> tuple[Any, Any]:
    mean = x.mean(-1, keepdims=True)
    centred = x - mean
    return mean, 1 / np.sqrt(anchor((centred * centred).mean(-1, keepdims=True)) + epsilon)


def centred_again(x: Any, scale: Any, shift: Any, epsilon: float) -> Any:
    """With the variance of what is centred, which centres it once more."""
    centred = x - x.mean(-1, keepdims=True)
    again = centred - centred.mean(-1, keepdims=True)
    return _affine(centred / np.sqrt(anchor((again * again).mean(-1, keepdims=True)) + epsilon), scale, shift)


def widened_f16(x: Any, scale: Any, shift: Any, epsilon: float) -> Any:
    """With the means of f16 that NumPy computes in f32."""
    return _with_means(x, scale, shift, epsilon, "f2")


def widened_bf16(x: Any, scale: Any, shift: Any, epsilon: float) -> Any:
    """With the means of bf16 computed in f32."""
    return _with_means(x, scale, shift, epsilon, "bfloat16")


def _with_means(x: Any, scale: Any, shift: Any, epsilon: float, dtype: str) -> Any:
    centred = x - mean_as_numpy(x, -1, dtype)
    return _affine(centred / np.sqrt(anchor(mean_as_numpy(centred * centred, -1, dtype)) + epsilon), scale, shift)


def epsilon_outside(x: Any, scale: Any, shift: Any, epsilon: float) -> Any:
    """Epsilon beside the deviation instead of inside the root."""
    centred = x - x.mean(-1, keepdims=True)
    return _affine(centred / difference(np.sqrt((centred * centred).mean(-1, keepdims=True)) + epsilon), scale, shift)


def one_pass(x: Any, scale: Any, shift: Any, epsilon: float) -> Any:
    """The variance as `mean(x^2) - mean^2`."""
    mean = x.mean(-1, keepdims=True)
    return _affine(
        (x - mean) / np.sqrt(difference((x * x).mean(-1, keepdims=True) - mean * mean + epsilon)), scale, shift
    )


def one_pass_bounded(x: Any, scale: Any, shift: Any, epsilon: float) -> Any:
    """The same, not below 0."""
    mean = x.mean(-1, keepdims=True)
    variance = difference(np.maximum((x * x).mean(-1, keepdims=True) - mean * mean, 0))
    return _affine((x - mean) / np.sqrt(variance + epsilon), scale, shift)


def facts(found: Found) -> CoreFacts | None:
    """Gives the facts of a match that is no batch norm."""
    plain = not {"scale", "shift"} & set(found.template.holes)
    return None if plain and reduces_first_axis(found) else core_facts(found)


def evaluate(facts: CoreFacts, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Computes the match's own formula."""
    return evaluated(TERM.holes, facts, arrays, "k n", formula)


def work(tape: Tape, match: Match) -> Work:
    """Mean, centre, square and sum, scale: seven operations per element, two more with scale and shift; a root per row."""
    x, root = tape.type_of(match.bindings["x"]), tape.type_of(match.root)
    vectors = [tape.type_of(match.bindings[name]).bytes for name in ("scale", "shift") if name in match.bindings]
    rows = match.facts.extents["k"]
    return Work((5 + len(vectors)) * root.size + 3 * rows, rows, x.bytes + sum(vectors), root.bytes)


def _affine(y: Any, scale: Any, shift: Any) -> Any:
    y = y if scale is None else y * scale
    return y if shift is None else y + shift


TERM = Term(
    formula=formula,
    facts=facts,
    holes={"x": "k n", "scale": "n", "shift": "n"},
    optional=("scale", "shift"),
    constants=("epsilon",),
    family="norm",
    forms=(
        *spread.forms(multiplied_out, scaled_last),
        folded,
        *(Form(form, silent=True) for form in (centred_again, widened_f16, widened_bf16)),
    ),
    lookalikes=(
        epsilon_outside_root(epsilon_outside),
        *one_pass_variance(one_pass, one_pass_bounded),
        *spread.lookalikes(_statistics),
    ),
)


def _textbook(x: Any, scale: Any, shift: Any) -> Any:
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return scale * (x - mean) / np.sqrt(variance + 1e-5) + shift


def _two_axes(x: Any) -> Any:
    return (x - x.mean((1, 2), keepdims=True)) * (x.var((1, 2), keepdims=True) + 1e-6) ** -0.5


def _outside(x: Any, scale: Any, shift: Any) -> Any:
    return scale * (x - x.mean(-1, keepdims=True)) / (x.std(-1, keepdims=True) + 1e-5) + shift


def _sample_variance(x: Any, scale: Any, shift: Any) -> Any:
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True, ddof=1) + 1e-5) * scale + shift


def _squares(x: Any, scale: Any, shift: Any) -> Any:
    mean = x.mean(-1, keepdims=True)
    return (x - mean) / np.sqrt((x * x).mean(-1, keepdims=True) - mean * mean + 1e-5) * scale + shift


def _another_axis(x: Any) -> Any:
    centred = x - x.mean(1, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(1) + 1e-5)


_ROWS = {"x": "f32[4,5,6]", "scale": "f32[6]", "shift": "f32[6]"}

PATTERN = Pattern(
    identifier="layer_norm",
    documentation=__doc__ or "",
    roots=ROOTS,
    find=finder("layer_norm"),
    where=places("layer_norm"),
    work=work,
    evaluate=evaluate,
    examples=(
        Example("textbook", _textbook, _ROWS),
        Example("over two axes, without scale and shift", _two_axes, {"x": "f32[4,5,6]"}),
    ),
    counterexamples=(
        Example("epsilon outside the root", _outside, _ROWS, "eps-outside-root"),
        Example("variance over n - 1", _sample_variance, _ROWS, "divisor"),
        Example("one-pass variance", _squares, _ROWS, "one-pass-variance"),
        Example("variance along another axis", _another_axis, {"x": "f32[4,4]"}, "axis-mixed"),
    ),
    term=TERM,
)
