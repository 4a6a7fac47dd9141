from __future__ import annotations

import numpy as np
import pytest

from tests.core.patterns.check import check, check_not, searched
from topos_core import nn

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


def log_softmax(x):
    s = x - x.max(-1, keepdims=True)
    return s - np.log(np.exp(s).sum(-1, keepdims=True))


def log_of_sum(x):
    m = x.max(-1, keepdims=True)
    return np.log(np.exp(x - m).sum(-1, keepdims=True)) + m


@pytest.mark.parametrize(
    "spelling",
    [
        lambda x: np.exp(log_softmax(x)),
        lambda x: np.exp(x - log_of_sum(x)),
        lambda x: np.exp(x - np.log(np.exp(x).sum(-1, keepdims=True))),
        lambda x: np.exp(nn.log_softmax(x, -1)),
        lambda x: np.exp(log_softmax(x.T / 3.0)),
    ],
)
def test_powers_of_a_logarithm_of_softmax_are_softmax(spelling):
    check("softmax", spelling, {"x": "f64[4,6]"})


@pytest.mark.parametrize(
    "program",
    [
        lambda x: np.exp(2.0 * log_softmax(x)),
        lambda x: np.expm1(log_softmax(x)),
        lambda x: np.exp(x - np.log(np.exp(2.0 * x).sum(-1, keepdims=True))),
        lambda x: np.exp(x - np.log(np.exp(x).sum(-1, keepdims=True)) + 1.0),
    ],
)
def test_other_powers_are_none(program):
    tape, pool = searched(program, {"x": "f64[4,4]"})
    assert [m for m in pool.matches if m.pattern == "softmax" and m.root == tape.results[0]] == []


def test_steps_that_leave_the_range_of_a_dtype_are_kept_outside():
    def vanishing(x):
        y = x * np.float32(1e-30) * np.float32(1e-30) * np.float32(1e30) * np.float32(1e30)
        e = np.exp(y - y.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)

    def overflowing(x):
        e = np.exp(x * np.float32(1e30) * np.float32(1e30) * np.float32(1e-30) * np.float32(1e-30))
        return e / e.sum(-1, keepdims=True)

    for program in (vanishing, overflowing):  # what is computed is what is compared
        tape, pool = searched(program, {"x": "f32[4,6]"})
        (found,) = [m for m in pool.matches if m.pattern == "softmax"]
        assert tape.ops[found.bindings["x"]].name == "mul"
        check("softmax", program, {"x": "f32[4,6]"})


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
