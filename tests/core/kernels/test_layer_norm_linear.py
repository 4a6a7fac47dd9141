import numpy as np
import pytest

from tests.core.kernels.check import taken
from topos_core import nn
from topos_core.kernels.host import host

LANES = host().lanes("f32")


def arrays(rows, width, columns, seed=0):
    random = np.random.default_rng(seed)
    shapes = [(*rows, width), (width,), (width,), (width, columns), (columns,)]
    x, scale, shift, weight, bias = (random.standard_normal(shape) for shape in shapes)
    return [x, scale, shift, weight / np.sqrt(width), bias]


def program(x, scale, shift, weight, bias):
    return nn.layer_norm(x, scale, shift) @ weight + bias


def check(function, given, **options):
    return taken("layer_norm_linear", function, given, scale=5.0, **options)


@pytest.mark.parametrize("width", [2, LANES - 1, LANES + 1, 70])
@pytest.mark.parametrize("rows", [(2,), (2, 5)])
def test_tails_of_rows_and_columns(rows, width):
    for columns in (2, LANES, 3 * LANES + 1):
        check(program, arrays(rows, width, columns))


@pytest.mark.parametrize("activation", [nn.relu, nn.gelu, np.tanh])
def test_an_activation_behind_it(activation):
    check(lambda *given: activation(program(*given)), arrays((9,), 24, 40))


def test_the_norm_is_written_back_for_whoever_reads_it():
    def both(x, scale, shift, weight, bias):
        y = nn.layer_norm(x, scale, shift)
        return y @ weight + bias + y.sum()

    check(both, arrays((9,), 24, 40))


def test_flattened_rows():
    def flattened(x, scale, shift, weight, bias):
        return nn.layer_norm(x, scale, shift).reshape(-1, x.shape[-1]) @ weight + bias

    check(flattened, arrays((3, 4), 24, 40))


def test_weights_known_beforehand():
    x, *known = (array.astype(np.float32) for array in arrays((9,), 24, 40))
    check(lambda x: program(x, *known), [x])


def test_f64():
    check(program, arrays((9,), 24, 40), dtype="f64")


def test_what_is_not_a_number_spoils_its_own_row_alone():
    given = arrays((9,), 24, 40)
    given[0][2, 3], given[0][5, 7] = np.nan, np.inf
    got = check(program, given)
    assert np.isfinite(got[[0, 1, 3, 4, 6, 7, 8]]).all()


def test_threads_give_the_same_bits():
    given = arrays((300,), 64, 200)
    one = check(program, given)
    for threads in (2, 4):
        np.testing.assert_array_equal(check(program, given, threads=threads), one)
