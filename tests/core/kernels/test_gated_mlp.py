import numpy as np
import pytest

from tests.core.kernels.check import close, taken
from topos_core import nn
from topos_core.kernels.host import host
from topos_core.run.interpreter import interpret

LANES = host().lanes("f32")


def arrays(rows, width, inner, seed=0, bias=False):
    random = np.random.default_rng(seed)
    shapes = [(*rows, width), (width, inner), (width, inner), (inner, width)]
    shapes += [(inner,), (inner,), (width,)] if bias else []
    return [random.standard_normal(shape) / (np.sqrt(shape[0]) if k else 1) for k, shape in enumerate(shapes)]


def llama(x, gate, up, down):
    return (nn.silu(x @ gate) * (x @ up)) @ down


def check(function, given, **options):
    return taken("gated_mlp", function, given, scale=4.0, **options)


@pytest.mark.parametrize("inner", [2, LANES - 1, LANES, LANES + 1, 3 * LANES + 1, 150])
@pytest.mark.parametrize("rows", [(2,), (9,), (2, 3)])
def test_tails_of_rows_and_columns(rows, inner):
    check(llama, arrays(rows, 20, inner))


@pytest.mark.parametrize("activation", [nn.silu, nn.gelu, lambda x: nn.gelu(x, "tanh"), nn.relu, nn.sigmoid])
def test_activations(activation):
    check(lambda x, gate, up, down: (activation(x @ gate) * (x @ up)) @ down, arrays((5,), 24, LANES + 3))


def test_without_the_projection_back():
    check(lambda x, gate, up: nn.silu(x @ gate) * (x @ up), arrays((5,), 24, 40)[:3])


def test_biases():
    def program(x, gate, up, down, of_gate, of_up, of_down):
        return (nn.silu(x @ gate + of_gate) * (x @ up + of_up)) @ down + of_down

    check(program, arrays((7,), 24, 40, bias=True))


def test_the_gate_on_the_right():
    check(lambda x, gate, up, down: ((x @ up) * nn.silu(x @ gate)) @ down, arrays((7,), 24, 40))


def sliced(x, w, down):
    gate, up = np.split(x @ w, 2, -1)
    return (nn.silu(gate) * up) @ down


def stacked(x, w, down):
    y = (x @ w).reshape(*x.shape[:-1], 2, -1)
    return (nn.silu(y[..., 1, :]) * y[..., 0, :]) @ down


def interleaved(x, w, down):
    y = x @ w
    return (nn.silu(y[..., ::2]) * y[..., 1::2]) @ down


@pytest.mark.parametrize("program", [sliced, stacked, interleaved])
@pytest.mark.parametrize("inner", [LANES - 1, 40])
def test_both_sides_in_one_product(program, inner):
    random = np.random.default_rng(3)
    check(program, [random.standard_normal(shape) / 4 for shape in ((2, 5, 20), (20, 2 * inner), (inner, 20))])


def test_weights_known_beforehand():
    x, gate, up, down = (array.astype(np.float32) for array in arrays((9,), 24, 40))
    check(lambda x: llama(x, gate, up, down), [x])


def test_weights_in_any_layout():
    x, gate, up, down = arrays((9,), 24, 40)
    check(lambda x, gate, up, down: llama(x, gate.T, up.T, down.T), [x, gate.T, up.T, down.T])


@pytest.mark.parametrize("dtype", ["f64", "f16", "bf16"])
def test_other_floats(dtype):
    check(llama, arrays((9,), 24, 40), dtype=dtype)
    check(lambda x, gate, up: nn.silu(x @ gate) * (x @ up), arrays((9,), 24, 40)[:3], dtype=dtype)


def test_what_is_not_a_number_spoils_its_own_row_alone():
    given = arrays((9,), 24, 40)
    given[0][2, 3], given[0][5, 7] = np.nan, np.inf
    check(llama, given)


def test_threads_give_the_same_bits():
    given = arrays((70,), 64, 200)
    one = check(llama, given)
    for threads in (2, 4):
        np.testing.assert_array_equal(check(llama, given, threads=threads), one)


def test_an_empty_inner_layer_is_a_sum_of_nothing():
    import topos_core as tp

    tape = tp.trace(llama, "f32[3,4]", "f32[4,0]", "f32[4,0]", "f32[0,4]")
    given = [np.ones(tape.ops[value].type.shape, np.float32) for value in tape.inputs]
    plan = tp.plan(tape, cost="always")
    close(plan.run(*given), interpret(tape, given)[0], "f32")


@pytest.mark.parametrize(
    "program",
    [
        lambda x, w: nn.silu(x @ w) * (x @ w.T),
        lambda x, w: (nn.silu(x @ w.T) * (x @ w)) @ w,
    ],
)
def test_one_square_weight_projects_in_two_ways(program):
    random = np.random.default_rng(0)
    check(program, [random.standard_normal((24, 24)), random.standard_normal((24, 24)) / 5])


def test_a_gate_of_other_positions_runs_as_layers_of_their_own():
    def program(x, w):
        return nn.silu(x @ w) * (x.swapaxes(0, 1) @ w)

    random = np.random.default_rng(0)
    given = [random.standard_normal((24, 24)), random.standard_normal((24, 24)) / 5]
    taken("linear_bias_activation", program, given, scale=4.0)
    with pytest.raises(AssertionError, match="linear_bias_activation"):
        check(program, given)


def test_a_projection_and_a_part_of_it_padded_run_as_they_are():
    def program(x, w):
        y = x @ w
        return nn.silu(y) * np.pad(y[:, 1:], ((0, 0), (0, 1)))

    taken("linear", program, arrays((7,), 24, 40)[:2], scale=4.0)
