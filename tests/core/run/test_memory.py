"""What a run allocates is what its plan tells: within a tenth and 1 MiB, everything counted that NumPy asks the system for."""

import tracemalloc

import numpy as np
import pytest

import topos_core as tp
from topos_core import nn
from topos_core.run.executor import execute, make_program

RANDOM = np.random.default_rng(0)
SLACK = 1 << 20


def drawn(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32) * np.float32(0.05)


SQUARE, STEM, DEEP, POINT = drawn(64, 64, 3, 3), drawn(64, 3, 7, 7), drawn(64, 1, 3, 3), drawn(64, 64, 1, 1)
LAYER, BIAS, SCALE, UP, DOWN = drawn(512, 768), drawn(768), drawn(512), drawn(512, 1024), drawn(1024, 512)
IMAGE = (4, 64, 112, 112)


def batch_norm(x):
    return (x - x.mean((0, 2, 3), keepdims=True)) / np.sqrt(x.var((0, 2, 3), keepdims=True) + 1e-5)


PROGRAMS = {
    "convolution by tiles": (lambda x: nn.relu(nn.conv2d(x, SQUARE, padding=1)), [IMAGE]),
    "convolution with stride": (lambda x: nn.relu(nn.conv2d(x, SQUARE, padding=1, stride=2)), [IMAGE]),
    "stem": (lambda x: nn.relu(nn.conv2d(x, STEM, padding=3, stride=2)), [(4, 3, 224, 224)]),
    "depthwise and pointwise": (
        lambda x: nn.conv2d(nn.relu(nn.conv2d(x, DEEP, padding=1, groups=64)), POINT), [IMAGE],
    ),
    "pool": (lambda x: nn.max_pool(x, 3, stride=2, padding=1), [IMAGE]),
    "linear and gelu": (lambda x: nn.gelu(x @ LAYER + BIAS), [(2048, 512)]),
    "two linear layers": (lambda x: nn.relu(nn.relu(x @ UP) @ DOWN), [(2048, 512)]),
    "gated": (lambda x: (nn.silu(x @ UP) * (x @ UP)) @ DOWN, [(2048, 512)]),
    "softmax": (lambda x: nn.softmax(x), [(2048, 1024)]),
    "layer norm": (lambda x: nn.layer_norm(x, SCALE, SCALE), [(4096, 512)]),
    "attention": (lambda q, k, v: nn.attention(q, k, v), [(8, 8, 512, 64)] * 3),
    "batch norm": (batch_norm, [(8, 64, 56, 56)]),
    "chain": (lambda x: np.tanh(x * 2 + 1) * x, [(4_000_000,)]),
    "mean squared error": (lambda x, y: ((x - y) ** 2).mean(), [(4_000_000,)] * 2),
}  # fmt: skip


@pytest.mark.parametrize("fidelity", ["fast", "exact"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_run_allocates_what_its_plan_tells(name, fidelity):
    function, shapes = PROGRAMS[name]
    tape = tp.trace(function, *(tp.f32[shape] for shape in shapes))
    plan = tp.plan(tape, cost="always", fidelity=fidelity).data
    program, inputs = make_program(plan), [drawn(*shape) for shape in shapes]
    execute(program, plan, inputs, 1)  # what is imported, compiled and cut once
    program.pool.free.clear()
    tracemalloc.start()
    try:
        kept = execute(program, plan, inputs, 1)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    told = max(plan.liveness.peak_bytes, plan.arena.bytes + plan.arena.outside)
    assert abs(peak - told) <= 0.1 * told + SLACK, (told >> 10, peak >> 10)
    del kept
    program.pool.free.clear()
    tracemalloc.start()
    try:
        execute(program, plan, inputs, 1)
        execute(program, plan, inputs, 1)
        asked, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert asked <= plan.arena.bytes + plan.arena.outside + SLACK  # the second run takes the first one's memory
