"""Attention and rotary position embedding."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from topos_core.nn.activation import softmax
from topos_core.nn.arguments import Array, described, refusal
from topos_core.recording.value import Value

_STEPS: Final = frozenset(("cast", "logical_not", "slice", "reshape", "permute", "broadcast"))


def attention(
    query: Array,
    key: Array,
    value: Array,
    mask: Array | None = None,
    causal: bool = False,
    scale: float | None = None,
    hidden_rows: float = math.nan,
) -> Array:
    """Gives softmax(query @ key.T * scale + mask) @ value.

    Args:
        query: f32[..., heads, length, width].
        key: f32[..., key heads, keys, width]; fewer heads than the query's are shared by groups of them.
        value: f32[..., key heads, keys, out].
        mask: bool (True: may be seen) or a number that is added, broadcast to [..., heads, length, keys].
        causal: Whether position i sees keys 0 to i only.
        scale: 1 / sqrt(width) where it is left out.
        hidden_rows: What a position gives whose keys are all hidden by the mask: NaN, as the formula says, or 0, as
            torch's `scaled_dot_product_attention` says.

    Raises:
        RecordingError: Extents do not fit, or `hidden_rows` is another number.
    """
    if not (hidden_rows == 0 or math.isnan(hidden_rows)):
        raise refusal(f"attention: hidden_rows is {hidden_rows}; write 0 or math.nan", query)
    if query.ndim < 2 or key.ndim != query.ndim or value.ndim != query.ndim or query.shape[-1] != key.shape[-1]:
        raise refusal(
            f"attention: query {described(query)}, key {described(key)}, value {described(value)} do not fit;"
            " they are [..., heads, length, width]",
            query,
            key,
            value,
        )
    if query.ndim > 2 and query.shape[-3] != key.shape[-3]:
        key, value = (_shared_heads(query, each) for each in (key, value))
    scores = (query @ key.swapaxes(-1, -2)) * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    kept = None
    if mask is not None:
        if hidden_rows == 0:
            mask, kept = _without_hidden_rows(mask, scores.dtype)
        scores = np.where(mask, scores, -np.inf) if mask.dtype == np.bool_ else scores + mask
    if causal:
        seen = np.tri(query.shape[-2], key.shape[-2], dtype=bool)
        scores = np.where(seen, scores, -np.inf)
    weights = softmax(scores)
    return (weights if kept is None else weights * kept) @ value


def _without_hidden_rows(mask: Array, dtype: np.dtype) -> tuple[Array, Array]:
    """Gives a mask whose hidden rows show every key, and what their weights are multiplied by: 0 there, 1 elsewhere.

    Layers that share a mask share both.
    """
    if not isinstance(mask, Value):
        return _shown_and_kept(mask, dtype)
    key = ("without hidden rows", dtype.name, _written_out(mask))
    shown, kept = mask.recorder.once(key, lambda: _shown_and_kept(mask, dtype))
    return shown, kept


def _written_out(value: Value) -> tuple[object, ...]:
    """Tells a value by what is done to one that was there before: each layer may cut and convert the mask anew."""
    ops, at, steps = value.recorder.ops, value.index, list[object]()
    while (op := ops[at]).name in _STEPS:
        steps.append((op.name, repr(op.attributes)))
        (at,) = op.operands
    return at, *steps


def _shown_and_kept(mask: Array, dtype: np.dtype) -> tuple[Array, Array]:
    seen = np.any(mask if mask.dtype == np.bool_ else mask != -np.inf, axis=-1, keepdims=True)
    shown = mask | ~seen if mask.dtype == np.bool_ else np.where(seen, mask, np.zeros((), mask.dtype))
    return shown, seen.astype(dtype)


def _shared_heads(query: Array, shared: Array) -> Array:
    """Repeats every key head for its group of query heads."""
    heads, kept = query.shape[-3], shared.shape[-3]
    if kept == 0 or heads % kept:
        raise refusal(f"attention: {heads} query heads do not divide into {kept} key heads", query, shared)
    return np.repeat(shared, heads // kept, axis=-3)


def rotary_tables(length: int, width: int, base: float = 10000.0) -> tuple[np.ndarray, np.ndarray]:
    """Gives the cosines and sines of rotary embedding, f32[length, width]; both halves hold the same angles."""
    frequencies = base ** (-np.arange(0, width, 2) / width)
    angles = np.outer(np.arange(length), frequencies)
    doubled = np.concatenate([angles, angles], axis=-1)
    return np.cos(doubled).astype(np.float32), np.sin(doubled).astype(np.float32)


def rotary_embedding(x: Array, cos: Array, sin: Array) -> Array:
    """Turns pairs of features by angles that grow with the position (Su et al. 2021, arXiv:2104.09864).

    Args:
        x: f32[..., length, width]; feature i is paired with i + width / 2.
        cos, sin: f32[length, width], from `rotary_tables`.

    Raises:
        RecordingError: The width is odd.
    """
    half = x.shape[-1] // 2
    if x.shape[-1] % 2:
        raise refusal(f"rotary_embedding: the width {x.shape[-1]} of {described(x)} is odd; pairs are turned", x)
    turned = np.concatenate([-x[..., half:], x[..., :half]], axis=-1)
    return x * cos + turned * sin
