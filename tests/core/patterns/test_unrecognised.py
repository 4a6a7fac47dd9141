"""What a pattern's page says is not recognised is not, and nothing false is told of it."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

from tests.core.patterns.check import searched
from topos_core.matching.catalog import patterns
from topos_core.recording.elementary import logsumexp


def softmax_masked_after(s, m):
    powers = np.exp(s - s.max(-1, keepdims=True)) * m
    return powers / powers.sum(-1, keepdims=True)


def logarithm_of_a_reciprocal(s):
    return s - s.max(-1, keepdims=True) + np.log(1 / np.exp(s - s.max(-1, keepdims=True)).sum(-1, keepdims=True))


def powers_less_a_logit_of_any_number(s, label):
    return logsumexp(s, 1) - np.where(label[:, None] == np.arange(8), s, 0).sum(1)


def powers_less_a_weighed_sum(s, m):
    return logsumexp(s, 1) - (m * s).sum(1)


def averaged_apart(s, label):
    return logsumexp(s, 1).mean() - s[np.arange(5), label].mean()


def weights_dropped_by_choice(q, k, v, m):
    scores = q @ k.T * 0.5
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return np.where(m, powers / powers.sum(-1, keepdims=True), 0) @ v


def latents_of_all_examples(latents, x, w, u):
    scores = latents @ w @ (x @ w).swapaxes(-1, -2) * 0.5
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True) @ (x @ u)


def gelu_of_powers(x):
    power = np.exp(2 * 0.7978845608 * (x + 0.044715 * x**3))
    return 0.5 * x * (1 + (power - 1) / (power + 1))


def weights_in_front(x, g, u):
    gate = g @ x
    return gate / (1 + np.exp(-gate)) * (u @ x)


ROWS, HEADS = "f32[5,8]", dict.fromkeys("qkv", "f32[5,4]")
LOST = [
    ("softmax", softmax_masked_after, {"s": ROWS, "m": ROWS}, "powers that a mask is multiplied with", []),
    ("log_softmax", logarithm_of_a_reciprocal, {"s": ROWS}, "of the reciprocal of the sum", []),
    ("cross_entropy", powers_less_a_logit_of_any_number, {"s": ROWS, "label": "i64[5]"}, "may lie outside of their row", []),
    ("cross_entropy", powers_less_a_weighed_sum, {"s": ROWS, "m": ROWS}, "sum of logits that probabilities weigh", []),
    ("cross_entropy", averaged_apart, {"s": ROWS, "label": "i64[5]<8"}, "averaged apart", []),
    ("attention", weights_dropped_by_choice, {**HEADS, "m": "bool[5,5]"}, "weights that a choice drops out", []),
    ("attention", latents_of_all_examples, {"latents": "f32[3,4]", "x": "f32[2,5,4]", "w": "f32[4,4]", "u": "f32[4,4]"},
     "queries that all examples share", [
         "attention needs k along the other axes of q and the reduced axes alone; found k varies along axis 0 of v too (extent 2)"
     ]),
    ("gelu", gelu_of_powers, {"x": ROWS}, "with tanh as `(e - 1) / (e + 1)`", []),
    ("gated_mlp", weights_in_front, {"x": "f32[4,5]", "g": "f32[6,4]", "u": "f32[6,4]"}, "stand in front (`g @ x`)", []),
    ("rms_norm", lambda x: x / np.sqrt((x * x).sum(-1, keepdims=True) + 1e-6), {"x": ROWS}, "`x / sqrt(sum(x^2) + eps)`",
     ["rms norm needs the factor in front sqrt(8); found 1"]),
    ("window_reduce", lambda x: np.sqrt((sliding_window_view(x, (2, 2), (2, 3)) ** 2).sum((-1, -2))), {"x": "f32[1,2,6,6]"},
     "an lp pool", []),
    ("convolution", lambda x, w: sum(np.roll(x, i - 1, axis=-1) * w[i] for i in range(3)), {"x": ROWS, "w": "f32[3]"},
     "`np.roll`", []),
]  # fmt: skip


@pytest.mark.parametrize(("identifier", "function", "specs", "said", "told"), LOST, ids=[row[0] for row in LOST])
def test_what_is_lost_stands_in_its_patterns_page(identifier, function, specs, said, told):
    _, _, after = patterns()[identifier].documentation.partition("Not recognised")
    assert said in " ".join(after.split())
    tape, pool = searched(function, specs)
    assert not [m for m in pool.matches if m.pattern == identifier and m.root == tape.results[0]]
    assert [miss.sentence for miss in pool.near_misses] == told
