"""Large results are stored past the caches: with the bits that small ones have."""

import numpy as np
import pytest

import topos_core as tp
from topos_core import nn
from topos_core.kernels import launch

PLANES, ROWS, LINE = (4, 3, 41, 163), (301, 269), (80_123,)
"""Sizes whose results come from the pool, on a cache line, with rows that end within one."""


def batch_norm(x):
    mean = x.mean((0, 2, 3), keepdims=True)
    variance = ((x - mean) ** 2).mean((0, 2, 3), keepdims=True)
    return (x - mean) / np.sqrt(variance + np.float32(1e-5))


PROGRAMS = {
    "gelu": (nn.gelu, LINE), "gelu by tanh": (lambda x: nn.gelu(x, "tanh"), LINE),
    "chain": (lambda x: np.tanh(x * np.float32(0.3)) + x, LINE), "softmax": (nn.softmax, ROWS),
    "rows of whole lines": (nn.softmax, (301, 272)), "layer norm": (nn.layer_norm, ROWS), "batch norm": (batch_norm, PLANES),
    "batch norm of rows": (lambda x: (x - x.mean(0)) / np.sqrt(((x - x.mean(0)) ** 2).mean(0) + 1), ROWS),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_streamed_results_have_the_same_bits(name, monkeypatch):
    function, shape = PROGRAMS[name]
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    x.flat[::1009] = np.inf if name.startswith(("gelu", "chain")) else 3.0
    plan = tp.plan(tp.trace(function, tp.f32[shape]), cost="always")
    assert plan.taken
    expected = plan.run(x, threads=1)
    monkeypatch.setattr(launch, "STREAMED_BYTES", 1)
    again = tp.plan(tp.trace(function, tp.f32[shape]), cost="always")
    for threads in (1, 2):
        np.testing.assert_array_equal(again.run(x, threads=threads), expected)
