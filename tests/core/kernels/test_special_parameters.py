"""Scales, shifts and statistics that are infinite, NaN, zero, too large or too small to be folded: results are as recorded."""

from __future__ import annotations

import numpy as np
import pytest

import topos_core as tp
from tests.core.kernels.special_parameters import CHANNELS, VALUES, agrees, drawn, normed, placed, vectors
from topos_core import nn
from topos_core.kernels.convolution.factors import fold, stages
from topos_core.kernels.folding import is_usual, stand, stands
from topos_core.kernels.watching import watching

NAMES = ("mean", "variance", "scale", "shift", "bias")
IMAGE = (2, 16, 13, 11)


def weights(random, *shape):
    return drawn(random, *shape, scale=0.2)


def run_time(function, given):
    """Gives a program whose vectors are inputs, and their arrays."""
    return lambda *arrays: function(*arrays[: -len(given)], dict(zip(given, arrays[-len(given) :], strict=True))), list(
        given.values()
    )


def compare(function, x, given, pattern, dtype="f32", known=False, axis=1, **request):
    if known:
        constants = {name: vector.astype(tp_dtype(dtype)) for name, vector in given.items()}
        agrees(lambda x: function(x, constants), [x], dtype, pattern, axis, **request)
        return
    program, arrays = run_time(function, given)
    agrees(program, [x, *arrays], dtype, pattern, axis, **request)


def tp_dtype(dtype):
    from topos_core.tape.type import numpy_dtype

    return numpy_dtype(dtype)


def convolution(random, dtype, **options):
    weight = weights(random, CHANNELS, 16, 3, 3).astype(tp_dtype(dtype))
    return lambda x, given: nn.conv2d(x, weight, given["bias"], **options)


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("known", [False, True])
def test_a_convolution_with_a_batch_norm(known, name, value):
    random = np.random.default_rng(0)
    convolve, given = convolution(random, "f32", padding=1), placed(vectors(random), name, value)
    x = drawn(random, *IMAGE)
    compare(lambda x, given: normed(convolve(x, given), given), x, given, "conv_bn_activation", known=known)
    compare(
        lambda x, given: nn.relu(normed(convolve(x, given), given)), x, given, "conv_bn_activation", known=known,
        off=("winograd",),
    )  # fmt: skip


@pytest.mark.parametrize("dtype", ["f64", "f16", "bf16"])
@pytest.mark.parametrize("value", [np.inf, np.nan, 0.0, 3e38])
@pytest.mark.parametrize("name", ["variance", "scale", "shift"])
def test_other_floats(dtype, value, name):
    random = np.random.default_rng(1)
    value = {"f64": 1e308, "f16": 6e4}.get(dtype, value) if value == 3e38 else value
    convolve, given = convolution(random, dtype, stride=2), placed(vectors(random), name, value)
    compare(
        lambda x, given: nn.gelu(normed(convolve(x, given), given)),
        drawn(random, *IMAGE),
        given,
        "conv_bn_activation",
        dtype,
    )


@pytest.mark.parametrize("steps", ["div", "mul", "mul mul", "div add mul", "add div sub"])
@pytest.mark.parametrize("value", [0.0, np.inf, 1e-45, 3e38, 1e-30])
@pytest.mark.parametrize("everywhere", [False, True])
def test_a_convolution_and_steps(steps, value, everywhere):
    random = np.random.default_rng(2)
    given = {f"step{k}": np.abs(drawn(random, CHANNELS)) + 0.5 for k in range(3)}
    convolve = convolution(random, "f32", padding=1)
    given["bias"] = drawn(random, CHANNELS)
    for k, step in enumerate(steps.split()):
        if step in ("mul", "div"):
            given = placed(given, f"step{k}", value, everywhere)
    operations = {
        "add": lambda a, b: a + b,
        "sub": lambda a, b: a - b,
        "mul": lambda a, b: a * b,
        "div": lambda a, b: a / b,
    }

    def program(x, given):
        y = convolve(x, given)
        for k, step in enumerate(steps.split()):
            y = operations[step](y, given[f"step{k}"][:, None, None])
        return y

    used = {name: vector for name, vector in given.items() if name == "bias" or int(name[4:]) < len(steps.split())}
    compare(program, drawn(random, *IMAGE), used, "conv_bn_activation")
    compare(program, drawn(random, *IMAGE), used, "conv_bn_activation", known=True, off=("winograd",))


@pytest.mark.parametrize("activation", [nn.relu, nn.silu, nn.gelu, np.tanh, lambda x: np.clip(x, 0, 6)])
@pytest.mark.parametrize("last", [False, True])
def test_residuals_and_activations_follow_the_steps(activation, last):
    random = np.random.default_rng(3)
    weight, given = weights(random, CHANNELS, 16, 3, 3).astype("f"), placed(vectors(random), "scale", np.inf)

    def program(x, residual, given):
        y = normed(nn.conv2d(x, weight, given["bias"], padding=1), given)
        return activation(y) + residual if last else activation(y + residual)

    made, arrays = run_time(program, given)
    agrees(made, [drawn(random, *IMAGE), drawn(random, 2, CHANNELS, 13, 11), *arrays], "f32", "conv_bn_activation")


def test_channels_last_and_a_transposed_convolution():
    random = np.random.default_rng(4)
    given = placed(vectors(random), "scale", np.inf)
    weight = weights(random, CHANNELS, 16, 3, 3).astype("f")

    def last(x, given):
        y = nn.conv2d(x.transpose(0, 3, 1, 2), weight, given["bias"], padding=1).transpose(0, 2, 3, 1)
        return nn.silu(normed(y, given, channels_last=True))

    compare(last, drawn(random, 2, 13, 11, 16), given, "conv_bn_activation", axis=-1)
    halves = weights(random, 32, CHANNELS, 2, 2).astype("f")
    compare(
        lambda x, given: normed(nn.conv_transpose2d(x, halves, stride=2), given), drawn(random, 2, 32, 30, 34),
        {name: vector for name, vector in given.items() if name != "bias"}, "conv_bn_activation",
    )  # fmt: skip
    grouped = weights(random, CHANNELS, 4, 3, 3).astype("f")
    compare(
        lambda x, given: normed(nn.conv2d(x, grouped, given["bias"], groups=4), given), drawn(random, *IMAGE), given,
        "conv_bn_activation",
    )  # fmt: skip


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("name", ["mean", "variance", "scale", "shift"])
@pytest.mark.parametrize("side", ["depthwise", "pointwise"])
def test_a_depthwise_and_a_pointwise_convolution(side, name, value):
    random = np.random.default_rng(5)
    deep, point = weights(random, CHANNELS, 1, 3, 3).astype("f"), weights(random, CHANNELS, CHANNELS, 1, 1).astype("f")
    given = placed(vectors(random), name, value)
    given.pop("bias")
    x = drawn(random, 2, CHANNELS, 9, 20)

    def program(x, given):
        y = nn.conv2d(x, deep, padding=1, groups=CHANNELS)
        y = nn.relu(normed(y, given) if side == "depthwise" else y)
        z = nn.conv2d(y, point)
        return nn.silu(normed(z, given)) if side == "pointwise" else z

    compare(program, x, given, "depthwise_pointwise")


@pytest.mark.parametrize("options", [{"stride": 2, "padding": 1}, {"padding": 2, "dilation": 2}])
def test_both_sides_of_a_pair_take_steps(options):
    random = np.random.default_rng(6)
    deep, point = weights(random, CHANNELS, 1, 3, 3).astype("f"), weights(random, CHANNELS, CHANNELS, 1, 1).astype("f")
    first, second = (np.where(np.arange(CHANNELS) == k, np.inf, 2.0).astype("f")[:, None, None] for k in (2, 5))

    def program(x, residual):
        y = nn.silu(nn.conv2d(x, deep, groups=CHANNELS, **options) / (1 / first))
        return nn.relu(nn.conv2d(y, point) * second + residual)

    x = drawn(random, 2, CHANNELS, 9, 20)
    shape = tp.trace(lambda x: nn.conv2d(x, deep, groups=CHANNELS, **options), tp.f32[x.shape])
    residual = drawn(random, *shape.ops[shape.results[0]].type.shape)
    agrees(program, [x, residual], "f32", "depthwise_pointwise")


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("name", ["mean", "variance", "scale", "shift"])
@pytest.mark.parametrize("shape", [(2, CHANNELS, 13, 11), (50, CHANNELS), (3, CHANNELS, 4)], ids=str)
def test_a_batch_norm_of_given_statistics(shape, name, value):
    random = np.random.default_rng(7)
    given = placed(vectors(random), name, value)
    given.pop("bias")
    compare(normed, drawn(random, *shape), given, "batch_norm_inference")


NORMS = {
    "batch_norm_training": lambda x, given: nn.batch_norm_training(x, given["scale"], given["shift"])[0],
    "group_norm": lambda x, given: nn.group_norm(x, 4, given["scale"], given["shift"]),
    "instance_norm": lambda x, given: nn.instance_norm(x, given["scale"], given["shift"]),
}


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("name", ["scale", "shift"])
@pytest.mark.parametrize("spread", [1.0, 1e-3])
@pytest.mark.parametrize("norm", NORMS)
def test_a_norm_of_its_own_statistics(norm, spread, name, value):
    random = np.random.default_rng(8)
    given = placed(vectors(random), name, value)
    given = {key: given[key] for key in ("scale", "shift")}
    for shape in ((2, CHANNELS, 13, 11), (3, CHANNELS, 4), (50, CHANNELS)):
        if len(shape) > 2 or norm == "batch_norm_training":
            compare(NORMS[norm], drawn(random, *shape, scale=spread) + 3, given, norm)


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("name", ["scale", "shift"])
def test_norms_of_rows(name, value):
    random = np.random.default_rng(9)
    given = placed(vectors(random), name, value)
    given = {key: given[key] for key in ("scale", "shift")}
    weight = weights(random, 24, CHANNELS).astype("f")
    x = drawn(random, 50, CHANNELS)
    compare(lambda x, given: nn.layer_norm(x, given["scale"], given["shift"]), x, given, "layer_norm")
    compare(
        lambda x, given: nn.linear(nn.layer_norm(x, given["scale"], given["shift"]), weight),
        x,
        given,
        "layer_norm_linear",
    )
    compare(lambda x, given: nn.layer_norm(x + x[::-1], given["scale"], given["shift"]), x, given, "add_norm")
    if name == "scale":
        compare(lambda x, given: nn.rms_norm(x, given["scale"]), x, {"scale": given["scale"]}, "rms_norm")


@pytest.mark.parametrize("small", [1e-36, 1e-38, 3e-39])
def test_tiles_keep_the_digits_of_small_weights(small):
    random = np.random.default_rng(10)
    weight = (drawn(random, CHANNELS, 32, 3, 3) * small).astype("f")
    with watching() as seen:
        agrees(lambda x: nn.conv2d(x, weight, padding=1), [drawn(random, 2, 32, 20, 20) * 1e33], "f32", "convolution")
    assert "winograd" in {start.name for start in seen.started}


def test_ordinary_factors_take_no_steps():
    random = np.random.default_rng(11)
    given = {name: vector.astype("f") for name, vector in vectors(random).items()}
    convolve = convolution(random, "f32", padding=1)
    program, _ = run_time(lambda x, given: normed(convolve(x, given), given), given)
    (taken,) = tp.plan(tp.trace(program, tp.f32[IMAGE], *[tp.f32[CHANNELS]] * 5), cost="always").taken
    match = taken.match
    bindings = {name: given[name.removeprefix("bn_")] for name in match.bindings if name not in ("x", "kernel")}
    assert fold(bindings, match.facts, np.dtype("f")).steps is None
    infinite = fold({**bindings, "bn_scale": np.full(CHANNELS, np.inf, "f")}, match.facts, np.dtype("f"))
    assert [step for step, _ in infinite.steps] == ["add", "sub", "div", "mul", "add"]
    assert (infinite.scale == 1).all()
    assert not infinite.shift.any()


def test_a_factor_stands_for_its_parts_where_it_keeps_their_digits():
    no = lambda: np.zeros(2, bool)  # noqa: E731
    usual = np.array([1.0, 1e-40])
    assert stands(usual, usual.astype("f"), no)
    tiny = np.array([1e-40, 3e-41])
    assert not stands(tiny, tiny.astype("f"), no)
    assert stands(tiny.astype("f").astype("d"), tiny.astype("f"), no)
    assert stands(np.zeros(2), np.zeros(2, "f"), lambda: np.ones(2, bool))
    assert not stands(np.zeros(2), np.zeros(2, "f"), no)
    for factor in (np.inf, np.nan, 1e39):
        with np.errstate(over="ignore"):
            assert not stands(np.array([1.0, factor]), np.array([1.0, factor]).astype("f"), no)
    edge = np.float32(np.finfo("f").max * np.finfo("f").eps)
    for shift, fits in (
        (-edge, True),
        (np.nextafter(edge, np.float32(np.inf)), False),
        (np.inf, False),
        (np.nan, False),
    ):
        both = np.array([[1.0, 2.0], [1.0, shift]], "f")
        assert stand(both.astype("d"), both, no) == fits
    least = np.finfo("f").tiny
    assert is_usual(np.array([least], "f"))
    assert not is_usual(np.array([np.nextafter(least, np.float32(0))], "f"))


def test_steps_are_grouped_as_a_sum_a_product_and_a_quotient():
    one = np.array([2.0, 3.0], "f")
    made = stages([("add", one), ("div", one), ("mul", one), ("sub", one)], 2, np.dtype("f"))
    assert made.shape == (2, 3, 3)
    x = np.array([5.0, 7.0], "f")
    got = x
    for time in range(3):
        got = (got + made[:, time, 0]) * made[:, time, 1] / made[:, time, 2]
    np.testing.assert_array_equal(got, (x + one) / one * one - one)
    assert np.signbit(made[0, 1, 0])
