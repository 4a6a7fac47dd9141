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


def check(function, pattern, *shapes, dtype="f32", known=False, threads=1):
    """Traces a function of arrays, takes the pattern and compares with float64; `known` binds all but the first."""
    kind = numpy_dtype(dtype)
    random = np.random.default_rng(0)
    arrays = [random.standard_normal(shape).astype(kind) for shape in shapes]
    specs = [f"{dtype}[{','.join(map(str, shape))}]" for shape in shapes]
    if known:
        whole, rest = function, arrays[1:]
        arrays, specs = arrays[:1], specs[:1]

        def function(x):
            return whole(x, *rest)

    tape = tp.trace(function, *specs)
    plan = tp.plan(tape, cost="always")
    assert pattern in [d.match.pattern for d in plan.taken]
    (exact,) = interpret(widened(tape), [array.astype(np.float64) for array in arrays])
    got = plan.run(*arrays, threads=threads)
    steps = shapes[0][-1]
    close(got, exact, dtype, float(np.sqrt(max(steps, 1))) * 3 + float(np.abs(exact).max(initial=0)))
    return got


def layer(x, w, bias):
    return x @ w + bias


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("columns", [1, 2, LANES - 1, LANES, LANES + 1, 3 * LANES - 1, 3 * LANES, 3 * LANES + 1, 150])
@pytest.mark.parametrize("rows", [2, 4, 5, 8, 9])
def test_tails_of_rows_and_columns(rows, columns, known):
    # a known weight of few elements is a constant, which is no layer; one of many is a parameter
    steps = 70
    if not known or steps * columns > 64:
        check(layer, "linear", (rows, steps), (steps, columns), (columns,), known=known)


@pytest.mark.parametrize("rows", [2, 3])
@pytest.mark.parametrize("steps", [2, 511, 512, 513, 1030])
def test_chains_of_products(rows, steps):
    check(layer, "linear", (rows, steps), (steps, 33), (33,))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(2, 6), min_size=1, max_size=3), st.integers(2, 20), st.integers(2, 70), st.booleans())
def test_any_number_of_batch_axes(batch, steps, columns, transposed):
    def torch(x, w, bias):
        return x @ w.T + bias

    weight = (columns, steps) if transposed else (steps, columns)
    check(torch if transposed else layer, "linear", (*batch, steps), weight, (columns,))


def test_one_row_and_no_bias():
    check(lambda x, w: x @ w, "linear", (3, 40), (40, 200))
    check(layer, "linear", (1, 40), (40, 200), (200,))


def test_everything_transposed():
    check(lambda w, x, bias: w @ x + bias[:, None], "linear", (30, 20), (20, 9), (30,))


@pytest.mark.parametrize("dtype", ["f64", "f16", "bf16"])
def test_other_floats(dtype):
    check(layer, "linear", (5, 24), (24, 50), (50,), dtype=dtype)


ACTIVATIONS = {
    "relu": nn.relu,
    "gelu": nn.gelu,
    "gelu tanh": lambda x: nn.gelu(x, "tanh"),
    "silu": nn.silu,
    "tanh": np.tanh,
    "sigmoid": nn.sigmoid,
}


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_activations(activation):
    function = ACTIVATIONS[activation]

    def program(x, w, bias):
        return function(x @ w + bias)

    for columns in (LANES - 1, 3 * LANES + 1):
        check(program, "linear_bias_activation", (9, 40), (40, columns), (columns,))


def test_threads_give_the_same_bits():
    one = check(layer, "linear", (40, 300), (300, 500), (500,))
    for threads in (2, 4):
        np.testing.assert_array_equal(check(layer, "linear", (40, 300), (300, 500), (500,), threads=threads), one)
