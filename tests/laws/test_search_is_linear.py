"""Searching costs the same per op, however long the tape: calls are counted, not seconds."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from topos_core import nn
from topos_core.matching.catalog import patterns
from topos_core.matching.search import search
from topos_core.recording.trace import trace


def residual_blocks(n: int) -> Any:
    def function(x, w, v, m, s):
        for _ in range(n):
            y = nn.convolution(x, w, padding=1)
            y = np.maximum((y - m[:, None, None]) / np.sqrt(s[:, None, None] + 1e-5), 0)
            x = np.maximum(x + nn.convolution(y, v, padding=1), 0)
        return nn.max_pool(x, 2)

    kernel = "f32[4,4,3,3]"
    return trace(function, x="f32[1,4,8,8]", w=kernel, v=kernel, m="f32[4]", s="f32[4]")


def attention_blocks(n: int) -> Any:
    def function(x, wq, wk, wv, wo, w1, w2):
        for _ in range(n):
            q, k, v = ((x @ w).reshape(2, 8, 4, 4).swapaxes(1, 2) for w in (wq, wk, wv))
            s = q @ k.swapaxes(-1, -2) * 0.5
            e = np.exp(s - s.max(-1, keepdims=True))
            p = e / e.sum(-1, keepdims=True)
            x = x + (p @ v).swapaxes(1, 2).reshape(2, 8, 16) @ wo
            x = x + np.maximum(x @ w1, 0) @ w2
        return x

    square = "f32[16,16]"
    return trace(
        function, x="f32[2,8,16]", wq=square, wk=square, wv=square, wo=square, w1="f32[16,64]", w2="f32[64,16]"
    )


def long_sum(n: int) -> Any:
    def function(x):
        total = 0
        for k in range(n):
            total = total + x[:, k % 7 : k % 7 + 5]
        return total

    return trace(function, x="f32[2,12]")


def sum_of_unlike_terms(n: int) -> Any:
    def function(x, y):
        total = x
        for k in range(n):
            total = total + (y * float(k) if k % 3 else x[:, ::-1])
        return total

    return trace(function, x="f32[2,12]", y="f32[2,12]")


def residual_stream(n: int) -> Any:
    def function(x):
        for _ in range(n):
            x = x + np.tanh(x)
        return x

    return trace(function, x="f32[2,12]")


def long_movement(n: int) -> Any:
    def function(x, w):
        for k in range(n):
            x = x.reshape(4, 6) if k % 3 == 0 else x.reshape(2, 12)[:, ::-1] if k % 3 == 1 else x.T.reshape(3, 8)
        return x.reshape(2, 12) @ w

    return trace(function, x="f32[3,8]", w="f32[12,2]")


def taps(n: int) -> Any:
    def function(x, w):
        return [
            sum(np.einsum("bcl,oc->bol", x[:, :, i : i + 6], w[:, :, i]) for i in range(3)) + float(k) for k in range(n)
        ]

    return trace(function, x="f32[2,3,8]", w="f32[4,3,3]")


PROGRAMS = [
    residual_blocks, attention_blocks, long_sum, sum_of_unlike_terms, residual_stream, long_movement, taps,
]  # fmt: skip


def calls_per_op(tape: Any, chosen: Any) -> float:
    """Counts Python calls of a search, per op."""
    count = 0

    def profile(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event == "call"

    search(tape, chosen, repeats=False)  # whatever is cached for good is cached now
    sys.setprofile(profile)
    try:
        search(tape, chosen, repeats=False)
    finally:
        sys.setprofile(None)
    return count / len(tape.ops)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_four_times_the_ops_cost_four_times_the_calls(program):
    chosen = tuple(patterns().values())
    small, large = (calls_per_op(program(n), chosen) for n in (24, 96))
    assert large <= 1.15 * small, f"{small:.0f} calls per op, then {large:.0f}"


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_every_pattern_is_tried_once_per_op_at_most(program):
    tape = program(8)
    pool = search(tape, patterns().values())
    assert pool.attempts <= len(tape.ops) * len(patterns())


def test_extents_cost_nothing():
    def block(x, w):
        u = np.lib.stride_tricks.sliding_window_view(np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))), (3, 3), axis=(2, 3))
        y = np.maximum(np.einsum("bchwij,ocij->bohw", u, w), 0)
        return y.reshape(*y.shape[:2], y.shape[2] // 2, 2, y.shape[3] // 2, 2).max(axis=(3, 5))

    chosen = tuple(patterns().values())
    small = trace(block, x="f32[2,4,8,8]", w="f32[4,4,3,3]")
    large = trace(block, x="f32[256,64,512,512]", w="f32[128,64,3,3]")
    assert len(small.ops) == len(large.ops)
    search(small, chosen)  # what is made once for all programs is made
    assert calls_per_op(small, chosen) == pytest.approx(calls_per_op(large, chosen), rel=0.05)
