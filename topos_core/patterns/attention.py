"""Scaled dot-product attention.

Recognises
    `softmax(q @ k.T * scale + mask) @ v` in any layout and with any batch axes: the scale before or after the product, on
    q, on k or on both, or none; a mask that is added or subtracted, with a number in front or none, of any of the axes and
    computed before or after it was spread, and a second term that is added (a position bias, the two halves of a relative
    one); a boolean mask that says what to keep or what to hide, before or after the scale, with one more boolean mask on
    top or a term added after it; softmax with the shift, without it or with it twice, normalised after the second product,
    or in f32 between casts of f16 and bf16; a factor on the weights, such as a dropout mask; everything transposed; keys
    and values shared by groups of query heads; one query; a constant mask that is the lower triangle (`causal`). A scale on q,
    k or v is taken in, unless somebody else reads what it gives: that is bound then, and is an input like any other. Softmax
    without the shift has the better range in a kernel: a row that is hidden by a large finite number still has weights
    there, where the recorded ops divide 0 by 0.

Why it pays
    One kernel holds a block of scores in cache; the recorded ops write and read all scores about six times.

Declines when
    Nothing beside the common rules.

Differs from the recorded ops
    Values are added up with weights that are divided by their sum last: that sum of values may overflow where the recorded
    one does not. A scale on q or k is applied to their product: where that overflows by itself (q and k of 1e19 in f32), the kernel
    gives NaN for recorded numbers.

Not recognised
    A cap on the scores by tanh, a mask that is multiplied and a factor on the scores that is a value (all are told), scores
    that three terms are added to one by one, weights that a choice drops out instead of a factor (a NaN of a hidden row made
    0), a number that is added to all scores, weights as powers of a log softmax or of scores less a logsumexp, a choice that
    fills with 0, queries that all examples share (learnt latents without an axis of examples; told), a shift by the largest score of all rows (told as a mask with -1 in front), a mask that is computed from the scores themselves.

Source
    Vaswani et al., Attention Is All You Need (arXiv 1706.03762).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from topos_core.cost.work import Work
from topos_core.matching import attention_masks as masks
from topos_core.matching.answers import ROOTS, finder, places
from topos_core.matching.attention_masks import less_largest, plus, scaled_scores, weights_of
from topos_core.matching.binding import Found
from topos_core.matching.declared import Form, Lookalike, Term, anchor, difference
from topos_core.matching.facts import CoreFacts
from topos_core.matching.lookalikes import epsilon_in_sum
from topos_core.matching.match import Match
from topos_core.matching.pattern import Example, Pattern
from topos_core.matching.summary import core_facts, evaluated
from topos_core.tape.tape import Tape

MASKS = ("mask", "bias", "keep", "drop")
"""Holes that a match may do without."""


def added(q: Any, k: Any, v: Any, mask: Any, bias: Any, keep: Any, drop: Any, scale: float) -> Any:
    """`softmax(q: [b, i, d] @ k: [b, j, d] * scale + mask: [b, i, j] + bias) @ v: [b, j, e]`."""
    return weights_of(scaled_scores(q, k, mask, scale, bias)) @ v


def shifted_twice(q: Any, k: Any, v: Any, mask: Any, bias: Any, keep: Any, drop: Any, scale: float) -> Any:
    """The largest score is subtracted once more, by hand before softmax does."""
    return weights_of(less_largest(scaled_scores(q, k, mask, scale, bias))) @ v


def dropped(q: Any, k: Any, v: Any, mask: Any, bias: Any, keep: Any, drop: Any, scale: float, rescale: float) -> Any:
    """The weights have a factor."""
    return weights_of(scaled_scores(q, k, mask, scale, bias)) * (drop * rescale) @ v


def unshifted(q: Any, k: Any, v: Any, mask: Any, bias: Any, keep: Any, drop: Any, scale: float) -> Any:
    """Without the shift by the maximum."""
    powers = np.exp(scaled_scores(q, k, mask, scale, bias))
    return anchor(powers / powers.sum(-1, keepdims=True)) @ v


def normalised_late(q: Any, k: Any, v: Any, mask: Any, bias: Any, keep: Any, drop: Any, scale: float) -> Any:
    """Divided by the sum after the second product."""
    scores = scaled_scores(q, k, mask, scale, bias)
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return (powers @ v) / anchor(powers.sum(-1, keepdims=True))


def unshifted_late(q: Any, k: Any, v: Any, mask: Any, bias: Any, keep: Any, drop: Any, scale: float) -> Any:
    """Without the shift, and divided by the sum after the second product."""
    powers = np.exp(scaled_scores(q, k, mask, scale, bias))
    return (powers @ v) / anchor(powers.sum(-1, keepdims=True))


def widened_f16(q: Any, k: Any, v: Any, mask: Any, bias: Any, keep: Any, drop: Any, scale: float) -> Any:
    """Scores of f16 are normalised in f32."""
    return weights_of(scaled_scores(q, k, mask, scale, bias).astype("f4")).astype("f2") @ v


def widened_bf16(q: Any, k: Any, v: Any, mask: Any, bias: Any, keep: Any, drop: Any, scale: float) -> Any:
    """Scores of bf16 are normalised in f32."""
    return weights_of(scaled_scores(q, k, mask, scale, bias).astype("f4")).astype("bfloat16") @ v


def capped(
    q: Any, k: Any, v: Any, mask: Any, bias: Any, keep: Any, drop: Any, scale: float, inside: float, cap: float
) -> Any:
    """Scores that tanh keeps below a cap."""
    return weights_of(plus(difference(np.tanh(q @ k.swapaxes(1, 2) * inside)) * cap, mask)) @ v


def guarded(q: Any, k: Any, v: Any, mask: Any, bias: Any, keep: Any, drop: Any, scale: float, epsilon: float) -> Any:
    """With something added to the sum of the weights."""
    powers = np.exp(less_largest(scaled_scores(q, k, mask, scale)))
    return powers / difference(powers.sum(-1, keepdims=True) + epsilon) @ v


def guarded_late(
    q: Any, k: Any, v: Any, mask: Any, bias: Any, keep: Any, drop: Any, scale: float, epsilon: float
) -> Any:
    """With something added to the sum that the second product is divided by."""
    powers = np.exp(less_largest(scaled_scores(q, k, mask, scale)))
    return (powers @ v) / difference(powers.sum(-1, keepdims=True) + epsilon)


def facts(found: Found) -> CoreFacts | None:
    """Gives the facts of a match.

    `mask` is none, added, keeps or hides; `fill_scaled`, `causal`, `widened` and `shifted` are yes or no: `causal` says of a
    constant mask, one axis of positions and one of keys, that position i sees keys 0 to i, `widened` that softmax is computed
    in f32 and rounded, `shifted` that the largest score is subtracted first.
    """
    form = found.template.form
    bound = set(found.template.holes)
    mask = "none" if "mask" not in bound else masks.ROLES.get(form, "added")
    scaled = "yes" if form is masks.keeps_before_scale else "no"
    decides = "keep" if "keep" in bound else "mask"
    kind = "keeps" if decides == "keep" else mask
    widened = "yes" if form in (widened_f16, widened_bf16) else "no"
    shifted = "no" if form in (unshifted, unshifted_late) else "yes"
    made = core_facts(found, mask=mask, fill_scaled=scaled, causal="no", widened=widened, shifted=shifted)
    if made is None or decides not in bound:
        return made
    table = found.keys.tape.constant(found.bindings[decides])
    if form is masks.weighted:
        return made
    causal = made.is_causal(decides, table if isinstance(table, np.ndarray) else None, kind)
    return replace(made, options={**made.options, "causal": "yes" if causal else "no"})


def evaluate(facts: CoreFacts, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Computes the match's own formula."""
    kind, widened = facts.options["mask"], facts.options["widened"] == "yes"
    before = facts.options["fill_scaled"] == "yes"

    def formula(
        q: Any, k: Any, v: Any, mask: Any, bias: Any, keep: Any, drop: Any, scale: float, fill: float = 0.0,
        rescale: float = 1.0, weight: float = 1.0,
    ) -> Any:  # fmt: skip
        scores = q @ k.swapaxes(1, 2) if before else q @ k.swapaxes(1, 2) * scale
        if kind == "added":
            scores = scores + mask * weight
        elif kind != "none":
            scores = np.where(mask, scores, fill) if kind == "keeps" else np.where(mask, fill, scores)
        scores = scores * scale if before else scores
        scores = scores if keep is None else np.where(keep, scores, fill)
        scores = plus(scores, bias)
        weights = weights_of(scores.astype("f4")).astype(q.dtype) if widened else weights_of(scores)
        return (weights if drop is None else weights * (drop * rescale)) @ v

    return evaluated(TERM.holes, facts, arrays, "b i e", formula)


def work(tape: Tape, match: Match) -> Work:
    """Two products, and a scale, a maximum, a difference, a sum and a product per score, with one exp."""
    e = match.facts.extents
    scores = e["b"] * e["i"] * e["j"]
    read = sum(tape.type_of(value).bytes for value in match.bindings.values())
    terms = sum(name in match.bindings for name in ("mask", "bias", "drop"))
    flops = 2 * scores * (e["d"] + e["e"]) + (5 + terms) * scores
    return Work(flops, scores, read, tape.type_of(match.root).bytes)


def _sums(
    formula: Any, excluded: frozenset[str] = masks.LATER, required: frozenset[str] = frozenset(), **options: Any
) -> Any:
    """Gives the forms with no, one and two added terms; one that is a sum itself is taken whole, so it comes first."""
    return (
        Form(formula, required=required, excluded=excluded | masks.NO_BIAS, **options),
        Form(formula, required=required | masks.TWO, excluded=excluded, **options),
    )


TERM = Term(
    formula=_sums(added)[0],
    facts=facts,
    holes={
        "q": "b i d",
        "k": "b j d",
        "v": "b j e",
        "mask": "b i j",
        "bias": "b i j",
        "keep": "b i j",
        "drop": "b i j",
    },
    optional=MASKS,
    constants=("scale",),
    forms=(
        _sums(added)[1],
        *_sums(unshifted),
        *_sums(normalised_late),
        *_sums(unshifted_late),
        *masks.CHOOSING,
        *_sums(dropped, masks.KEEP, masks.DROP, constants=("rescale",)),
        *masks.CHOOSING_DROPPED,
        *_sums(widened_f16),
        *_sums(widened_bf16),
        *_sums(shifted_twice),
        *masks.CHOOSING_SHIFTED,
        masks.WEIGHTED,  # else it would take the shift for a mask
    ),
    lookalikes=(
        masks.TEMPERED,
        *masks.MULTIPLIED,
        Lookalike(
            capped,
            "scores-capped",
            "the scores as they are, or with a term added",
            "scores that tanh keeps below a cap: no kernel has it",
            excluded=masks.FURTHER,
            constants=("inside", "cap"),
        ),
        *(epsilon_in_sum(form, "the weights divided by their sum", masks.FURTHER) for form in (guarded, guarded_late)),
    ),
    free=frozenset(MASKS),
    raw=frozenset(("q", "k", "v", "drop")),
)


def _softmax(scores: Any) -> Any:
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def _textbook(q: Any, k: Any, v: Any) -> Any:
    return _softmax(q @ k.swapaxes(-1, -2) / 2.0) @ v


def _causal(q: Any, k: Any, v: Any) -> Any:
    seen = np.tri(q.shape[-2], k.shape[-2], dtype=bool)
    return _softmax(np.where(seen, q @ k.swapaxes(-1, -2) * 0.5, -np.inf)) @ v


def _grouped(q: Any, k: Any, v: Any) -> Any:
    return _causal(q, *(np.repeat(each, q.shape[1] // k.shape[1], 1) for each in (k, v)))


def _turned(q: Any, k: Any, v: Any) -> Any:
    scores = np.where(np.tri(k.shape[0], q.shape[0], dtype=bool), k @ q.T * 0.5, -np.inf)
    powers = np.exp(scores - scores.max(0))
    return (powers / powers.sum(0)).T @ v


def _over_batches(q: Any, k: Any, v: Any) -> Any:
    seen = np.tri(q.shape[0], k.shape[1], dtype=bool)
    scores = np.where(seen, np.einsum("bid,bjd->ibj", q, k) * 0.5, -np.inf)
    return np.einsum("ibj,bje->ibe", _softmax(scores), v)


def _einsum(q: Any, k: Any, v: Any, mask: Any) -> Any:
    scores = np.einsum("bqhd,bkhd->bhqk", q, k) * 0.5 + mask
    return np.einsum("bhqk,bkhd->bqhd", _softmax(scores), v)


def _subtracted(q: Any, k: Any, v: Any, mask: Any) -> Any:
    scores = np.einsum("bqhd,bkhd->bhqk", q, k) * 0.5 - 1e4 * (1 - mask)
    return np.einsum("bhqk,bkhd->bqhd", _softmax(scores), v)


def _another_axis(q: Any, k: Any, v: Any) -> Any:
    scores = q @ k.swapaxes(-1, -2) * 0.5
    powers = np.exp(scores - scores.max(-2, keepdims=True))
    return powers / powers.sum(-2, keepdims=True) @ v


def _multiplied(q: Any, k: Any, v: Any) -> Any:
    return _softmax(q @ k.swapaxes(-1, -2) * 0.5 * np.tri(5, dtype=np.float32)) @ v


def _tempered(q: Any, k: Any, v: Any, t: Any) -> Any:
    return _softmax(q @ k.swapaxes(-1, -2) * t) @ v


_HEADS = {"q": "f32[2,3,5,4]", "k": "f32[2,3,5,4]", "v": "f32[2,3,5,4]"}
_TEMPERED = {**_HEADS, "t": "f32[]"}
_FEWER = {"q": "f32[2,6,5,4]", "k": "f32[2,2,5,4]", "v": "f32[2,2,5,4]"}
_ONE_HEAD = {"q": "f32[5,4]", "k": "f32[5,4]", "v": "f32[5,4]"}
_BATCHES = {"q": "f32[5,6,4]", "k": "f32[5,5,4]", "v": "f32[5,5,4]"}
_LAST = {"q": "f32[2,5,3,4]", "k": "f32[2,5,3,4]", "v": "f32[2,5,3,4]", "mask": "f32[2,1,5,5]"}

PATTERN = Pattern(
    identifier="attention",
    documentation=__doc__ or "",
    roots=ROOTS,
    find=finder("attention"),
    where=places("attention"),
    work=work,
    evaluate=evaluate,
    examples=(
        Example("textbook", _textbook, _HEADS), Example("causal", _causal, _HEADS), Example("einsum", _einsum, _LAST),
        Example("a mask that is subtracted", _subtracted, _LAST),
        Example("causal, keys shared by groups of heads", _grouped, _FEWER),
        Example("a triangle of turned scores", _turned, _ONE_HEAD),
        Example("a triangle over batches", _over_batches, _BATCHES),
    ),
    counterexamples=(
        Example("softmax over the queries", _another_axis, _HEADS, "axis-mixed"),
        Example("a mask that is multiplied", _multiplied, _HEADS, "mask-multiplied"),
        Example("a learnt temperature", _tempered, _TEMPERED, "scale-value"),
        Example("a learnt temperature of each head", _tempered, {**_TEMPERED, "t": "f32[3,1,1]"}, "scale-value"),
    ),
    term=TERM,
)  # fmt: skip
