from __future__ import annotations

import numpy as np
import pytest

from tests.core.patterns.check import check, named, searched
from topos_core import nn
from topos_core.matching.order import LAST

X = {"x": "f64[2,6,4,5]", "g": "f64[6]", "b": "f64[6]"}


def _affine(y, g, b):
    return y * g[:, None, None] + b[:, None, None]


def by_nn(x, g, b):
    return nn.group_norm(x, 3, g, b)


def flat(x, g, b):
    y = x.reshape(2, 3, -1)
    d = y - y.mean(-1, keepdims=True)
    return _affine((d / np.sqrt((d * d).mean(-1, keepdims=True) + 1e-5)).reshape(x.shape), g, b)


def axes(x, g, b):
    y = x.reshape(2, 3, 2, 4, 5)
    y = (y - y.mean((2, 3, 4), keepdims=True)) * (y.var((2, 3, 4), keepdims=True) + 1e-5) ** -0.5
    return _affine(y.reshape(x.shape), g, b)


def affine_on_groups(x, g, b):
    y = x.reshape(2, 3, 2, 20)
    y = (y - y.mean((2, 3), keepdims=True)) / np.sqrt(y.var((2, 3), keepdims=True) + 1e-5)
    return (y * g.reshape(3, 2, 1) + b.reshape(3, 2, 1)).reshape(x.shape)


def centred_first(x, g, b):
    y = x.reshape(2, 3, -1)
    y = y - y.mean(-1, keepdims=True)
    return (y / np.sqrt(y.var(-1, keepdims=True) + 1e-5)).reshape(x.shape) * g[:, None, None] + b[:, None, None]


@pytest.mark.parametrize("spelling", [by_nn, flat, axes, affine_on_groups, centred_first])
def test_every_spelling_is_one_group_norm(spelling):
    match = check("group_norm", spelling, X)
    assert match.facts.extents == {"n": 2, "g": 3, "c": 2, "s": 20}


def test_one_group_per_channel_is_an_instance_norm():
    _, pool = searched(lambda x, g, b: nn.group_norm(x, 6, g, b), X)
    assert {m.pattern for m in pool.matches if len(m.bindings) == 3} - LAST == {"instance_norm"}


def test_a_layer_norm_is_no_group_norm():
    _, pool = searched(lambda x, g, b: nn.layer_norm(x, g, b), {"x": "f64[4,5,6]", "g": "f64[6]", "b": "f64[6]"})
    assert named(pool) == {"layer_norm"}


def test_a_batch_norm_is_no_group_norm():
    def norm(x, g, b):
        return nn.batch_norm_training(x, g, b)[0]

    _, pool = searched(norm, X)
    assert {m.pattern for m in pool.matches if len(m.bindings) == 3} == {"batch_norm_training"}
