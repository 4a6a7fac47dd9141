from __future__ import annotations

import numpy as np
import pytest

from tests.core.patterns.check import check, searched
from topos_core.recording.elementary import logsumexp

X = {"x": "f64[4,6]"}


def shifted(x):
    s = x - x.max(-1, keepdims=True)
    return s - np.log(np.exp(s).sum(-1, keepdims=True))


def maximum_added_back(x):
    m = x.max(1)
    return x - (np.log(np.exp(x - m[:, None]).sum(1)) + m)[:, None]


def unshifted(x):
    return x - np.log(np.exp(x).sum(1, keepdims=True))


def of_softmax(x):
    e = np.exp(x - x.max(1, keepdims=True))
    return np.log(e / e.sum(1, keepdims=True))


def of_unshifted_softmax(x):
    e = np.exp(x)
    return np.log(e * (1 / e.sum(1))[:, None])


def turned(x):
    m = x.max(1, keepdims=True)
    return -(np.log(np.exp(x - m).sum(1, keepdims=True)) - (x - m))


def first_axis(x):
    s = x - x.max(0)
    return s - np.log(np.exp(s).sum(0))


def if_finite(x):
    m = np.max(x, 1, keepdims=True)
    m = np.where(np.isfinite(m), m, 0)
    return x - (np.log(np.abs(np.exp(x - m).sum(1, keepdims=True))) + m)


def test_a_logit_less_the_logarithm_of_all_is_no_near_miss():
    def program(x, t):
        s = x - x.max(1, keepdims=True)
        return np.log(np.exp(s).sum(1)) - np.take_along_axis(s, t[:, None], 1)[:, 0]

    _, pool = searched(program, {"x": "f64[4,6]", "t": "i64[4]<6"})
    assert pool.near_misses == ()


def by_logsumexp(x):
    return x - logsumexp(x, 1, keepdims=True)


def by_logsumexp_of_a_temperature(x):
    y = 2.0 * x
    return y - logsumexp(y, 1, keepdims=True)


def transposed(x):
    y = x.T
    s = y - y.max(0)
    return (s - np.log(np.exp(s).sum(0))).T


@pytest.mark.parametrize(
    "spelling",
    [
        shifted, maximum_added_back, unshifted, of_softmax, of_unshifted_softmax, turned, first_axis, if_finite, by_logsumexp,
        by_logsumexp_of_a_temperature, transposed,
    ],
)  # fmt: skip
def test_every_spelling_is_one_log_softmax(spelling):
    check("log_softmax", spelling, X)
