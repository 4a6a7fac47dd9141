"""A triangle hides later keys only where it lies along rows and keys: not over groups, turned scores, batches or heads."""

from __future__ import annotations

import numpy as np
import pytest

import topos_core as tp
from topos_core import nn


def grouped(q, k, v):
    return nn.attention(q, k, v, causal=True)


def _softmax(scores, axis):
    powers = np.exp(scores - scores.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


def turned(q, k, v):
    seen = np.tri(q.shape[0], dtype=bool)
    return _softmax(np.where(seen, k @ q.T * 0.25, -np.inf), -2).T @ v


def turned_added(q, k, v):
    hidden = np.where(np.tri(q.shape[0], dtype=bool), 0, -np.inf).astype(np.float32)
    return _softmax(k @ q.T * 0.25 + hidden, -2).T @ v


def over_batches(q, k, v):
    scores = np.einsum("bid,bjd->ibj", q, k)
    return np.einsum("ibj,bjd->ibd", _softmax(np.where(np.tri(8, dtype=bool), scores, -np.inf), -1), v)


@pytest.mark.parametrize(
    ("program", "query", "key"),
    [
        (grouped, (1, 4, 8, 16), (1, 2, 8, 16)),
        (grouped, (1, 4, 1, 16), (1, 2, 8, 16)),
        (grouped, (1, 8, 40, 64), (1, 1, 40, 64)),
        (grouped, (1, 4, 8, 16), (1, 4, 8, 16)),
        (grouped, (1, 2, 1, 16), (1, 2, 8, 16)),
        (turned, (8, 16), (8, 16)),
        (turned_added, (16, 16), (16, 16)),
        (turned_added, (64, 16), (64, 16)),
        (over_batches, (8, 8, 16), (8, 8, 16)),
    ],
)
def test_a_triangle_that_lies_otherwise_is_read_as_it_is(program, query, key) -> None:
    tape = tp.trace(tp.model(q=tp.f32[query], k=tp.f32[key], v=tp.f32[key])(program))
    generator = np.random.default_rng(0)
    given = [generator.standard_normal(shape).astype(np.float32) for shape in (query, key, key)]
    plan = tp.plan(tape, consumer="home", cost="always")
    [decision] = [one for one in plan.data.decisions if one.match.pattern == "attention"]
    assert decision.verdict == "taken"
    lies = program is grouped and query[1] == key[1]  # one axis of positions meets one of keys
    assert decision.match.facts.options["causal"] == ("yes" if lies else "no")
    recorded = tp.plan(tape, consumer="home", fidelity="exact").run(*given)
    np.testing.assert_allclose(plan.run(*given), recorded, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("keys", [2, 9])
def test_a_table_in_front_of_one_query_is_read_along_keys(keys) -> None:
    def program(q, k, v):
        hidden = np.zeros((keys, 1), bool)  # of `[keys, queries]`: a triangle by its own axes, nothing hidden
        return _softmax(np.where(hidden, -np.inf, k @ q.T * 0.25), 0).T @ v

    shapes = [(1, 16), (keys, 16), (keys, 16)]
    tape = tp.trace(program, *(f"f32[{rows},{width}]" for rows, width in shapes))
    generator = np.random.default_rng(0)
    given = [generator.standard_normal(shape).astype(np.float32) for shape in shapes]
    plan = tp.plan(tape, consumer="home", cost="always")
    [decision] = [one for one in plan.data.decisions if one.match.pattern == "attention"]
    assert (decision.verdict, decision.match.facts.options["causal"]) == ("taken", "no")
    recorded = tp.plan(tape, consumer="home", fidelity="exact").run(*given)
    np.testing.assert_allclose(plan.run(*given), recorded, rtol=1e-5, atol=1e-5)
