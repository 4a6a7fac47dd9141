import numpy as np
import pytest

from tests.core.kernels.check import taken
from topos_core import nn
from topos_core.kernels.host import host

LANES = host().lanes("f32")


def heads(y, count):
    return y.reshape(*y.shape[:2], count, -1).transpose(0, 2, 1, 3)


def merged(y):
    return y.transpose(0, 2, 1, 3).reshape(y.shape[0], y.shape[2], -1)


def block(count, causal=False):
    def program(x, query, key, value, output):
        q, k, v = (heads(x @ w, count) for w in (query, key, value))
        return merged(nn.attention(q, k, v, causal=causal)) @ output

    return program


def arrays(batch, length, width, seed=0, sides=None):
    random = np.random.default_rng(seed)
    x = random.standard_normal((batch, length, width))
    return [x, *(random.standard_normal(shape) / np.sqrt(width) for shape in sides or [(width, width)] * 4)]


def check(function, given, **options):
    return taken("multi_head_attention", function, given, scale=3.0, **options)


@pytest.mark.parametrize("length", [2, 9, LANES + 1, 33])
@pytest.mark.parametrize(("count", "width"), [(2, 2 * LANES), (3, 3 * (LANES + 1)), (1, 6), (4, 8)])
def test_lengths_heads_and_widths(length, count, width):
    check(block(count), arrays(2, length, width))


@pytest.mark.parametrize("length", [31, 33])
def test_causal(length):
    check(block(2, causal=True), arrays(2, length, 32))


def test_biases_and_a_mask():
    random = np.random.default_rng(5)
    biases = [random.standard_normal(32) for _ in range(4)]
    mask = random.standard_normal((2, 1, 1, 9))

    def program(x, query, key, value, output, a, b, c, d, mask):
        q, k, v = (heads(x @ w + bias, 4) for w, bias in ((query, a), (key, b), (value, c)))
        return merged(nn.attention(q, k, v, mask)) @ output + d

    check(program, [*arrays(2, 9, 32), *biases, mask])


def test_two_added_terms_and_a_factor_of_the_weights():
    random = np.random.default_rng(5)
    mask, bias = random.standard_normal((2, 1, 1, 9)), random.standard_normal((4, 9, 9))
    drop = (random.random((2, 4, 9, 9)) < 0.8) / 0.8

    def program(x, query, key, value, output, mask, bias, drop):
        q, k, v = (heads(x @ w, 4) for w in (query, key, value))
        scores = q @ k.swapaxes(-1, -2) * 0.25 + bias + mask
        powers = np.exp(scores - scores.max(-1, keepdims=True))
        return merged(powers / powers.sum(-1, keepdims=True) * drop @ v) @ output

    check(program, [*arrays(2, 9, 32), mask, bias, drop])


def test_a_boolean_mask_with_rows_that_keep_nothing():
    mask = np.random.default_rng(5).random((9, 9)) < 0.5
    mask[4] = False

    def program(x, query, key, value, output, mask):
        q, k, v = (heads(x @ w, 4) for w in (query, key, value))
        return merged(nn.attention(q, k, v, mask)) @ output

    check(program, [*arrays(2, 9, 32), mask])


def sliced(x, w, output):
    q, k, v = (heads(part, 4) for part in np.split(x @ w, 3, -1))
    return merged(nn.attention(q, k, v)) @ output


def on_an_axis(x, w, output):
    q, k, v = (x @ w).reshape(*x.shape[:2], 3, 4, -1).transpose(2, 0, 3, 1, 4)
    return merged(nn.attention(q, k, v)) @ output


def inside_heads(x, w, output):
    y = (x @ w).reshape(*x.shape[:2], 4, 3, -1)
    q, k, v = (y[:, :, :, part].transpose(0, 2, 1, 3) for part in range(3))
    return merged(nn.attention(q, k, v)) @ output


def striding(x, w, output):
    q, k, v = (heads((x @ w)[..., part::3], 4) for part in range(3))
    return merged(nn.attention(q, k, v)) @ output


@pytest.mark.parametrize("program", [sliced, on_an_axis, inside_heads, striding])
def test_one_product_for_all_three(program):
    check(program, arrays(2, 9, 32, sides=[(32, 96), (32, 32)]))


def test_keys_of_another_sequence():
    def program(x, context, query, key, value, output):
        q, k, v = heads(x @ query, 4), heads(context @ key, 4), heads(context @ value, 4)
        return merged(nn.attention(q, k, v)) @ output

    x, *weights = arrays(2, 9, 32)
    check(program, [x, arrays(2, 13, 32, seed=1)[0], *weights])


def test_keys_shared_by_groups_of_queries():
    def program(x, query, key, value, output):
        q, k, v = heads(x @ query, 6), heads(x @ key, 2), heads(x @ value, 2)
        return merged(nn.attention(q, k, v)) @ output

    check(program, arrays(2, 9, 24, sides=[(24, 48), (24, 16), (24, 16), (48, 24)]))


def test_one_weight_for_queries_and_keys():
    def program(x, both, value, output):
        q, k, v = (heads(x @ w, 4) for w in (both, both, value))
        return merged(nn.attention(q, k, v)) @ output

    check(program, arrays(2, 9, 32)[:-1])


def test_weights_known_beforehand():
    x, *weights = (array.astype(np.float32) for array in arrays(2, 9, 32))
    check(lambda x: block(4)(x, *weights), [x])


@pytest.mark.parametrize("dtype", ["f64", "f16", "bf16"])
def test_other_floats(dtype):
    check(block(4), arrays(2, 9, 32), dtype=dtype)


def test_what_is_not_a_number_spoils_its_own_batch_alone():
    given = arrays(3, 9, 32)
    given[0][1, 4, 2] = np.nan
    got = check(block(4), given)
    assert np.isfinite(got[[0, 2]]).all()


def test_a_causal_block_hides_no_infinity_that_the_recorded_ops_see():
    given = arrays(2, 9, 32)
    given[0][1, 8, 2] = np.inf
    check(block(4, causal=True), given)


def test_threads_give_the_same_bits():
    given = arrays(2, 70, 64)
    one = check(block(4), given)
    for threads in (2, 4):
        np.testing.assert_array_equal(check(block(4), given, threads=threads), one)


@pytest.mark.parametrize("turned", [(0,), (1,), (2,), (1, 2)])
def test_one_square_weight_projects_in_two_ways(turned):
    def program(x, w, output):
        sides = (x @ (w.T if side in turned else w) for side in range(3))
        return merged(nn.attention(*(heads(side, 2) for side in sides))) @ output

    check(program, arrays(2, 8, 8)[:3])


def test_one_weight_that_projects_features_and_positions_is_no_block():
    def program(x, w, output):
        q, v = heads(x @ w, 2), heads(x @ w, 2)
        return merged(nn.attention(q, heads(x.swapaxes(1, 2) @ w, 2), v)) @ output

    taken("attention", program, arrays(2, 8, 8)[:3], scale=3.0)
    with pytest.raises(AssertionError, match="attention"):
        check(program, arrays(2, 8, 8)[:3])
