from __future__ import annotations

import numpy as np
import pytest

from tests.core.patterns.check import check, named, searched
from topos_core import nn

X = {"x": "f64[2,6,4,5]", "g": "f64[6]", "b": "f64[6]"}


def by_nn(x, g, b):
    return nn.instance_norm(x, g, b)


def by_hand(x, g, b):
    d = x - x.mean((2, 3), keepdims=True)
    return d / np.sqrt((d * d).mean((2, 3), keepdims=True) + 1e-5) * g[:, None, None] + b[:, None, None]


def flat(x, g, b):
    y = x.reshape(2, 6, 20)
    y = (y - y.mean(2, keepdims=True)) * (y.var(2, keepdims=True) + 1e-5) ** -0.5
    return (y * g[:, None] + b[:, None]).reshape(x.shape)


def channels_last(x, g, b):
    y = x.transpose(0, 2, 3, 1)
    d = y - y.mean((1, 2), keepdims=True)
    return (g * d / np.sqrt((d * d).mean((1, 2), keepdims=True) + 1e-5) + b).transpose(0, 3, 1, 2)


def centred_first(x, g, b):
    y = x - x.mean((2, 3), keepdims=True)
    return y / np.sqrt(y.var((2, 3), keepdims=True) + 1e-5) * g[:, None, None] + b[:, None, None]


@pytest.mark.parametrize("spelling", [by_nn, by_hand, flat, channels_last, centred_first])
def test_every_spelling_is_one_instance_norm(spelling):
    match = check("instance_norm", spelling, X)
    assert match.facts.extents == {"n": 2, "c": 6, "s": 20}


def test_without_vectors_it_is_a_layer_norm():
    _, pool = searched(lambda x: nn.instance_norm(x), {"x": "f64[2,6,4,5]"})
    assert named(pool) == {"layer_norm"}


def test_statistics_over_the_batch_too_are_a_batch_norm():
    def norm(x, g, b):
        return nn.batch_norm_training(x, g, b)[0]

    for batch in (1, 3):
        _, pool = searched(norm, {**X, "x": f"f64[{batch},6,4,5]"})
        assert {m.pattern for m in pool.matches if len(m.bindings) == 3} == {"batch_norm_training"}
