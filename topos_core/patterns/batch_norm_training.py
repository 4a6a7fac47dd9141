"""Batch normalisation with the statistics of the batch.

Recognises
    `(x - mean) / sqrt(variance + epsilon) * scale + shift` with mean and variance over the batch and all positions, in any
    rank, layout and spelling: rows flattened or not, axes kept or not, `np.var` or by hand (which computes its own mean),
    `** -0.5`, `rsqrt`, `* (1 / n)`, the scale folded into the root, the affine folded into `x * k + (shift - mean * k)`
    or multiplied out with each product in an order of its own (`x * k + (shift - mean * scale / deviation)`).
    Scale and shift are optional. Mean and variance are named results: they may be read, however often they are computed.

Why it pays
    One kernel reads x twice and writes once; the recorded ops read and write it about eight times.

Declines when
    The statistics keep axis 0 (another norm); two vectors order the channels differently.

Differs from the recorded ops
    Where scale is infinite and the recorded ops fold it (`x * k + (shift - mean * k)`): the kernel centres first and gives an
    infinity for a recorded NaN.

Not recognised
    Means of f16 by np.mean beside np.var, which sums in f16 around a mean of its own (it is told). A one-pass variance
    `mean(x^2) - mean^2` (another formula: it cancels), bounded by 0 or not (it is told), statistics merged from several
    partial batches, a norm over a single element.

Source
    Ioffe and Szegedy, Batch Normalization (arXiv 1502.03167), algorithm 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from topos_core.cost.work import Work
from topos_core.matching import spread
from topos_core.matching.answers import ROOTS, finder, places
from topos_core.matching.arrangement import arranged, restored
from topos_core.matching.binding import Found
from topos_core.matching.declared import Form, Term, anchor, difference, mark, mean_as_numpy
from topos_core.matching.facts import NormFacts
from topos_core.matching.lookalikes import epsilon_outside_root, one_pass_variance
from topos_core.matching.match import Match
from topos_core.matching.norm import norm_facts, reduces_first_axis, sums_first_axis
from topos_core.matching.pattern import Example, Pattern
from topos_core.tape.tape import Tape


def formula(x: Any, scale: Any, shift: Any, epsilon: float) -> Any:
    """Normalises `x: [n, c]` over n."""
    mean = mark(x.mean(0, keepdims=True), "mean")
    centred = x - mean
    variance = anchor(mark((centred * centred).mean(0, keepdims=True), "variance"))
    return _affine(centred / np.sqrt(variance + epsilon), scale, shift)


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
    mean = mark(x.mean(0, keepdims=True), "mean")
    centred = x - mean
    variance = anchor(mark((centred * centred).mean(0, keepdims=True), "variance"))
    return mean, 1 / np.sqrt(variance + epsilon)


def centred_again(x: Any, scale: Any, shift: Any, epsilon: float) -> Any:
    """With the variance of what is centred, which centres it once more."""
    centred = x - mark(x.mean(0, keepdims=True), "mean")
    again = centred - centred.mean(0, keepdims=True)
    variance = anchor(mark((again * again).mean(0, keepdims=True), "variance"))
    return _affine(centred / np.sqrt(variance + epsilon), scale, shift)


def widened_f16(x: Any, scale: Any, shift: Any, epsilon: float) -> Any:
    """With the means of f16 that NumPy computes in f32."""
    return _with_means(x, scale, shift, epsilon, "f2")


def widened_bf16(x: Any, scale: Any, shift: Any, epsilon: float) -> Any:
    """With the means of bf16 computed in f32."""
    return _with_means(x, scale, shift, epsilon, "bfloat16")


def _with_means(x: Any, scale: Any, shift: Any, epsilon: float, dtype: str) -> Any:
    centred = x - mark(mean_as_numpy(x, 0, dtype), "mean")
    variance = anchor(mark(mean_as_numpy(centred * centred, 0, dtype), "variance"))
    return _affine(centred / np.sqrt(variance + epsilon), scale, shift)


def epsilon_outside(x: Any, scale: Any, shift: Any, epsilon: float) -> Any:
    """Epsilon beside the deviation instead of inside the root."""
    centred = x - x.mean(0, keepdims=True)
    return _affine(centred / difference(np.sqrt((centred * centred).mean(0, keepdims=True)) + epsilon), scale, shift)


def one_pass(x: Any, scale: Any, shift: Any, epsilon: float) -> Any:
    """The variance as `mean(x^2) - mean^2`."""
    mean = x.mean(0, keepdims=True)
    return _affine(
        (x - mean) / np.sqrt(difference((x * x).mean(0, keepdims=True) - mean * mean + epsilon)), scale, shift
    )


def one_pass_bounded(x: Any, scale: Any, shift: Any, epsilon: float) -> Any:
    """The same, not below 0."""
    mean = x.mean(0, keepdims=True)
    variance = difference(np.maximum((x * x).mean(0, keepdims=True) - mean * mean, 0))
    return _affine((x - mean) / np.sqrt(variance + epsilon), scale, shift)


def facts(found: Found) -> NormFacts | None:
    """Gives the facts of a match that is a batch norm."""
    if not reduces_first_axis(found):
        return None
    return norm_facts(found, ("scale", "shift"))


def evaluate(norm: NormFacts, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Computes the match's own formula: `root` in the root's layout, `mean` and `variance` per channel."""
    x = arranged(arrays["x"], norm.image, ("n", "c"))
    mean = x.mean(0)  # of f16 and bf16 it is summed in f32 and rounded
    variance = ((x - mean) ** 2).mean(0)
    y = (x - mean) / np.sqrt(variance + norm.epsilon)
    if "scale" in arrays:
        y = y * arrays["scale"].reshape(-1)
    if "shift" in arrays:
        y = y + arrays["shift"].reshape(-1)
    return {"root": restored(y, norm.result, ("n", "c")), "mean": mean, "variance": variance}


def work(tape: Tape, match: Match) -> Work:
    """Two passes over x: mean and squared distance, then one multiply-add after a subtraction per element."""
    x, root = tape.type_of(match.bindings["x"]), tape.type_of(match.root)
    norm: NormFacts = match.facts
    vectors = [tape.type_of(value).bytes for name, value in match.bindings.items() if name != "x"]
    named = sum(tape.type_of(value).bytes for values in match.named.values() for value in values)
    return Work(7 * x.size + 6 * norm.channels, norm.channels, x.bytes + sum(vectors), root.bytes + named)


def _affine(y: Any, scale: Any, shift: Any) -> Any:
    y = y if scale is None else y * scale
    return y if shift is None else y + shift


def _by_hand(x: Any, scale: Any, shift: Any) -> Any:
    mean = x.mean(axis=(0, 2, 3), keepdims=True)
    variance = ((x - mean) ** 2).mean(axis=(0, 2, 3), keepdims=True)
    return (x - mean) / np.sqrt(variance + 1e-5) * scale.reshape(1, -1, 1, 1) + shift.reshape(1, -1, 1, 1)


def _with_var(x: Any) -> Any:
    return (x - np.mean(x, axis=0)) * (np.var(x, axis=0) + 1e-3) ** -0.5


def _outside(x: Any, scale: Any) -> Any:
    return (x - x.mean(0)) / (np.sqrt(x.var(0)) + 1e-5) * scale


def _sample_variance(x: Any, scale: Any) -> Any:
    return (x - x.mean(0)) / np.sqrt(x.var(0, ddof=1) + 1e-5) * scale


def _pixels(x: Any) -> Any:
    y = x.reshape(1, 6, 4, 5).transpose(0, 2, 3, 1)
    d = y - y.mean(-1, keepdims=True)
    return d / np.sqrt((d**2).mean(-1, keepdims=True) + 1e-5)


def _squares(x: Any) -> Any:
    mean = x.mean(0)
    return (x - mean) / np.sqrt((x * x).mean(0) - mean * mean + 1e-5)


_IMAGE = {"x": "f32[8,4,5,6]", "scale": "f32[4]", "shift": "f32[4]"}
_ROWS = {"x": "f32[12,6]", "scale": "f32[6]"}

PATTERN = Pattern(
    identifier="batch_norm_training",
    documentation=__doc__ or "",
    roots=ROOTS,
    find=finder("batch_norm_training"),
    where=places("batch_norm_training"),
    work=work,
    evaluate=evaluate,
    named=("mean", "variance"),
    examples=(Example("by hand", _by_hand, _IMAGE), Example("with np.var", _with_var, {"x": "f32[12,6]"})),
    counterexamples=(
        Example("epsilon outside the root", _outside, _ROWS, "eps-outside-root"),
        Example("variance over n - 1", _sample_variance, _ROWS, "divisor"),
        Example("a layer norm of a batch of one", _pixels, {"x": "f32[6,20]"}),
        Example("one-pass variance", _squares, {"x": "f32[12,6]"}, "one-pass-variance"),
    ),
    term=Term(
        formula=formula,
        facts=facts,
        holes={"x": "n c", "scale": "c", "shift": "c"},
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
        worth=sums_first_axis,
    ),
)
