"""Threads: how many a run takes by itself, and that their number changes no bit."""

import numpy as np
import pytest

import topos_core as tp
from tests.core.matching.check import inputs_of
from topos_core import nn
from topos_core.errors import ToposError
from topos_core.matching.catalog import patterns
from topos_core.run import executor
from topos_core.run.program import BLAS_FLOPS

WEIGHT = np.random.default_rng(0).standard_normal((48, 32, 3, 3)).astype(np.float32)


def check(function, specs):
    """Runs a program on one, two and four threads, fast and exact."""
    for fidelity in ("fast", "exact"):
        tape = tp.trace(function, **specs)
        plan = tp.plan(tape, cost="always", fidelity=fidelity).data
        program = executor.make_program(plan)
        given = inputs_of(tape, 0)
        first, *others = (executor.execute(program, plan, given, threads) for threads in (1, 2, 4))
        for other in others:
            for value, array in first.items():
                assert other[value].tobytes() == array.tobytes(), (fidelity, str(tape.ops[value].type))


LARGE = {
    "mean squared error": (lambda x, y: ((x - y) ** 2).mean(), {"x": "f32[300000]", "y": "f32[300000]"}),
    "batch norm over planes": (
        lambda x: (x - x.mean((0, 2, 3), keepdims=True)) / np.sqrt(x.var((0, 2, 3), keepdims=True) + 1e-5),
        {"x": "f32[16,8,40,40]"},
    ),
    "batch norm over rows": (
        lambda x: (x - x.mean(0)) / np.sqrt(((x - x.mean(0)) ** 2).mean(0) + 1e-5), {"x": "f32[3000,70]"},
    ),
    "convolution by tiles": (lambda x: nn.relu(nn.conv2d(x, WEIGHT, padding=1)), {"x": "f32[3,32,40,40]"}),
    "direct convolution": (lambda x, w: nn.conv2d(x, w, padding=1), {"x": "f32[3,32,40,40]", "w": "f32[48,32,3,3]"}),
    "linear": (lambda x, w, b: nn.gelu(x @ w + b), {"x": "f32[130,300]", "w": "f32[300,170]", "b": "f32[170]"}),
    "attention": (
        lambda q, k, v: nn.attention(q, k, v, causal=True), dict.fromkeys(("q", "k", "v"), "f32[2,3,150,40]"),
    ),
    "softmax": (lambda x: nn.softmax(x), {"x": "f32[600,300]"}),
    "pool": (lambda x: nn.avg_pool(x, 3, stride=2, padding=1), {"x": "f32[8,16,61,53]"}),
    "cross entropy": (lambda x, t: nn.cross_entropy(x, t), {"x": "f32[700,300]", "t": "i64[700]<300"}),
}  # fmt: skip


@pytest.mark.parametrize("name", LARGE)
def test_the_number_of_threads_changes_no_bit(name):
    check(*LARGE[name])


@pytest.mark.conformance
@pytest.mark.parametrize("pattern", sorted(patterns()))
def test_the_number_of_threads_changes_no_bit_of_any_example(pattern):
    for example in patterns()[pattern].examples:
        try:
            check(example.function, example.specs)
        except ToposError:
            continue  # an example of a framework that is not here


@pytest.mark.parametrize(("running", "expected"), [(0, 4), (1, 3), (3, 1), (9, 1)])
def test_a_run_leaves_processors_alone_that_others_use(monkeypatch, running, expected):
    monkeypatch.setattr(executor, "processors", lambda: 4)
    monkeypatch.setattr(executor, "running_elsewhere", lambda: running)
    assert executor._FreeProcessors()() == expected


def test_the_run_queue_is_read_once_in_a_while(monkeypatch):
    seen = []
    monkeypatch.setattr(executor, "running_elsewhere", lambda: seen.append(1) or 0)
    count = executor._FreeProcessors()
    assert len({count() for _ in range(1000)}) == 1
    assert len(seen) == 1


def test_a_system_without_a_run_queue_has_nobody_else(monkeypatch, tmp_path):
    monkeypatch.setattr(executor, "RUN_QUEUE", str(tmp_path / "none"))
    assert executor.running_elsewhere() == 0
    (tmp_path / "odd").write_text("0.1 0.2")
    monkeypatch.setattr(executor, "RUN_QUEUE", str(tmp_path / "odd"))
    assert executor.running_elsewhere() == 0
    (tmp_path / "queue").write_text("0.10 0.20 0.30 5/321 4711\n")
    monkeypatch.setattr(executor, "RUN_QUEUE", str(tmp_path / "queue"))
    assert executor.running_elsewhere() == 4


def spreads(function, specs, **request):
    return executor.make_program(tp.plan(tp.trace(function, **specs), **request).data).spreads


def test_a_small_recorded_product_leaves_the_processors_to_the_kernels():
    weight = np.ones((64, 8), np.float32)
    specs = {"x": "f32[1,64,64,64]"}

    def network(x):
        return nn.relu(nn.softmax(x)).mean((2, 3)) @ weight

    assert not spreads(network, specs, off=("matmul", "linear"))
    every = sorted(patterns())
    assert spreads(network, specs, off=every)


def test_a_large_recorded_product_has_all_threads():
    rows = BLAS_FLOPS // (2 * 1024 * 1024)
    off = ("matmul", "linear", "linear_bias_activation")
    for extent, threads in ((rows, True), (rows - 1, False)):
        specs = {"x": f"f32[{extent},1024]", "w": "f32[1024,1024]"}
        assert spreads(lambda x, w: nn.softmax(x) @ w, specs, off=off) is threads
