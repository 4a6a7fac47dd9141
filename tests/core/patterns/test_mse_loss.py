from __future__ import annotations

import numpy as np
import pytest

from tests.core.patterns.check import check, check_not, searched

AB = {"a": "f64[4,5]", "b": "f64[4,5]"}


def of_sizes(a, b):
    return np.mean(np.abs(a - b) ** 2)


def power(a, b):
    return ((a - b) ** 2).mean()


def product(a, b):
    d = b - a
    return (d * d).mean()


def twice(a, b):
    return ((a - b) * (a - b)).sum() / 20


def flat(a, b):
    d = (a - b).reshape(20)
    return (d * d).sum() * 0.05


def nested(a, b):
    return ((a - b) ** 2).mean(1).mean(0)


def einsum(a, b):
    d = a - b
    return np.einsum("ij,ij->", d, d) / 20


def dot(a, b):
    d = (a - b).reshape(1, 20)
    return ((d @ d.T) / 20).reshape(1)


def of_activations(a, b):
    return np.mean(np.square(np.tanh(a) - b))


@pytest.mark.parametrize("spelling", [power, product, twice, flat, nested, einsum, dot, of_sizes, of_activations])
def test_every_spelling_is_one_loss(spelling):
    match = check("mse_loss", spelling, AB)
    assert match.facts.options == {"reduction": "mean"}
    assert match.facts.extents == {"n": 20}


def test_a_sum_is_a_loss_too():
    assert check("mse_loss", lambda a, b: ((a - b) ** 2).sum(), AB).facts.options == {"reduction": "sum"}


def test_a_broadcast_target_is_refused_and_told():
    check_not("mse_loss", power, {"a": "f64[5,5]", "b": "f64[5]"}, "axis")


def test_a_loss_per_row_is_none():
    _, pool = searched(lambda a, b: ((a - b) ** 2).mean(1), AB)
    assert [m for m in (*pool.matches, *pool.near_misses) if m.pattern == "mse_loss"] == []


def test_a_variance_is_no_loss():
    _, pool = searched(lambda a, b: np.var(a) + b.sum(), AB)
    assert [m for m in (*pool.matches, *pool.near_misses) if m.pattern == "mse_loss"] == []
