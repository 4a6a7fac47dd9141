"""What joins layers joins what belongs to the same positions, though extents agree for others too."""

from __future__ import annotations

import numpy as np
import pytest

from tests.core.patterns.check import check, check_not

SQUARE = {"x": "f64[6,6]", "g": "f64[6,6]", "u": "f64[6,6]", "d": "f64[6,6]"}
CUBE = SQUARE | {"x": "f64[6,6,6]"}


def silu(a):
    return a / (1 + np.exp(-a))


GATED = {
    "rows": lambda x, g, u, d: (silu(x @ g) * (x @ u)) @ d,
    "columns reversed": lambda x, g, u, d: (silu(x @ g) * (x @ u)[:, ::-1]) @ d,
    "everything turned": lambda x, g, u, d: (silu(x @ g).T * (x @ u).T).T @ d,
    "sums along another axis of both": lambda x, g, u, d: silu(x.T @ g) * (x.T @ u),
}
UNGATED = {
    "rows reversed": lambda x, g, u, d: (silu(x @ g) * (x @ u)[::-1]) @ d,
    "turned": lambda x, g, u, d: (silu(x @ g) * (x @ u).T) @ d,
    "x turned": lambda x, g, u, d: (silu(x @ g) * (x.T @ u)) @ d,
    "half of the rows": lambda x, g, u, d: silu((x @ g)[:3]) * (x @ g)[3:],
    "every other row": lambda x, g, u, d: silu((x @ g)[::2]) * (x @ g)[1::2],
}


@pytest.mark.parametrize("program", GATED.values(), ids=GATED)
def test_a_gate_and_what_it_gates_are_of_the_same_positions(program):
    check("gated_mlp", program, SQUARE)


@pytest.mark.parametrize("program", UNGATED.values(), ids=UNGATED)
def test_a_gate_of_other_positions_is_none(program):
    check_not("gated_mlp", program, SQUARE, None)


def test_a_gate_that_sums_along_another_axis_is_none():
    def program(x, g, u, d):
        return silu(np.einsum("abc,cd->abd", x, g)) * np.einsum("abc,bd->acd", x, u)

    check_not("gated_mlp", program, CUBE, None)


X, W = "f64[4,4,8]", "f64[8,8]"
SPECS = {"x": X, "wq": W, "wk": W, "wv": W, "wo": W}


def softmax(s):
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def split(y):
    return y.reshape(y.shape[0], y.shape[1], 2, 4).transpose(0, 2, 1, 3)


def merge(y):
    return y.transpose(0, 2, 1, 3).reshape(y.shape[0], y.shape[2], 8)


def seen(q, k, v):
    return softmax(q @ k.swapaxes(-1, -2) / 2) @ v


def block(x, wq, wk, wv, wo, *, keys=lambda k: k, values=lambda v: v, back=merge):
    q, k, v = (split(x @ w) for w in (wq, wk, wv))
    return back(seen(q, keys(k), values(v))) @ wo


def some_keys(x, wq, wk, wv, wo):
    return block(x, wq, wk, wv, wo, keys=lambda k: k[:, :, ::2], values=lambda v: v[:, :, ::2])


def last_query(x, wq, wk, wv, wo):
    q, k, v = split((x @ wq)[:, -1:]), split(x @ wk), split(x @ wv)
    return merge(seen(q, k, v)) @ wo


def heads_by_columns(x, wq, wk, wv, wo):
    q, k, v = ((x @ w).reshape(4, 4, 4, 2).transpose(0, 3, 1, 2) for w in (wq, wk, wv))
    return merge(seen(q, k, v)) @ wo


def turned_result(x, wq, wk, wv, wo):
    q, k, v = (split(x @ w) for w in (wq, wk, wv))
    return seen(q, k, v).transpose(2, 0, 1, 3).reshape(4, 4, 8) @ wo


@pytest.mark.parametrize("program", [block, some_keys, last_query, heads_by_columns, turned_result])
def test_keys_and_values_of_the_same_positions_are_one_block(program):
    check("multi_head_attention", program, SPECS)


def values_reversed(x, wq, wk, wv, wo):
    return block(x, wq, wk, wv, wo, values=lambda v: v[:, :, ::-1])


def sequences_reversed(x, wq, wk, wv, wo):
    return block(x, wq, wk, wv, wo, keys=lambda k: k[::-1], values=lambda v: v[::-1])


def sequences_turned(x, wq, wk, wv, wo):
    q, k, v = split(x @ wq), split((x @ wk).swapaxes(0, 1)), split((x @ wv).swapaxes(0, 1))
    return merge(seen(q, k, v)) @ wo


def merged_unmoved(x, wq, wk, wv, wo):
    """The classical slip: the heads go into the features without being moved behind the positions."""
    return block(x, wq, wk, wv, wo, back=lambda y: y.reshape(4, 4, 8))


OTHER = [values_reversed, sequences_reversed, sequences_turned, merged_unmoved]


@pytest.mark.parametrize("program", OTHER)
def test_other_positions_are_no_block(program):
    check_not("multi_head_attention", program, SPECS, None)
