"""Activations, linear layers, attention, rotary embedding and losses against their definitions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.special

from tests.core.nn.check import check, numbers
from topos_core import nn
from topos_core.errors import RecordingError
from topos_core.recording.spec import f32
from topos_core.recording.trace import trace

X = numbers(3, 7) * 3
D = X.astype("f8")

ACTIVATIONS: dict[str, tuple[Any, np.ndarray]] = {
    "relu": (nn.relu, np.maximum(D, 0)),
    "relu6": (nn.relu6, np.clip(D, 0, 6)),
    "leaky_relu": (lambda x: nn.leaky_relu(x, 0.1), np.where(D > 0, D, 0.1 * D)),
    "elu": (lambda x: nn.elu(x, 0.5), np.where(D > 0, D, 0.5 * np.expm1(D))),
    "sigmoid": (nn.sigmoid, scipy.special.expit(D)),
    "tanh": (nn.tanh, np.tanh(D)),
    "silu": (nn.silu, D * scipy.special.expit(D)),
    "hardswish": (nn.hardswish, D * np.clip(D + 3, 0, 6) / 6),
    "softplus": (nn.softplus, np.log1p(np.exp(D))),
    "gelu": (nn.gelu, D * scipy.special.ndtr(D)),
    "gelu tanh": (
        lambda x: nn.gelu(x, "tanh"),
        0.5 * D * (1 + np.tanh(math.sqrt(2 / math.pi) * (D + 0.044715 * D**3))),
    ),
    "gelu sigmoid": (lambda x: nn.gelu(x, approximate="sigmoid"), D * scipy.special.expit(1.702 * D)),
    "softmax": (nn.softmax, scipy.special.softmax(D, axis=-1)),
    "softmax over rows": (lambda x: nn.softmax(x, axis=0), scipy.special.softmax(D, axis=0)),
    "log_softmax": (nn.log_softmax, scipy.special.log_softmax(D, axis=-1)),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name: str) -> None:
    formula, wanted = ACTIVATIONS[name]
    tape = check(lambda x: formula(x), {"x": X}, wanted)
    assert {tape.type_of(value).dtype for value in tape.results} == {"f32"}


def test_linear_and_gated_mlp_and_embedding() -> None:
    x, weight, bias = numbers(2, 5, 4), numbers(3, 4), numbers(3)
    check(nn.linear, {"x": x, "weight": weight, "bias": bias}, x @ weight.T + bias)
    gate, up, down = numbers(6, 4), numbers(6, 4, seed=1), numbers(4, 6)
    hidden = x @ gate.T
    wanted = (hidden * scipy.special.expit(hidden) * (x @ up.T)) @ down.T
    check(
        lambda x, gate, up, down: nn.gated_mlp(x, gate, up, down),
        {"x": x, "gate": gate, "up": up, "down": down},
        wanted,
    )
    ids = np.array([[0, 2], [1, -1]])
    check(nn.embedding, {"x": ids, "weight": weight}, weight[ids])


def reference(q, k, v, mask=None, scale=None):
    q, k, v = (each.astype("f8") for each in (q, k, v))
    if q.ndim > 2:
        k, v = (np.repeat(each, q.shape[-3] // each.shape[-3], axis=-3) for each in (k, v))
    scores = q @ k.swapaxes(-1, -2) * (scale or q.shape[-1] ** -0.5)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    return scipy.special.softmax(scores, axis=-1) @ v


def test_attention() -> None:
    q, k, v = numbers(2, 4, 5, 8), numbers(2, 4, 6, 8, seed=1), numbers(2, 4, 6, 3, seed=2)
    arrays = {"q": q, "k": k, "v": v}
    check(lambda q, k, v: nn.attention(q, k, v), arrays, reference(q, k, v))
    check(lambda q, k, v: nn.attention(q, k, v, scale=0.3), arrays, reference(q, k, v, scale=0.3))
    check(lambda q, k, v: nn.attention(q, k, v, causal=True), arrays, reference(q, k, v, np.tri(5, 6, dtype=bool)))
    seen = np.random.default_rng(0).random((2, 1, 5, 6)) < 0.7
    seen[..., 0] = True
    check(lambda q, k, v, mask: nn.attention(q, k, v, mask), {**arrays, "mask": seen}, reference(q, k, v, seen))
    added = numbers(5, 6, seed=3)
    check(lambda q, k, v, mask: nn.attention(q, k, v, mask), {**arrays, "mask": added}, reference(q, k, v, added))
    fewer = {"q": q, "k": k[:, :2], "v": v[:, :2]}
    check(lambda q, k, v: nn.attention(q, k, v), fewer, reference(q, k[:, :2], v[:, :2]))
    single = {"q": q[0, 0], "k": k[0, 0], "v": v[0, 0]}
    check(lambda q, k, v: nn.attention(q, k, v), single, reference(q[0, 0], k[0, 0], v[0, 0]))


def test_rotary_embedding_turns_pairs_and_keeps_relative_angles() -> None:
    cos, sin = nn.rotary_tables(6, 8)
    assert cos.dtype == sin.dtype == np.float32
    x = numbers(2, 6, 8)
    turned = np.zeros(x.shape)
    for place in range(6):
        for pair in range(4):
            angle = place * 10000.0 ** (-2 * pair / 8)
            a, b = x[:, place, pair], x[:, place, pair + 4]
            turned[:, place, pair] = a * math.cos(angle) - b * math.sin(angle)
            turned[:, place, pair + 4] = b * math.cos(angle) + a * math.sin(angle)
    check(nn.rotary_embedding, {"x": x, "cos": cos, "sin": sin}, turned)


def test_losses() -> None:
    logits, classes = numbers(4, 3, 5), np.array([[0, 4, 1], [2, 2, 3], [1, 0, 4], [3, 1, 2]])
    logs = scipy.special.log_softmax(logits.astype("f8"), axis=-1)
    each = -np.take_along_axis(logs, classes[..., None], -1)[..., 0]
    arrays = {"logits": logits, "target": classes}
    check(nn.cross_entropy, arrays, each.mean())
    check(lambda logits, target: nn.cross_entropy(logits, target, "sum"), arrays, each.sum())
    check(lambda logits, target: nn.cross_entropy(logits, target, "none"), arrays, each)
    along = {"logits": np.moveaxis(logits, -1, 1), "target": classes}
    check(lambda logits, target: nn.cross_entropy(logits, target, axis=1), along, each.mean())
    shares = scipy.special.softmax(numbers(4, 3, 5, seed=1), axis=-1)
    check(nn.cross_entropy, {"logits": logits, "target": shares}, -(shares * logs).sum(-1).mean())
    given = {"logs": logs, "target": classes}
    check(nn.nll_loss, given, each.mean())
    check(lambda logs, target: nn.nll_loss(logs, target, "none"), given, each)
    x, target = numbers(3, 4), numbers(3, 4, seed=1)
    check(nn.mse_loss, {"x": x, "target": target}, ((x - target) ** 2).mean())


MISFITS: dict[str, tuple[Any, str]] = {
    "gelu": (lambda x: nn.gelu(x, "exact"), "write 'none', 'tanh' or 'sigmoid'"),
    "linear": (lambda x: nn.linear(x, np.ones((2, 3), "f4")), "weight f32[2,3] does not fit f32[4,6,8]"),
    "heads": (lambda x: nn.attention(x, x[:3], x[:3]), "4 query heads do not divide into 3 key heads"),
    "widths": (lambda x: nn.attention(x, x[..., :4], x), "do not fit"),
    "hidden rows": (lambda x: nn.attention(x, x, x, hidden_rows=1), "hidden_rows is 1; write 0 or math.nan"),
    "odd rotation": (lambda x: nn.rotary_embedding(x[..., :7], x, x), "is odd"),
    "loss target": (lambda x: nn.cross_entropy(x, np.zeros((3, 6), int)), "does not fit f32[4,6,8]; it is [4, 6]"),
    "likelihood target": (lambda x: nn.nll_loss(x, np.zeros((4, 8), int)), "does not fit f32[4,6,8]; it is [4, 6]"),
    "likelihood of shares": (lambda x: nn.nll_loss(x, x), "is no class number; write cross_entropy"),
    "reduction": (lambda x: nn.mse_loss(x, x, "average"), "write 'mean', 'sum' or 'none'"),
}


@pytest.mark.parametrize("name", MISFITS)
def test_arguments_that_do_not_fit_are_told(name: str) -> None:
    formula, message = MISFITS[name]
    with pytest.raises(RecordingError) as caught:
        trace(formula, f32[4, 6, 8])
    assert message in caught.value.message


def test_the_public_names_are_the_formulas() -> None:
    for name in nn.__all__:
        assert getattr(nn, name).__module__.startswith("topos_core.nn."), name
    public = {name for name, held in vars(nn).items() if callable(held) and not name.startswith("_")}
    assert public == set(nn.__all__)
