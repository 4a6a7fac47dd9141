from __future__ import annotations

import numpy as np
import pytest

from tests.core.patterns.check import check, check_not, searched

X = {"x": "f64[3,7]"}


def quotient(x):
    return x / (1 + np.exp(-x))


def product(x):
    return x * (1 / (1 + np.exp(-x)))


def power(x):
    return ((np.exp(-x) + 1) ** -1) * x


def minus_one(x):
    return x / (np.exp(x * -1) + 1)


def by_exp(x):
    e = np.exp(x)
    return x * (e / (e + 1))


def by_tanh_distributed(x):
    return x * 0.5 + x * 0.5 * np.tanh(x * 0.5)


def by_log1p(x):
    return x * np.exp(-np.log1p(np.exp(-x)))


def by_tanh(x):
    return x * (0.5 * (np.tanh(x / 2) + 1))


def reciprocal(x):
    return x * np.reciprocal(1 + np.exp(np.negative(x)))


def of_a_sum(x):
    y = x + np.tanh(x)
    return y / (1 + np.exp(-y))


def softplus_of_negative(x):
    return x * np.exp(-(np.maximum(-x, 0) + np.log1p(np.exp(-np.abs(-x)))))


def softplus(x):
    return x * np.exp(-(np.maximum(0, -x) + np.log1p(np.exp(-np.abs(x)))))


def smaller(x):
    return x * np.exp(np.minimum(0, x) - np.log1p(np.exp(-np.abs(x))))


def logaddexp(x):
    return np.exp(-np.logaddexp(0, -x)) * x


def logaddexp_commuted(x):
    return np.exp(-np.logaddexp(-x, 0.0)) * x


SIGNS = {
    "x >= 0": lambda x, positive, negative: np.where(x >= 0, positive, negative),
    "0 < x": lambda x, positive, negative: np.where(np.less(0, x), positive, negative),
    "x < 0": lambda x, positive, negative: np.where(x < 0, negative, positive),
    "x <= 0": lambda x, positive, negative: np.where(x <= 0, negative, positive),
}


@pytest.mark.parametrize("sign", SIGNS)
def test_a_sigmoid_may_be_chosen_by_the_sign_of_x_and_not_the_wrong_way_round(sign):
    choose = SIGNS[sign]

    def of_x(x, exchanged=False):
        branches = 1 / (1 + np.exp(-x)), np.exp(x) / (1 + np.exp(x))
        return x * choose(x, *(branches[::-1] if exchanged else branches))

    def of_size(x, exchanged=False):
        e = np.exp(-np.abs(x))
        return x * choose(x, *((e, 1) if exchanged else (1, e))) / (1 + e)

    for program in (of_x, of_size):
        check("silu", program, X)
        _, pool = searched(lambda x, _program=program: _program(x, exchanged=True), X)
        assert [m for m in pool.matches if m.pattern == "silu"] == []


@pytest.mark.parametrize(
    "spelling",
    [
        softplus,
        softplus_of_negative,
        smaller,
        logaddexp,
        logaddexp_commuted,
        quotient,
        product,
        power,
        minus_one,
        by_exp,
        by_tanh,
        by_tanh_distributed,
        by_log1p,
        reciprocal,
        of_a_sum,
    ],
)
def test_every_spelling_is_one_silu(spelling):
    check("silu", spelling, X)


def test_another_sign_or_factor_is_refused():
    _, pool = searched(lambda x: x / (1 + np.exp(x)), X)
    assert [m for m in pool.matches if m.pattern == "silu"] == []
    check_not("silu", lambda x: x / (1 + np.exp(-1.25 * x)), X, "constant")


def test_the_sigmoid_of_something_else_is_refused():
    _, pool = searched(lambda x: x / (1 + np.exp(-np.tanh(x))), X)
    assert [m for m in pool.matches if m.pattern == "silu"] == []
