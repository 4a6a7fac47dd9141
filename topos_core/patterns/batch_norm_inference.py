"""Batch normalisation with given statistics.

Recognises
    `(x - mean) / sqrt(variance + epsilon) * scale + shift` where mean and variance are inputs, parameters or constants
    with one element per channel, in any rank, layout and spelling: reshaped, indexed with None or broadcast; `** -0.5` or
    `rsqrt`; the scale folded into the root; the affine folded into `x * k + (shift - mean * k)`
    or multiplied out with each product in an order of its own (`x * k + (shift - mean * scale / deviation)`). Scale and shift
    are optional.

Why it pays
    One kernel reads x once and writes once; the recorded ops read and write it four times. After a convolution it becomes
    part of that kernel.

Declines when
    Two vectors order the channels differently.

Differs from the recorded ops
    Where scale is infinite, or a variance is minus epsilon, and the recorded ops fold it (`x * k + (shift - mean * k)`): the
    kernel centres first and gives an infinity for a recorded NaN.

Not recognised
    Statistics computed from x (that is `batch_norm_training` or another norm), a standard deviation that is given instead
    of a variance.

Source
    Ioffe and Szegedy, Batch Normalization (arXiv 1502.03167), algorithm 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from topos_core.cost.work import Work
from topos_core.matching import spread
from topos_core.matching.answers import ROOTS, finder, places
from topos_core.matching.arrangement import arranged, restored
from topos_core.matching.attempt import Attempt
from topos_core.matching.binding import Found
from topos_core.matching.core import Keys
from topos_core.matching.declared import Term, anchor, difference
from topos_core.matching.facts import NormFacts
from topos_core.matching.func import reduces
from topos_core.matching.lookalikes import epsilon_outside_root
from topos_core.matching.match import Match
from topos_core.matching.norm import norm_facts
from topos_core.matching.pattern import Example, Pattern
from topos_core.tape.tape import Tape

VECTORS = ("scale", "shift", "mean", "variance")


def formula(x: Any, mean: Any, variance: Any, scale: Any, shift: Any, epsilon: float) -> Any:
    """Normalises `x: [n, c]` with `mean: [c]` and `variance: [c]`."""
    y = (x - mean) / np.sqrt(anchor(variance + epsilon))
    y = y if scale is None else y * scale
    return y if shift is None else y + shift


def folded(x: Any, mean: Any, variance: Any, scale: Any, shift: Any, epsilon: float) -> Any:
    """`x * k + (shift - mean * k)`."""
    return spread.folded(x, *_statistics(x, mean, variance, epsilon), scale, shift)


def multiplied_out(x: Any, mean: Any, variance: Any, scale: Any, shift: Any, epsilon: float) -> Any:
    """`x * scale * root + (shift - mean * scale * root)`."""
    return spread.multiplied_out(x, *_statistics(x, mean, variance, epsilon), scale, shift)


def scaled_last(x: Any, mean: Any, variance: Any, scale: Any, shift: Any, epsilon: float) -> Any:
    """`(x * root - mean * root) * scale + shift`."""
    return spread.scaled_last(x, *_statistics(x, mean, variance, epsilon), scale, shift)


def _statistics(x: Any, mean: Any, variance: Any, epsilon: float) -> tuple[Any, Any]:
    return mean, 1 / np.sqrt(anchor(variance + epsilon))


def epsilon_outside(x: Any, mean: Any, variance: Any, scale: Any, shift: Any, epsilon: float) -> Any:
    """Epsilon beside the deviation instead of inside the root."""
    y = (x - mean) / difference(np.sqrt(variance) + epsilon)
    y = y if scale is None else y * scale
    return y if shift is None else y + shift


def given(keys: Keys, attempt: Attempt) -> bool:
    """Says whether the statistics are given: computed ones belong to another norm. A cast on the way tells as much."""
    bound = attempt.bound
    if "variance" not in bound:
        failure = attempt.failure
        if failure is None or failure.code != "cast" or "mean" not in bound:
            return False
        return not any(reduces(func) for func in (bound["mean"][0], failure.func))
    return not any(reduces(bound[hole][0]) for hole in ("mean", "variance") if hole in bound)


def facts(found: Found) -> NormFacts | None:
    """Gives the facts of a match."""
    return norm_facts(found, VECTORS)


def evaluate(norm: NormFacts, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Computes the match's own formula: `root` in the root's layout."""
    x = arranged(arrays["x"], norm.image, ("n", "c"))
    y = (x - arrays["mean"].reshape(-1)) / np.sqrt(arrays["variance"].reshape(-1) + norm.epsilon)
    if "scale" in arrays:
        y = y * arrays["scale"].reshape(-1)
    if "shift" in arrays:
        y = y + arrays["shift"].reshape(-1)
    return {"root": restored(y, norm.result, ("n", "c"))}


def work(tape: Tape, match: Match) -> Work:
    """One multiply-add per element, after a factor and a term per channel."""
    x, root = tape.type_of(match.bindings["x"]), tape.type_of(match.root)
    norm: NormFacts = match.facts
    vectors = sum(tape.type_of(value).bytes for name, value in match.bindings.items() if name != "x")
    return Work(2 * x.size + 5 * norm.channels, norm.channels, x.bytes + vectors, root.bytes)


def _by_hand(x: Any, mean: Any, variance: Any, scale: Any, shift: Any) -> Any:
    mean, variance, scale, shift = (v.reshape(1, -1, 1, 1) for v in (mean, variance, scale, shift))
    return (x - mean) / np.sqrt(variance + 1e-5) * scale + shift


def _folded_by_hand(x: Any, mean: Any, variance: Any, scale: Any, shift: Any) -> Any:
    k = scale * (variance + 1e-5) ** -0.5
    return x * k + (shift - mean * k)


def _outside(x: Any, mean: Any, variance: Any, scale: Any, shift: Any) -> Any:
    return (x - mean) / (np.sqrt(variance) + 1e-5) * scale + shift


def _another_axis(x: Any, mean: Any, variance: Any, scale: Any, shift: Any) -> Any:
    return (x - mean) / np.sqrt(variance[:, None] + 1e-5) * scale + shift


_IMAGE = {"x": "f32[8,4,5,6]", "mean": "f32[4]", "variance": "f32[4]", "scale": "f32[4]", "shift": "f32[4]"}
_ROWS = {"x": "f32[6,6]", "mean": "f32[6]", "variance": "f32[6]", "scale": "f32[6]", "shift": "f32[6]"}

PATTERN = Pattern(
    identifier="batch_norm_inference",
    documentation=__doc__ or "",
    roots=ROOTS,
    find=finder("batch_norm_inference"),
    where=places("batch_norm_inference"),
    work=work,
    evaluate=evaluate,
    examples=(Example("by hand", _by_hand, _IMAGE), Example("folded affine", _folded_by_hand, _ROWS)),
    counterexamples=(
        Example("epsilon outside the root", _outside, _ROWS, "eps-outside-root"),
        Example("variance along another axis", _another_axis, _ROWS, "axis"),
    ),
    term=Term(
        formula=formula,
        facts=facts,
        holes={"x": "n c", "mean": "c", "variance": "c", "scale": "c", "shift": "c"},
        optional=("scale", "shift"),
        constants=("epsilon",),
        family="norm",
        forms=(*spread.forms(multiplied_out, scaled_last), folded),
        lookalikes=(epsilon_outside_root(epsilon_outside), *spread.lookalikes(_statistics)),
        own=given,
        worth=given,
    ),
)
