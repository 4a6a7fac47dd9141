"""Large results are stored past the caches: with the bits that small ones have."""

import numpy as np
import pytest

import topos_core as tp
from topos_core import nn
from topos_core.kernels import launch

PLANES, ROWS, LINE = (4, 3, 41, 163), (301, 269), (80_123,)
"""Sizes whose results come from the pool, on a cache line, with rows that end within one."""
f32 = np.float32


def batch_norm(x):
    mean = x.mean((0, 2, 3), keepdims=True)
    variance = ((x - mean) ** 2).mean((0, 2, 3), keepdims=True)
    return (x - mean) / np.sqrt(variance + np.float32(1e-5))


def summed(norm, mean=0.0):
    def program(x):
        y = x + (x[::-1] + f32(mean))
        return y, norm(y)

    return program


PROGRAMS = {
    "gelu": (nn.gelu, LINE), "gelu by tanh": (lambda x: nn.gelu(x, "tanh"), LINE),
    "chain": (lambda x: np.tanh(x * np.float32(0.3)) + x, LINE), "softmax": (nn.softmax, ROWS),
    "rows of whole lines": (nn.softmax, (301, 272)), "layer norm": (nn.layer_norm, ROWS), "batch norm": (batch_norm, PLANES),
    "layer norm of columns": (lambda x: nn.layer_norm(x, axis=0), ROWS), "root mean square norm": (nn.rms_norm, ROWS),
    "log softmax": (lambda x: nn.log_softmax(x), ROWS), "short rows": (lambda x: nn.rms_norm(x), (9001, 7)),
    "group norm": (lambda x: nn.group_norm(x.reshape(4, 6, 41, -1), 3), (4, 3, 82, 81)),
    "instance norm": (nn.instance_norm, PLANES),
    "sum and layer norm": (summed(nn.layer_norm), ROWS), "sum and root mean square norm": (summed(nn.rms_norm), ROWS),
    "sum far from zero": (summed(nn.layer_norm, 3e4), ROWS),
    "batch norm of rows": (lambda x: (x - x.mean(0)) / np.sqrt(((x - x.mean(0)) ** 2).mean(0) + 1), ROWS),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_streamed_results_have_the_same_bits(name, monkeypatch):
    function, shape = PROGRAMS[name]
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    x.flat[::1009] = np.inf if name.startswith(("gelu", "chain")) else 3.0
    plan = tp.plan(tp.trace(function, tp.f32[shape]), cost="always")
    assert plan.taken
    assert not name.startswith("sum") or "add_norm" in {each.match.pattern for each in plan.taken}
    expected = plan.run(x, threads=1)
    monkeypatch.setattr(launch, "STREAMED_BYTES", 1)
    again = tp.plan(tp.trace(function, tp.f32[shape]), cost="always")
    for threads in (1, 2):
        got = again.run(x, threads=threads)
        for one, other in zip(*map(arrays, (got, expected)), strict=True):
            np.testing.assert_array_equal(one, other)


def arrays(given):
    return given if isinstance(given, tuple) else (given,)
