"""Runs: where a tape repeats itself, and what is no repetition."""

from __future__ import annotations

import numpy as np
import pytest

from topos_core.matching.repeats import rows, runs
from topos_core.recording.trace import trace

SPECS = {"x": "f32[4,8]", "w": "f32[8,8]", "b": "f32[8]"}


def repeated(block, count, specs=SPECS):
    def program(**given):
        x = given["x"]
        for k in range(count):
            x = block(x, given, k)
        return x

    tape = trace(program, **specs)
    return tape, runs(rows(tape))


def layer(x, given, k):
    return x + np.tanh(x @ given["w"] + given["b"])


def test_layers_of_a_loop_are_one_run():
    tape, (run,) = repeated(layer, 20)
    period = (len(tape.ops) - len(SPECS)) // 20
    assert run.period == period
    assert run.end - run.start >= 18 * period


def test_the_shortest_period_is_told():
    _, (run,) = repeated(lambda x, given, k: np.tanh(x) * 2.0, 40)
    assert run.period == 3


@pytest.mark.parametrize(
    "odd",
    [
        lambda x, given, k: np.tanh(x) * (3.0 if k == 10 else 2.0) @ given["w"] + given["b"],
        lambda x, given, k: np.tanh(x) * (0.0 if k == 10 else -0.0) @ given["w"] + given["b"],
        lambda x, given, k: (np.tanh(x) * 2.0 @ given["w"] + given["b"])[:: 1 if k != 10 else -1],
    ],
    ids=["constant", "sign of zero", "movement"],
)
def test_one_op_that_differs_ends_a_run(odd):
    _, found = repeated(odd, 20)
    assert len(found) == 2
    assert all(run.end - run.start < 11 * run.period for run in found)


def test_a_pad_of_negative_zeros_is_none_of_zeros():
    def block(x, given, k):
        return np.pad(np.tanh(x), ((0, 0), (0, 1)), constant_values=-0.0 if k == 10 else 0.0)[:, 1:] @ given["w"]

    _, found = repeated(block, 20)
    assert len(found) == 2


def test_a_result_is_no_value_that_is_shown():
    def program(x, w):
        shown = []
        for k in range(20):
            x = np.tanh(x @ w)
            if k == 10:
                shown.append(x)  # a result is observed as well, so this is watched as often as what is printed twice
            else:
                format(x), format(x)
            x = np.exp(x) * 2.0
        return x, shown

    found = runs(rows(trace(program, x="f32[4,8]", w="f32[8,8]")))
    assert len(found) == 2


def test_every_layer_may_have_weights_of_its_own():
    def block(x, given, k):
        return x + np.tanh(x @ given[f"w{k}"] * given["b"])

    _, found = repeated(block, 20, {**SPECS, **{f"w{k}": "f32[8,8]" for k in range(20)}})
    assert max(found, key=lambda run: run.period).end > 3 + 20 + 18 * 5


def test_a_network_without_repeats_has_no_run():
    def block(x, given, k):
        return x * float(k + 2) + np.tanh(x * float(k + 100))

    assert repeated(block, 30)[1] == []
