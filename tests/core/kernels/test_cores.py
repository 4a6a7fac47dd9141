import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import topos_core as tp
from tests.core.kernels.check import close
from topos_core import nn
from topos_core.kernels.host import host
from topos_core.run.interpreter import interpret
from topos_core.run.widened import widened
from topos_core.tape.type import numpy_dtype

LANES = host().lanes("f32")


def check(function, pattern, *shapes, dtype="f32", bound=None, values=None, threads=1):
    """Traces a function of arrays, runs the pattern's match at its result, and compares with float64."""
    tape = tp.trace(function, *(f"{dtype}[{','.join(map(str, shape))}]" for shape in shapes))
    plan = tp.plan(tape, cost="always")
    assert [d.match.pattern for d in plan.taken].count(pattern) == 1
    random = np.random.default_rng(0)
    arrays = [random.standard_normal(shape).astype(numpy_dtype(dtype)) for shape in shapes]
    if values is not None:
        arrays[0][...] = values
    (exact,) = interpret(widened(tape), [array.astype(np.float64) for array in arrays])
    got = plan.run(*arrays, threads=threads)
    close(got, exact, dtype, bound)


WIDTHS = (1, 2, LANES - 1, LANES, LANES + 1, 4 * LANES - 1, 4 * LANES, 4 * LANES + 1, 8193)


@pytest.mark.parametrize("width", WIDTHS[1:])
def test_softmax_rows(width):
    check(lambda x: nn.softmax(x), "softmax", (3, width), bound=1.0)
    check(lambda x: nn.log_softmax(x), "log_softmax", (3, width))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 20), min_size=2, max_size=4), st.data())
def test_softmax_along_any_axis(shape, data):
    axis = data.draw(st.integers(0, len(shape) - 1))
    if shape[axis] > 1 and np.prod(shape) > shape[axis]:
        check(lambda x: nn.softmax(x, axis=axis), "softmax", tuple(shape), bound=1.0)
        check(lambda x: nn.log_softmax(x, axis=axis), "log_softmax", tuple(shape))


@pytest.mark.parametrize("inner", [7, 8, 9, 255, 256, 257])
def test_softmax_along_columns(inner):
    check(lambda x: nn.softmax(x, axis=1), "softmax", (2, 5, inner), bound=1.0)


@pytest.mark.parametrize("dtype", ["f64", "f16", "bf16"])
def test_softmax_of_other_floats(dtype):
    check(lambda x: nn.softmax(x), "softmax", (5, 37), dtype=dtype, bound=1.0)


def test_softmax_of_masked_and_unmasked_rows():
    x = np.zeros((6, 40), np.float32)
    x[0] = -np.inf  # nothing is left: NaN, as recorded
    x[1, 1:] = -np.inf
    x[2, 3] = np.nan
    x[3, 3] = np.inf
    x[4] = 1e30
    check(lambda x: nn.softmax(x), "softmax", (6, 40), values=x, bound=1.0)
    check(lambda x: nn.log_softmax(x), "log_softmax", (6, 40), values=x)


@pytest.mark.parametrize("width", [*WIDTHS[1:], 8192, 16385])
@pytest.mark.parametrize("affine", [True, False])
def test_layer_norm_rows(width, affine):
    def program(x, scale, shift):
        return nn.layer_norm(x, scale, shift)

    if affine:
        check(program, "layer_norm", (3, width), (width,), (width,), bound=8.0)
        check(lambda x, scale: nn.rms_norm(x, scale), "rms_norm", (3, width), (width,), bound=8.0)
    elif width > 2:
        check(lambda x: nn.layer_norm(x), "layer_norm", (3, 2, width), bound=4.0)
        check(lambda x: nn.rms_norm(x), "rms_norm", (3, 2, width), bound=4.0)


def test_layer_norm_over_several_and_over_leading_axes():
    def leading(x, scale, shift):
        mean = x.mean(1, keepdims=True)
        variance = ((x - mean) ** 2).mean(1, keepdims=True)
        return (x - mean) / np.sqrt(variance + 1e-6) * scale[:, None] + shift[:, None]

    def several(x):
        mean = x.mean((1, 2), keepdims=True)
        return (x - mean) / np.sqrt(((x - mean) ** 2).mean((1, 2), keepdims=True) + 1e-6)

    check(leading, "layer_norm", (2, 12, 9), (12,), (12,), bound=8.0)
    check(several, "layer_norm", (3, 5, 7), bound=4.0)


def along_axis_1(x, scale, shift):
    mean = x.mean(1, keepdims=True)
    variance = ((x - mean) ** 2).mean(1, keepdims=True)
    return (x - mean) / np.sqrt(variance + 1e-6) * scale[:, None] + shift[:, None]


def squares_along_axis_1(x, scale):
    return x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-6) * scale[:, None]


@pytest.mark.parametrize("inner", [8, LANES - 1, LANES, LANES + 1, 255, 257])
@pytest.mark.parametrize("count", [2, 31, 32, 33, 100])
def test_norms_along_columns(inner, count):
    check(along_axis_1, "layer_norm", (2, count, inner), (count,), (count,), bound=8.0)
    check(squares_along_axis_1, "rms_norm", (2, count, inner), (count,), bound=8.0)


def test_columns_that_are_not_finite_and_a_large_mean():
    values = 1e3 + np.random.default_rng(1).standard_normal((2, 40, 20))
    values[0, 3, 4], values[1, 5, 6], values[0, :, 9] = np.nan, np.inf, 5.0
    with np.errstate(all="ignore"):
        check(along_axis_1, "layer_norm", values.shape, (40,), (40,), values=values, bound=8.0)


def test_a_large_mean_keeps_its_digits():
    random = np.random.default_rng(1)
    values = 1e4 + 0.1 * random.standard_normal((4, 300))
    check(lambda x: nn.layer_norm(x), "layer_norm", (4, 300), values=values, bound=4.0)


@pytest.mark.parametrize("positions", [2, LANES, LANES + 1, 49])
def test_group_and_instance_norms(positions):
    def grouped(x, scale, shift):
        return nn.group_norm(x, 3, scale, shift)

    def each(x, scale, shift):
        return nn.instance_norm(x, scale, shift)

    check(grouped, "group_norm", (2, 6, positions), (6,), (6,), bound=8.0)
    check(each, "instance_norm", (2, 6, positions), (6,), (6,), bound=8.0)


@pytest.mark.parametrize(
    "norm", [lambda *a: nn.group_norm(a[0], 3, *a[1:]), nn.instance_norm], ids=["group", "instance"]
)
@pytest.mark.parametrize("factor", [np.inf, -np.inf])
def test_an_infinite_scale_leaves_the_signs_of_deviations(norm, factor):
    random = np.random.default_rng(0)
    x, shift = (random.standard_normal(shape).astype(np.float32) for shape in ((2, 6, 35), (6,)))
    scale = np.array([1, factor, 2, 3, factor, 1], np.float32)
    tape = tp.trace(lambda *arrays: norm(*arrays), "f32[2,6,35]", "f32[6]", "f32[6]")
    plan = tp.plan(tape, cost="always")
    assert [decision.match.pattern for decision in plan.taken] in (["group_norm"], ["instance_norm"])
    got, (recorded,) = plan.run(x, scale, shift), interpret(tape, (x, scale, shift))
    assert np.isinf(recorded[:, [1, 4]]).all()
    np.testing.assert_allclose(got, recorded, rtol=1e-4, atol=1e-5)


NORMS = {
    "layer": lambda x, scale, shift: nn.layer_norm(x, scale, shift),
    "layer, shifted only": lambda x, scale, shift: nn.layer_norm(x, None, shift),
    "layer over two axes": lambda x, scale, shift: nn.layer_norm(x, scale[:, None], shift, axis=(1, 2)),
    "rms": lambda x, scale, shift: nn.rms_norm(x, scale),
    "sum and layer": lambda x, scale, shift: nn.layer_norm(x + 0.5 * x[::-1], scale, shift),
    "group": lambda x, scale, shift: nn.group_norm(x, 3, scale, shift),
    "instance": lambda x, scale, shift: nn.instance_norm(x, scale, shift),
}


@pytest.mark.parametrize("norm", NORMS)
def test_known_vectors_are_laid_out_once(norm, monkeypatch):
    random = np.random.default_rng(1)
    x = random.standard_normal((2, 6, 6)).astype(np.float32)
    scale, shift = (random.standard_normal(6).astype(np.float32) for _ in range(2))
    tape = tp.trace(lambda x: NORMS[norm](x, scale, shift), "f32[2,6,6]")
    plan = tp.plan(tape, cost="always", parameters=dict(tape.defaults))
    assert plan.taken
    first = plan.run(x)

    def again(*_):
        raise AssertionError("laid out by a run")

    monkeypatch.setattr("topos_core.kernels.cores.rows.vector_of", again)
    np.testing.assert_array_equal(plan.run(x), first)
    (exact,) = interpret(widened(tape), [x.astype(np.float64)])
    close(first, exact, "f32", 16.0)


@pytest.mark.parametrize("count", [1, LANES - 1, LANES, LANES + 1, 8191, 8192, 8193])
@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu_and_silu(count, approximate):
    check(lambda x: nn.gelu(x, approximate), "gelu", (count,), bound=1.0)
    check(lambda x: nn.silu(x), "silu", (count,), bound=1.0)


@pytest.mark.parametrize("dtype", ["f64", "f16", "bf16"])
def test_maps_of_other_floats(dtype):
    check(lambda x: nn.gelu(x), "gelu", (3, 50), dtype=dtype, bound=2.0)
    check(lambda x: nn.silu(x), "silu", (3, 50), dtype=dtype, bound=2.0)


def test_threads_agree():
    for threads in (2, 4):
        check(lambda x: nn.softmax(x), "softmax", (400, 101), bound=1.0, threads=threads)
        check(lambda x: nn.gelu(x), "gelu", (100_000,), bound=4.0, threads=threads)
