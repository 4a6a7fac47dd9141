import numpy as np
import pytest

from tests.core.kernels.check import close, taken
from topos_core import nn
from topos_core.kernels.home.manifest import prepare
from topos_core.kernels.host import host
from topos_core.matching.catalog import patterns
from topos_core.matching.search import search
from topos_core.recording.trace import trace
from topos_core.run.interpreter import interpret
from topos_core.run.widened import widened

LANES = host().lanes("f32")


def arrays(shape, tables, seed=0):
    random = np.random.default_rng(seed)
    angles = random.standard_normal(tables)
    return [random.standard_normal(shape), np.cos(angles), np.sin(angles)]


def check(function, given, **options):
    return taken("rotary_embedding", function, given, scale=3.0, **options)


@pytest.mark.parametrize("pairs", [2, LANES - 1, LANES, LANES + 1, 3 * LANES + 1])
@pytest.mark.parametrize("batch", [(), (2, 3)])
def test_numbers_of_pairs(batch, pairs):
    check(nn.rotary_embedding, arrays((*batch, 5, 2 * pairs), (5, 2 * pairs)))


def test_tables_of_half_the_width():
    def program(x, cos, sin):
        a, b = np.split(x, 2, -1)
        return np.concatenate([a * cos - b * sin, b * cos + a * sin], -1)

    check(program, arrays((2, 3, 5, 24), (5, 12)))


def test_tables_with_a_batch_of_their_own():
    check(nn.rotary_embedding, arrays((2, 3, 5, 24), (2, 1, 5, 24)))


def even_and_odd(x, cos, sin):
    turned = np.stack([-x[..., 1::2], x[..., ::2]], -1).reshape(x.shape)
    return x * cos + turned * sin


def even_and_odd_by_pairs(x, cos, sin):
    a, b = x[..., ::2], x[..., 1::2]
    return np.stack([a * cos - b * sin, b * cos + a * sin], -1).reshape(x.shape)


@pytest.mark.parametrize("pairs", [2, LANES - 1, LANES + 1])
def test_pairs_beside_each_other(pairs):
    check(even_and_odd, arrays((2, 5, 2 * pairs), (5, 2 * pairs)))
    check(even_and_odd_by_pairs, arrays((2, 5, 2 * pairs), (5, pairs)))


def halves_backwards(x, cos, sin):
    half = x.shape[-1] // 2
    return x * cos - np.concatenate([-x[..., half:], x[..., :half]], -1) * sin


def pairs_backwards(x, cos, sin):
    turned = np.stack([x[..., 1::2], -x[..., ::2]], -1).reshape(x.shape)
    return x * cos + turned * sin


@pytest.mark.parametrize("program", [halves_backwards, pairs_backwards])
@pytest.mark.parametrize("pairs", [2, LANES - 1, LANES + 1])
def test_minus_the_angle(program, pairs):
    check(program, arrays((2, 5, 2 * pairs), (5, 2 * pairs)))
    check(program, arrays((3, 2, 5, 2 * pairs), (2, 1, 2 * pairs)))


def test_heads_inside_the_features():
    def program(x, cos, sin):
        return nn.rotary_embedding(x.reshape(2, 5, 3, 24).transpose(0, 2, 1, 3), cos, sin)

    check(program, arrays((2, 5, 72), (5, 24)))


def test_positions_first():
    def program(x, cos, sin):
        return nn.rotary_embedding(x.transpose(1, 2, 0), cos, sin)

    check(program, arrays((24, 2, 5), (5, 24)))


@pytest.mark.parametrize("dtype", ["f64", "f16", "bf16"])
def test_other_floats(dtype):
    check(nn.rotary_embedding, arrays((2, 5, 24), (5, 24)), dtype=dtype)


def test_what_is_not_a_number_spoils_its_own_pair_alone():
    given = arrays((2, 5, 24), (5, 24))
    given[0][0, 2, 3], given[0][1, 4, 13] = np.nan, np.inf
    got = check(nn.rotary_embedding, given)
    assert np.isnan(got).sum() == 2


def test_threads_give_the_same_bits():
    given = arrays((8, 64, 128), (64, 128))
    one = check(nn.rotary_embedding, given)
    for threads in (2, 4):
        np.testing.assert_array_equal(check(nn.rotary_embedding, given, threads=threads), one)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
def test_any_memory_order_of_x_and_of_the_tables(order):
    tape = trace(nn.rotary_embedding, "f32[3,5,24]", "f32[5,24]", "f32[5,24]")
    (match,) = [m for m in search(tape, patterns().values()).matches if m.pattern == "rotary_embedding"]
    given = [a.astype(np.float32) for a in arrays((3, 5, 24), (5, 24))]
    moved = np.ascontiguousarray(given[0].transpose(order)).transpose(np.argsort(order))
    result = np.empty((3, 5, 24), np.float32)
    bound = {"x": moved, "cos": np.asfortranarray(given[1]), "sin": given[2][::-1][::-1]}
    prepare(tape, match, {}).run(bound, {"result": result}, 1)
    (exact,) = interpret(widened(tape), [a.astype(np.float64) for a in given])
    close(result, exact, "f32", 3.0)
