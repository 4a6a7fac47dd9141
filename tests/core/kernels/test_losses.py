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


@pytest.mark.parametrize("norm", [nn.layer_norm, nn.rms_norm])
@pytest.mark.parametrize("width", [2, 15, 17, 40, 9000])
def test_add_norm_normalises_the_sum_before_it_was_rounded(norm, width):
    random = np.random.default_rng(0)
    x = (random.standard_normal((5, width)) * 0.1 + (1e4 if norm is nn.layer_norm else 0)).astype(np.float32)
    y = random.standard_normal((5, width)).astype(np.float32)
    tape = tp.trace(lambda x, y: norm(x + y), f"f32[5,{width}]", f"f32[5,{width}]")
    plan = tp.plan(tape, cost="always")
    assert [d.match.pattern for d in plan.taken] == ["add_norm"]
    (exact,) = interpret(widened(tape), [x.astype(np.float64), y.astype(np.float64)])
    close(plan.run(x, y), exact, "f32")


def test_add_norm_over_a_leading_axis_and_what_is_not_finite():
    def program(x, y):
        total = x + y
        centred = total - total.mean(1, keepdims=True)
        return centred / np.sqrt((centred * centred).mean(1, keepdims=True) + 1e-5), total

    random = np.random.default_rng(0)
    x, y = (random.standard_normal((3, 7, 5)).astype(np.float32) for _ in range(2))
    x[0, 2, 1], y[1, 3, 3], x[2, 6, 0], y[2, 6, 0] = np.nan, np.inf, 3e38, 3e38
    plan = tp.plan(tp.trace(program, "f32[3,7,5]", "f32[3,7,5]"), cost="always")
    assert "add_norm" in [d.match.pattern for d in plan.taken]
    with np.errstate(all="ignore"):
        got, recorded = plan.run(x, y), program(x, y)
    np.testing.assert_array_equal(got[1], recorded[1])
    np.testing.assert_array_equal(np.isnan(got[0]), np.isnan(recorded[0]))
    np.testing.assert_allclose(got[0], recorded[0], rtol=0, atol=1e-5)
