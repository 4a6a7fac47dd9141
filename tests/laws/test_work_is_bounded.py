"""A search does a bounded amount of work per op on whatever tape: templates tried, functions compared, values walked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.laws.test_search_is_linear import calls_per_op
from topos_core.matching.catalog import patterns
from topos_core.matching.search import search
from topos_core.recording.trace import trace
from topos_core.tape.tape import Tape

TRIES, COMPARED, WALKED, CALLS = 7, 28, 10, 1300
"""Per op, at most; of all programs here the dearest takes half of it."""

GROWTH = 1.1
"""What four times the ops may take per op, times what a quarter of them takes."""


def wide(n: int) -> Tape:
    """One value that n ops read."""
    return trace(lambda x: [np.tanh(x) * (k % 7 + 1.5) for k in range(n)], x="f32[8,8]")


def siblings(n: int) -> Tape:
    """n norms of one value."""

    def program(x: Any, s: Any) -> Any:
        return [x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * s * (k + 1.0) for k in range(n)]

    return trace(program, x="f32[8,8]", s="f32[8]")


def products_of_one(n: int) -> Tape:
    """n products that share an operand."""

    def program(x: Any, **w: Any) -> Any:
        return [x @ w[f"w{k}"] for k in range(n)]

    return trace(program, x="f32[8,8]", **{f"w{k}": "f32[8,8]" for k in range(n)})


def chain(n: int) -> Tape:
    """n unary ops, one after the other."""

    def program(x: Any) -> Any:
        for k in range(n):
            x = (np.exp, np.tanh, np.sin, np.abs)[k % 4](x)
        return x

    return trace(program, x="f32[8,8]")


def powers(n: int) -> Tape:
    """Products of products, each operand read twice."""

    def program(x: Any) -> Any:
        for _ in range(n):
            x = x * np.tanh(x)
        return x

    return trace(program, x="f32[8,8]")


def ladder(n: int) -> Tape:
    """A residual stream."""

    def program(x: Any, w: Any) -> Any:
        for k in range(n):
            x = x + np.maximum(x @ w, 0) * (k % 3 + 1.0)
        return x

    return trace(program, x="f32[8,8]", w="f32[8,8]")


def long_sum(n: int) -> Tape:
    """One sum of n terms."""

    def program(x: Any) -> Any:
        total: Any = 0
        for k in range(n):
            total = total + np.tanh(x * (k + 1.0))
        return total

    return trace(program, x="f32[8,8]")


def shared_numbers(n: int) -> Tape:
    """n quotients by one computed number, among constants that all of them share."""

    def program(x: Any) -> Any:
        below = x.mean(-1, keepdims=True) + 1e-5
        return [(x + (k % 13 + 1.0)) * 2.0 / below for k in range(n)]

    return trace(program, x="f32[8,8]")


def epsilon_of_the_stream(n: int) -> Tape:
    """Norms whose epsilon is a number computed from everything before: no walk may go on behind it."""

    def program(x: Any, s: Any) -> Any:
        epsilon: Any = 1e-5
        for _ in range(n):
            before, d = x, x - x.mean(-1, keepdims=True)
            x = d / np.sqrt((d * d).mean(-1, keepdims=True) + epsilon) * s
            epsilon = (before * before).mean()
        return x

    return trace(program, x="f32[8,8]", s="f32[8]")


def effort(tape: Tape) -> list[float]:
    """Gives tries, comparisons, walked values and Python calls per op, where every op is searched."""
    chosen = tuple(patterns().values())
    took = search(tape, chosen, repeats=False).effort
    return [*(count / len(tape.ops) for count in (took.tries, took.compared, took.walked)), calls_per_op(tape, chosen)]


@pytest.mark.parametrize(
    ("program", "least"),
    [
        (wide, 1250), (siblings, 40), (products_of_one, 100), (chain, 2500), (powers, 150), (ladder, 60), (long_sum, 150),
        (shared_numbers, 150), (epsilon_of_the_stream, 30),
    ],
)  # fmt: skip
def test_four_times_the_ops_take_four_times_the_work_at_most(program, least):
    small, large = effort(program(least)), effort(program(4 * least))
    for less, more, limit in zip(small, large, (TRIES, COMPARED, WALKED, CALLS), strict=True):
        assert more <= GROWTH * less + 0.1
        assert more <= limit


def test_extents_are_no_work():
    def program(x: Any, w: Any, s: Any) -> Any:
        d = x - x.mean(-1, keepdims=True)
        y = d / np.sqrt((d * d).mean(-1, keepdims=True) + 1e-5) * s
        powers_of = np.exp(y @ w - (y @ w).max(-1, keepdims=True))
        return powers_of / powers_of.sum(-1, keepdims=True)

    small = search(trace(program, x="f32[4,6]", w="f32[6,6]", s="f32[6]"), patterns().values())
    large = search(trace(program, x="f32[40000,600]", w="f32[600,600]", s="f32[600]"), patterns().values())
    assert small.effort == large.effort
