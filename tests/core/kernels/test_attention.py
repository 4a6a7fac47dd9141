import numpy as np
import pytest

import topos_core as tp
from tests.core.kernels.check import close
from topos_core import nn
from topos_core.kernels.attention.offering import FEW_QUERIES
from topos_core.kernels.home.manifest import prepare
from topos_core.kernels.host import host
from topos_core.run.interpreter import interpret
from topos_core.run.widened import widen_array, widened
from topos_core.tape.type import numpy_dtype

LANES = host().lanes("f32")


def check(function, arrays, dtype="f32", threads=1):
    kinds = {"b": "bool", "f": dtype}
    specs = [f"{kinds[a.dtype.kind]}[{','.join(map(str, a.shape))}]" for a in arrays]
    arrays = [a if a.dtype.kind == "b" else a.astype(numpy_dtype(dtype)) for a in arrays]
    tape = tp.trace(function, *specs)
    plan = tp.plan(tape, cost="always")
    assert "attention" in [d.match.pattern for d in plan.taken], [d.match.pattern for d in plan.taken]
    (exact,) = interpret(widened(tape), [widen_array(a) for a in arrays])
    got = plan.run(*arrays, threads=threads)
    close(got, exact, dtype, 4.0)
    return got


def heads(batch, queries, keys, width, values=None, seed=0):
    random = np.random.default_rng(seed)
    shapes = ((queries, width), (keys, width), (keys, values or width))
    return [random.standard_normal((*batch, *shape)) for shape in shapes]


def plain(q, k, v):
    return nn.attention(q, k, v)


@pytest.mark.parametrize("keys", [2, LANES - 1, LANES, LANES + 1, 3 * LANES, 3 * LANES + 1, 511, 513])
@pytest.mark.parametrize("queries", [2, 8, 9])
def test_numbers_of_keys_and_queries(keys, queries):
    check(plain, heads((2,), queries, keys, 24))


@pytest.mark.parametrize("width", [2, LANES - 1, LANES, LANES + 1, 64, 80])
@pytest.mark.parametrize("values", [2, LANES, LANES + 3, 100])
def test_widths_of_keys_and_values(width, values):
    check(plain, heads((3,), 5, 20, width, values))


@pytest.mark.parametrize("rows", [31, 32, 33, 70])
def test_blocks_of_queries(rows):
    check(plain, heads((2, 2), rows, rows, 16))


@pytest.mark.parametrize("queries", [FEW_QUERIES - 1, FEW_QUERIES, FEW_QUERIES + 1])
@pytest.mark.parametrize("width", [LANES, 2 * LANES + 1])
def test_few_queries_and_many(queries, width):
    # many have the values laid out; they may lie in any order
    check(plain, heads((2,), queries, 40, 16, width))
    q, k, v = heads((2,), queries, 40, 16, width)
    check(lambda q, k, v: nn.attention(q, k, v.swapaxes(-1, -2)), [q, k, np.ascontiguousarray(v.swapaxes(-1, -2))])


@pytest.mark.parametrize("registers", range(1, 11))
def test_values_of_so_many_registers(registers):
    check(plain, heads((1,), FEW_QUERIES + 1, 20, 8, registers * LANES))


@pytest.mark.parametrize("length", [2, 5, 6, 7, 31, 32, 33, 36, 37, 100])
@pytest.mark.parametrize("extra", [0, 7])
def test_causal(length, extra):
    check(lambda q, k, v: nn.attention(q, k, v, causal=True), heads((2, 3), length, length + extra, 16))


@pytest.mark.parametrize("spare", [0, 1, 4, 15, 16, 40])
@pytest.mark.parametrize("width", [1, 7, 42, 48])
@pytest.mark.parametrize("queries", [9, FEW_QUERIES])
def test_values_near_the_end_of_their_memory_are_not_read_past_it(queries, width, spare):
    # the page behind the one that holds the last value cannot be read
    import ctypes
    import mmap

    page = mmap.PAGESIZE
    region = mmap.mmap(-1, 5 * page)
    base = ctypes.addressof(ctypes.c_char.from_buffer(region))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.mprotect(ctypes.c_void_p(base + 4 * page), page, 0) == 0
    try:
        q, k, v = heads((1,), queries, 33, 16, width)
        at_end = np.frombuffer(region, np.float32, v.size, 4 * page - 4 * (v.size + spare)).reshape(v.shape)
        at_end[...] = v
        check(plain, (q, k, at_end))
    finally:
        libc.mprotect(ctypes.c_void_p(base + 4 * page), page, 3)


@pytest.mark.parametrize("scale", [0.3, -0.5, 1e30])
def test_scores_scaled_by_any_number(scale):
    def scaled(q, k, v):
        return nn.attention(q, k, v, scale=scale)

    q, k, v = heads((2,), 9, 21, 16, 16)
    if scale == 1e30:
        q[:] = np.round(q)
        k[:] = np.round(k)
    check(scaled, (q, k, v))


def test_causal_with_values_that_are_not_finite():
    q, k, v = heads((2,), 40, 40, 16)
    v[0, 30, 3] = np.inf  # a weight of 0 times an infinity is NaN, also where the key is hidden
    v[1, 10] = np.nan
    k[1, 39, 0] = np.inf
    check(lambda q, k, v: nn.attention(q, k, v, causal=True), [q, k, v])


def test_a_triangle_that_hides_with_a_number_hides_no_smaller_scores():
    triangle = np.tri(12, dtype=bool)

    def program(q, k, v):
        scores = np.where(triangle, q @ k.swapaxes(-1, -2) * 0.25, np.float32(-5.0))
        powers = np.exp(scores - scores.max(-1, keepdims=True))
        return powers / powers.sum(-1, keepdims=True) @ v

    check(program, [a * 10 for a in heads((2,), 12, 12, 16)])


@pytest.mark.parametrize("shape", [(20, 24), (2, 1, 20, 24), (2, 3, 20, 24), (2, 1, 1, 24), (20, 1)])
def test_added_masks_of_any_shape(shape):
    random = np.random.default_rng(3)
    mask = random.standard_normal(shape)
    mask[random.random(shape) < 0.3] = -np.inf
    mask[..., 0] = 0

    def program(q, k, v, mask):
        return nn.attention(q, k, v, mask)

    check(program, [*heads((2, 3), 20, 24, 16), mask])


@pytest.mark.parametrize("shape", [(20, 24), (2, 1, 20, 24), (2, 1, 1, 24)])
def test_boolean_masks_with_rows_that_keep_nothing(shape):
    mask = np.random.default_rng(3).random(shape) < 0.5
    mask[..., 5 % mask.shape[-2], :] = False

    def keeps(q, k, v, mask):
        return nn.attention(q, k, v, mask)

    check(keeps, [*heads((2, 3), 20, 24, 16), mask])


def test_keys_shared_by_groups_of_query_heads():
    random = np.random.default_rng(0)
    q = random.standard_normal((2, 6, 9, 8))
    k, v = (random.standard_normal((2, 2, 11, 8)) for _ in range(2))

    def grouped(q, k, v):
        q = q.reshape(2, 2, 3, 9, 8)
        scores = np.einsum("bhgid,bhjd->bhgij", q, k) * 0.5
        powers = np.exp(scores - scores.max(-1, keepdims=True))
        weights = powers / powers.sum(-1, keepdims=True)
        return np.einsum("bhgij,bhje->bhgie", weights, v).reshape(2, 6, 9, 8)

    def repeated(q, k, v):
        k, v = (np.repeat(a, 3, axis=1) for a in (k, v))
        return nn.attention(q, k, v)

    check(grouped, [q, k, v])
    check(repeated, [q, k, v])


def test_heads_inside_the_features():
    random = np.random.default_rng(0)
    q, k, v = (random.standard_normal((2, 10, 3 * 16)) for _ in range(3))

    def program(q, k, v):
        q, k, v = (a.reshape(2, 10, 3, 16).transpose(0, 2, 1, 3) for a in (q, k, v))
        return nn.attention(q, k, v).transpose(0, 2, 1, 3).reshape(2, 10, 48)

    check(program, [q, k, v])


@pytest.mark.parametrize("dtype", ["f64", "f16", "bf16"])
def test_other_floats(dtype):
    check(plain, heads((2,), 9, 21, 16), dtype=dtype)


def test_a_long_row_of_scores_and_threads():
    arrays = heads((2,), 40, 5000, 16)
    one = check(plain, arrays)
    for threads in (2, 4):
        np.testing.assert_array_equal(check(plain, arrays, threads=threads), one)


def softmax(scores):
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def scores_of(q, k):
    return q @ k.swapaxes(-1, -2) * 0.25


@pytest.mark.parametrize("shape", [(20, 24), (3, 20, 24), (2, 1, 1, 24), (2, 3, 20, 1)])
def test_a_second_term_of_any_shape_is_added(shape):
    random = np.random.default_rng(3)
    mask = np.where(random.random((2, 1, 1, 24)) < 0.3, -np.inf, 0.0)
    mask[..., 0] = 0

    def program(q, k, v, mask, bias):
        return softmax(scores_of(q, k) + bias + mask) @ v

    check(program, [*heads((2, 3), 20, 24, 16), mask, random.standard_normal(shape)])


def test_a_term_is_added_after_a_choice():
    random = np.random.default_rng(3)

    def program(q, k, v, keep, bias):
        return softmax(np.where(keep, scores_of(q, k), np.float32(-3)) + bias) @ v

    check(program, [*heads((2, 3), 20, 24, 16), random.random((20, 24)) < 0.7, random.standard_normal((2, 1, 20, 24))])


@pytest.mark.parametrize("shape", [(20, 24), (2, 3, 20, 24), (2, 3, 1, 1)])
def test_a_factor_on_the_weights_of_any_shape(shape):
    random = np.random.default_rng(3)

    def program(q, k, v, drop):
        return softmax(scores_of(q, k)) * drop / 0.8 @ v

    check(program, [*heads((2, 3), 20, 24, 16), (random.random(shape) < 0.8) * 1.0])


@pytest.mark.parametrize("odd", [np.inf, np.nan])
def test_what_is_added_and_multiplied_behind_a_triangle_is_seen_where_it_is_not_finite(odd):
    triangle = np.where(np.tri(12, dtype=bool), 0, -np.inf).astype(np.float32)
    random = np.random.default_rng(3)
    bias, drop = random.standard_normal((12, 12)), np.ones((12, 12))
    bias[3, 8] = drop[5, 9] = odd

    def program(q, k, v, bias, drop):
        return softmax(scores_of(q, k) + triangle + bias) * drop @ v

    check(program, [*heads((2,), 12, 12, 16), bias, drop])


@pytest.mark.parametrize("kind", ["keeps", "hides", "added"])
def test_a_triangle_that_is_a_parameter_leaves_later_keys_out_once_it_is_bound(kind):
    """Above 2^20 elements a mask is a parameter: what it holds is no fact of the program."""
    length = 1030
    lower = np.tri(length, dtype=bool)
    tape = tp.trace(
        lambda q, k, v, mask: _with_mask(q, k, v, mask, kind),
        *(tp.f32[length, 4],) * 3,
        {"keeps": lower, "hides": ~lower, "added": np.where(lower, 0, -np.inf).astype(np.float32)}[kind],
    )
    (mask,) = tape.parameters
    match = next(one.match for one in tp.plan(tape, cost="always").taken if one.match.pattern == "attention")
    binding = next(name for name in ("mask", "keep") if name in match.bindings)
    assert match.facts.options["causal"] == "no"
    assert prepare(tape, match, {match.bindings[binding]: tape.defaults[mask]}).causal == binding
    assert prepare(tape, match, {match.bindings[binding]: tape.defaults[mask][::-1, ::-1]}).causal is None
    assert prepare(tape, match, {}).causal is None
    q, k, v = (np.random.default_rng(s).standard_normal((length, 4)).astype(np.float32) for s in range(3))
    exact = tp.plan(tape, off=["attention", "softmax"]).run(q, k, v)
    np.testing.assert_allclose(tp.plan(tape, cost="always").run(q, k, v), exact, atol=2e-5)


def _with_mask(q, k, v, mask, kind):
    scores = q @ k.T * 0.5
    if kind == "added":
        return nn.softmax(scores + mask) @ v
    return nn.softmax(np.where(mask, *((scores, -np.inf) if kind == "keeps" else (-np.inf, scores)))) @ v
