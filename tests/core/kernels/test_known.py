"""What a kernel remembers of the layouts it met."""

import numpy as np
import pytest

import topos_core as tp
from topos_core.kernels.known import MOST, Known


def test_a_dictionary_of_layouts_stays_small_and_holds_the_last_one():
    known = Known()
    for key in range(10 * MOST):
        assert known.keep(key, -key) == -key
        assert known[key] == -key
        assert len(known) <= MOST


def chain(x):
    return np.tanh(x * 2.0) + x


def attention(x):
    scores = x @ x.swapaxes(-1, -2) * 0.25
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True) @ x


@pytest.mark.parametrize("function", [chain, attention])
def test_a_caller_whose_strides_differ_from_run_to_run_gets_right_values_and_costs_no_memory(monkeypatch, function):
    made = []
    keep = Known.keep
    monkeypatch.setattr(Known, "keep", lambda self, key, value: made.append(self) or keep(self, key, value))
    plan = tp.plan(tp.trace(tp.model(x=tp.f32[2, 24, 16])(function)), cost="always")
    assert plan.taken
    random = np.random.default_rng(0)
    for step in range(1, 3 * MOST):
        x = random.standard_normal((2, 24, 16 + step), dtype=np.float32)[:, :, :16]
        np.testing.assert_allclose(plan.run(x), function(x), rtol=2e-5, atol=1e-5)
    assert len(made) >= 3 * MOST - 1
    assert max(map(len, made)) <= MOST
