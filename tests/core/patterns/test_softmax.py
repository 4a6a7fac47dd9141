from __future__ import annotations

import numpy as np
import pytest

from tests.core.patterns.check import check, check_not, searched

X = {"x": "f64[4,6]"}


def shifted(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def axes_not_kept(x):
    e = np.exp(x - x.max(1)[:, None])
    return e * (1 / e.sum(1))[:, None]


def first_axis(x):
    e = np.exp(x - x.max(0))
    return e / e.sum(0)


def unshifted(x):
    return np.exp(x) / np.exp(x).sum(1, keepdims=True)


def transposed(x):
    y = x.T
    e = np.exp(y - y.max(1, keepdims=True))
    return (e / e.sum(1, keepdims=True)).T


def turned_and_power(x):
    z = np.exp(-(x.max(1, keepdims=True) - x))
    return (z.sum(1, keepdims=True) ** -1) * z


def temperature(x):
    y = x / 0.7
    e = np.exp(y - y.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def sum_by_ones(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / (e @ np.ones((6, 1)))


def of_the_negative(x):
    y = -x
    e = np.exp(y - y.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def negative_by_least(x):
    e = np.exp(x.min(-1, keepdims=True) - x)
    return e / e.sum(-1, keepdims=True)


def shifted_by_another_maximum(x):
    e = np.exp(x - x.max(0))
    return e / e.sum(0)


def of_a_sum(x):
    y = x + np.tanh(x)
    e = np.exp(y - y.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@pytest.mark.parametrize(
    "spelling",
    [
        shifted, axes_not_kept, first_axis, unshifted, transposed, turned_and_power, temperature, sum_by_ones,
        of_the_negative, negative_by_least, shifted_by_another_maximum, of_a_sum,
    ],
)  # fmt: skip
def test_every_spelling_is_one_softmax(spelling):
    check("softmax", spelling, X)


def test_several_axes_are_one():
    def flat(x):
        y = x.reshape(6, 20)
        e = np.exp(y - y.max(1, keepdims=True))
        return (e / e.sum(1, keepdims=True)).reshape(2, 3, 4, 5)

    def axes(x):
        e = np.exp(x - x.max((2, 3), keepdims=True))
        return e / e.sum((2, 3), keepdims=True)

    for spelling in (flat, axes):
        match = check("softmax", spelling, {"x": "f64[2,3,4,5]"})
        assert match.facts.extents == {"k": 6, "n": 20}


def test_a_shift_by_something_foreign_is_a_softmax_of_what_is_shifted():
    def foreign(x, y):
        e = np.exp(x - y.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)

    check("softmax", foreign, {"x": "f64[4,6]", "y": "f64[4,6]"})


def sum_over_another_axis(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(0)


def something_added_to_the_sum(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / (e.sum(-1, keepdims=True) + 1e-6)


def half_precision_sum(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True).astype("f4").astype("f8")


@pytest.mark.parametrize("program", [something_added_to_the_sum, half_precision_sum])
def test_look_alikes_are_refused(program):
    _, pool = searched(program, {"x": "f64[6,6]"})
    assert [m for m in pool.matches if m.pattern == "softmax"] == []


def test_a_sum_over_the_other_axis_is_a_softmax_over_that_axis():
    match = check("softmax", sum_over_another_axis, {"x": "f64[6,6]"})
    assert match.facts.layouts["x"].roles == ("n", "k")


def test_base_two_is_no_log_softmax():
    def base_two(x):
        s = x - x.max(-1, keepdims=True)
        return s - np.log2(np.exp(s).sum(-1, keepdims=True))

    check_not("log_softmax", base_two, X, "constant")
