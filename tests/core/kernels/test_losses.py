import numpy as np
import pytest

import topos_core as tp
from tests.core.kernels.check import close
from topos_core import nn
from topos_core.run.interpreter import interpret
from topos_core.run.widened import widen_array, widened


def check(function, pattern, arrays, specs, bound=None, threads=1):
    tape = tp.trace(function, *specs)
    plan = tp.plan(tape, cost="always")
    assert pattern in [d.match.pattern for d in plan.taken]
    expected = interpret(widened(tape), [widen_array(array) for array in arrays])
    close(np.asarray(plan.run(*arrays, threads=threads)), expected[0], "f32", bound)


def mse(x, target):
    return ((x - target) ** 2).mean()


@pytest.mark.parametrize("count", [2, 17, 8191, 8192, 8193, 100_000])
@pytest.mark.parametrize("threads", [1, 3])
def test_mean_squared_error(count, threads):
    random = np.random.default_rng(0)
    arrays = [random.standard_normal(count).astype(np.float32) for _ in range(2)]
    check(mse, "mse_loss", arrays, [f"f32[{count}]"] * 2, threads=threads)


def test_mean_squared_error_of_values_in_different_orders():
    random = np.random.default_rng(0)
    arrays = [random.standard_normal(shape).astype(np.float32) for shape in ((6, 40), (40, 6))]
    check(lambda x, target: ((x - target.T) ** 2).sum(), "mse_loss", arrays, ["f32[6,40]", "f32[40,6]"])


@pytest.mark.parametrize("classes", [2, 10, 1000])
@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
def test_cross_entropy_by_class(classes, reduction):
    random = np.random.default_rng(0)
    logits = random.standard_normal((9, classes)).astype(np.float32) * 5
    target = random.integers(0, classes, 9)
    check(
        lambda x, t: nn.cross_entropy(x, t, reduction=reduction), "cross_entropy", [logits, target],
        [f"f32[9,{classes}]", f"i64[9]<{classes}"],
    )  # fmt: skip


def test_cross_entropy_by_probability_with_large_logits():
    random = np.random.default_rng(0)
    logits = (random.standard_normal((7, 30)) + 1e4).astype(np.float32)
    weights = random.random((7, 30)).astype(np.float32)

    def program(x, target):
        shifted = x - x.max(-1, keepdims=True)
        logs = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
        return -(target * logs).sum(-1)

    check(program, "cross_entropy", [logits, weights], ["f32[7,30]", "f32[7,30]"])


def test_add_norm_writes_the_sum_back():
    def program(x, y, scale, shift):
        total = x + y
        tp.observe(total, "total")
        return nn.layer_norm(total, scale, shift)

    specs = ["f32[5,40]", "f32[5,40]", "f32[40]", "f32[40]"]
    plan = tp.plan(tp.trace(program, *specs), cost="always")
    assert [d.match.pattern for d in plan.taken] == ["add_norm"]
    random = np.random.default_rng(0)
    x, y = (random.standard_normal((5, 40)).astype(np.float32) for _ in range(2))
    scale, shift = (random.standard_normal(40).astype(np.float32) for _ in range(2))
    result, observed = plan.run(x, y, scale, shift, observed=True)
    np.testing.assert_array_equal(observed["total"], x + y)
    wide = (x + y).astype(np.float64)
    normal = (wide - wide.mean(-1, keepdims=True)) / np.sqrt(wide.var(-1, keepdims=True) + 1e-5)
    close(result, normal * scale + shift, "f32", 8.0)
