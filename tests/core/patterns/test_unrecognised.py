"""What a pattern's page says is not recognised is not, and nothing false is told of it."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

from tests.core.patterns.check import searched
from topos_core.matching.catalog import patterns


def softmax_masked_after(s, m):
    powers = np.exp(s - s.max(-1, keepdims=True)) * m
    return powers / powers.sum(-1, keepdims=True)


def logarithm_of_unshifted(s):
    powers = np.exp(s)
    return np.log(powers / powers.sum(-1, keepdims=True))


def powers_less_own_logit(s, label):
    largest = s.max(-1, keepdims=True)
    total = np.log(np.exp(s - largest).sum(-1, keepdims=True)) + largest
    return (total - np.take_along_axis(s, label[:, None], -1)).mean()


def weights_dropped_by_choice(q, k, v, m):
    scores = q @ k.T * 0.5
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return np.where(m, powers / powers.sum(-1, keepdims=True), 0) @ v


ROWS, HEADS = "f32[5,8]", dict.fromkeys("qkv", "f32[5,4]")
LOST = [
    ("softmax", softmax_masked_after, {"s": ROWS, "m": ROWS}, "powers that a mask is multiplied with", []),
    ("log_softmax", logarithm_of_unshifted, {"s": ROWS}, "without the shift", []),
    ("cross_entropy", powers_less_own_logit, {"s": ROWS, "label": "i64[5]<8"}, "minus the class's own logit", []),
    ("attention", weights_dropped_by_choice, {**HEADS, "m": "bool[5,5]"}, "weights that a choice drops out", []),
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
