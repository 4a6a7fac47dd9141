"""Attention whose queries, keys or values are scaled first and read by somebody else too: an input that is observed blocks nothing."""

from __future__ import annotations

import numpy as np
import pytest

import topos_core as tp
from tests.core.patterns.check import agrees, searched
from topos_core.plan.decision import Decision

SHAPE = "f32[2,3,128,32]"
SCALE = 32**-0.25


def attention(q, k, v):
    scores = q @ k.swapaxes(-1, -2)
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True) @ v


def observed(q, k, v):
    q = q * 0.125
    tp.observe(q, "scaled")
    return attention(q, k, v)


def returned(q, k, v):
    q = q * 0.125
    return attention(q, k, v), q


def keys_kept(q, k, v):
    k = k * 0.125
    return attention(q, k, v), k


def read(q, k, v):
    q = q * 0.125
    return attention(q, k, v), np.tanh(q)


def shared(q, k, v):
    q = q * 0.125
    return attention(q, k, v), attention(q, v, k)


def one_of_two(q, k, v):
    q, k = q * SCALE, k * SCALE
    tp.observe(k, "scaled")
    return attention(q, k, v)


def masked(q, k, v):
    q = q * 0.125
    tp.observe(q, "scaled")
    scores = q @ k.swapaxes(-1, -2) + np.tri(128, dtype=np.float32)
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True) @ v


def of_one_value(q):
    scaled = q * 0.125
    tp.observe(scaled, "scaled")
    return attention(scaled, q, q)


def of_one_scaled_value(q):
    scaled = q * SCALE
    return attention(scaled, scaled, scaled)


def _decided(plan) -> list[Decision]:
    return [one for one in plan.data.decisions if one.match.pattern == "attention"]


@pytest.mark.parametrize(
    "program",
    [observed, returned, keys_kept, read, shared, one_of_two, masked, of_one_value, of_one_scaled_value],
    ids=lambda program: program.__name__,
)
def test_a_scaled_input_that_somebody_else_reads_is_bound_as_it_is_scaled(program):
    names = program.__code__.co_varnames[: program.__code__.co_argcount]
    tape, pool = searched(program, dict.fromkeys(names, SHAPE))
    for match in pool.matches:
        if match.pattern == "attention":
            agrees(tape, match)
    plan = tp.plan(tape, machine="reference")
    found = _decided(plan)
    assert found
    assert [one.verdict for one in found] == ["taken"] * len(found)
    for one in found:
        assert any(tape.ops[value].name == "mul" for value in one.match.bindings.values())
        assert one.match.facts.constants["scale"] == pytest.approx(1.0)
    assert not plan.data.near_misses


def test_what_nobody_else_reads_stays_inside_until_somebody_asks_for_it():
    def program(q, k, v):
        return attention(q * 0.125, k, v)

    tape, _ = searched(program, dict.fromkeys("qkv", SHAPE))
    plan = tp.plan(tape, machine="reference")
    (found,) = _decided(plan)
    assert found.match.bindings["q"] == tape.inputs[0]
    scaled = next(value for value, op in enumerate(tape.ops) if op.name == "mul")
    (asked,) = _decided(plan.what_if(observe=[scaled]))
    assert (asked.verdict, asked.match.bindings["q"]) == ("taken", scaled)


def test_scores_that_are_observed_block_it_either_way():
    def program(q, k, v):
        q = q * 0.125
        tp.observe(q, "scaled")
        scores = q @ k.swapaxes(-1, -2)
        tp.observe(scores, "scores")
        powers = np.exp(scores - scores.max(-1, keepdims=True))
        return powers / powers.sum(-1, keepdims=True) @ v

    tape, _ = searched(program, dict.fromkeys("qkv", SHAPE))
    (found,) = _decided(tp.plan(tape, machine="reference"))
    assert (found.verdict, found.code) == ("blocked", "TP101")


def test_a_switched_off_one_stays_off():
    tape, _ = searched(observed, dict.fromkeys("qkv", SHAPE))
    plan = tp.plan(tape, machine="reference", off=["attention"])
    (found,) = _decided(plan)
    assert (found.verdict, found.code) == ("declined", "TP208")


def test_the_attention_of_a_block_runs_where_its_scaled_queries_are_observed():
    def split(y):
        return y.reshape(2, 128, 4, 64).transpose(0, 2, 1, 3)

    def program(x, wq, wk, wv, wo):
        q, k, v = (split(x @ w) for w in (wq, wk, wv))
        q = q * 0.125
        tp.observe(q, "scaled")
        return attention(q, k, v).transpose(0, 2, 1, 3).reshape(2, 128, 256) @ wo

    weights = dict.fromkeys(("wq", "wk", "wv", "wo"), "f32[256,256]")
    tape, _ = searched(program, {"x": "f32[2,128,256]", **weights})
    assert [one.verdict for one in _decided(tp.plan(tape, machine="reference"))] == ["taken"]
