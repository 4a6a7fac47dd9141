from __future__ import annotations

import numpy as np
import pytest

import topos_core as tp
from tests.core.patterns.check import check, check_not, searched
from topos_core.run.proof import prove

QKV = dict.fromkeys("qkv", "f64[2,3,4,4]")
TRIANGLE = np.tril(np.ones((4, 4), bool))


def sm(s, axis=-1):
    e = np.exp(s - s.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def t(x):
    return x.swapaxes(-1, -2)


def textbook(q, k, v):
    return sm(q @ t(k) / np.float64(2.0)) @ v


def scale_on_q(q, k, v):
    return sm((q * 0.5) @ k.transpose(0, 1, 3, 2)) @ v


def scale_on_both(q, k, v):
    s = 4**-0.25
    return sm((q * s) @ t(k * s)) @ v


def einsum(q, k, v):
    return np.einsum("bhqk,bhkd->bhqd", sm(np.einsum("bhqd,bhkd->bhqk", q, k) * 0.5), v)


def plain_exp(q, k, v):
    e = np.exp(q @ t(k) * 0.5)
    return (e / e.sum(-1, keepdims=True)) @ v


def normalised_late(q, k, v):
    s = q @ t(k) * 0.5
    e = np.exp(s - s.max(-1, keepdims=True))
    return (e @ v) / e.sum(-1, keepdims=True)


def keys_first(q, k, v):
    return t(v) @ sm(k @ t(q) / 2.0, 2)


def flattened(q, k, v):
    q, k, v = (x.reshape(6, 4, 4) for x in (q, k, v))
    return (sm(q @ t(k) * 0.5) @ v).reshape(2, 3, 4, 4)


def multiply_and_sum(q, k, v):
    s = (q[:, :, :, None] * k[:, :, None]).sum(-1) * 0.5
    return (sm(s)[..., None] * v[:, :, None]).sum(-2)


@pytest.mark.parametrize(
    "spelling",
    [
        textbook, scale_on_q, scale_on_both, einsum, plain_exp, normalised_late, keys_first, flattened, multiply_and_sum,
    ],
)  # fmt: skip
def test_every_spelling_is_one_attention(spelling):
    match = check("attention", spelling, QKV)
    assert match.facts.constants["scale"] == pytest.approx(0.5)
    assert match.facts.options["mask"] == "none"
    assert match.facts.extents == {"b": 6, "i": 4, "j": 4, "d": 4, "e": 4}


def test_heads_may_come_after_positions():
    def norm(q, k, v):
        return np.einsum("bhqk,bkhd->bqhd", sm(np.einsum("bqhd,bkhd->bhqk", q, k) / 2), v)

    check("attention", norm, dict.fromkeys("qkv", "f64[2,4,3,4]"))


def added(q, k, v, m):
    return sm(m + q @ t(k) * 0.5) @ v


def added_inside_einsum(q, k, v, m):
    return np.einsum("bhqk,bhkd->bhqd", sm(np.einsum("bhqd,bhkd->bhqk", q * 0.5, k) + m), v)


@pytest.mark.parametrize("spelling", [added, added_inside_einsum])
@pytest.mark.parametrize("mask", ["f64[2,1,4,4]", "f64[4,4]", "f64[2,3,4,4]", "f64[2,1,1,4]"])
def test_a_mask_may_be_added_and_broadcast(spelling, mask):
    match = check("attention", spelling, {**QKV, "m": mask})
    assert match.facts.options["mask"] == "added"


def subtracted(q, k, v, m):
    return sm(q @ t(k) * 0.5 - m) @ v


def one_minus_the_mask(q, k, v, m):
    return sm(q @ t(k) * 0.5 - 1e4 * (1 - m)) @ v


def subtracted_before_scale(q, k, v, m):
    return sm((q @ t(k) - 1e4 * m) * 0.5) @ v


def subtracted_behind_a_bias(q, k, v, m):
    return sm(q @ t(k) * 0.5 + v[..., :1] - 1e4 * m) @ v


@pytest.mark.parametrize("mask", ["f64[2,3,4,4]", "f64[4,4]", "f64[2,1,1,4]"])
@pytest.mark.parametrize(
    "spelling", [subtracted, one_minus_the_mask, subtracted_before_scale, subtracted_behind_a_bias]
)
def test_a_mask_may_be_subtracted(spelling, mask):
    match = check("attention", spelling, {**QKV, "m": mask})
    assert match.facts.options["mask"] == "added"
    assert match.facts.constants["weight"] < 0


def test_a_triangle_that_is_subtracted_is_not_causal():
    def program(q, k, v):
        return sm(q @ t(k) * 0.5 - np.where(TRIANGLE, 0.0, -np.inf)) @ v

    assert check("attention", program, QKV).facts.options["causal"] == "no"


def shifted_before(q, k, v, m):
    s = q @ t(k) * 0.5 + m
    return sm(s - s.max(-1, keepdims=True)) @ v


def shifted_before_scale(q, k, v, m):
    s = q @ t(k)
    return sm((s - s.max(-1, keepdims=True)) * 0.5) @ v


def shifted_behind_a_choice(q, k, v, m):
    s = np.where(TRIANGLE, q @ t(k) * 0.5, -1e9)
    return sm(s - s.max(-1, keepdims=True)) @ v


@pytest.mark.parametrize("spelling", [shifted_before, shifted_before_scale, shifted_behind_a_choice])
def test_scores_may_be_shifted_twice(spelling):
    check("attention", spelling, {**QKV, "m": "f64[4,4]"})


def test_a_mask_that_is_computed_from_the_scores_keeps_them_from_being_taken():
    def program(q, k, v):
        s = q @ t(k) * 0.5
        return sm(s - s.max(-2, keepdims=True)) @ v

    plan = tp.plan(tp.trace(program, **QKV), cost="always")
    (declined,) = [each for each in plan.declined if each.match.pattern == "attention"]
    assert (declined.word, declined.match.facts.constants["weight"]) == ("shared-interior", -1)
    assert all(each.match.pattern != "attention" for each in plan.taken)


def kept(q, k, v):
    return sm(np.where(TRIANGLE, (q @ t(k)) / 2, -1e9)) @ v


def kept_by_infinity(q, k, v):
    return sm(np.where(TRIANGLE[None, None], q @ t(k) * 0.5, -np.inf)) @ v


def hidden(q, k, v):
    return sm(np.where(~TRIANGLE, -1e9, (q * 0.5) @ t(k))) @ v


def kept_before_scale(q, k, v):
    return sm(np.where(TRIANGLE, q @ t(k), -1e9) / 2) @ v


def added_table(q, k, v):
    return sm(q @ t(k) * 0.5 + np.where(TRIANGLE, 0.0, -1e9)) @ v


@pytest.mark.parametrize(
    ("spelling", "mask", "scaled"),
    [
        (kept, "keeps", "no"), (kept_by_infinity, "keeps", "no"), (hidden, "hides", "no"),
        (kept_before_scale, "keeps", "yes"), (added_table, "added", "no"),
    ],
)  # fmt: skip
def test_a_constant_triangle_is_causal(spelling, mask, scaled):
    match = check("attention", spelling, QKV)
    assert dict(match.facts.options) == {
        "mask": mask,
        "fill_scaled": scaled,
        "causal": "yes",
        "widened": "no",
        "shifted": "yes",
    }


def test_a_boolean_mask_may_be_given():
    def padding(q, k, v, keep):
        return sm(np.where(keep[:, None, None, :], np.einsum("bhqd,bhkd->bhqk", q, k) * 0.5, -1e4)) @ v

    match = check("attention", padding, {**QKV, "keep": "bool[2,4]"})
    assert match.facts.options["mask"] == "keeps"
    assert match.facts.options["causal"] == "no"


@pytest.mark.parametrize("mask", ["f64[4,1]", "f64[2,1,4,1]", "f64[2,3,1,1]", "f64[1]"])
@pytest.mark.parametrize("spread", [False, True])
def test_a_mask_may_vary_with_any_of_the_axes_and_be_computed_before_or_after_it_is_spread(mask, spread):
    def program(q, k, v, m):
        whole = np.broadcast_to(m, (2, 3, 4, 4)) if spread else m
        return sm(q @ t(k) * 0.5 + (1 - whole) * -10000.0) @ v

    assert check("attention", program, {**QKV, "m": mask}).facts.options["mask"] == "added"


def test_a_mask_computed_over_several_digits_of_the_batch_is_spread_too():
    def program(q, k, v, m):
        whole = np.where(np.broadcast_to(m[:, None, None, :], (2, 3, 4, 4)) > 0, 0.0, -1e9)
        q, k, v, whole = (x.reshape(6, 4, 4) for x in (q, k, v, whole))
        return sm(q @ t(k) * 0.5 + whole) @ v

    check("attention", program, {**QKV, "m": "f64[2,4]"})


def relative(q, k, v, table):
    place = np.arange(4)
    return sm(q @ t(k) * 0.5 + table[place[:, None] - place + 3].transpose(2, 0, 1)) @ v


def relative_square(q, k, v, table):
    x, y = np.arange(4) // 2, np.arange(4) % 2
    place = (x[:, None] - x + 1) * 3 + y[:, None] - y + 1
    return sm(q @ t(k) * 0.5 + table[place.reshape(-1)].reshape(4, 4, 3).transpose(2, 0, 1)) @ v


@pytest.mark.parametrize(("spelling", "length"), [(relative, 7), (relative_square, 9)])
def test_a_table_of_relative_positions_may_be_added(spelling, length):
    check("attention", spelling, {**QKV, "table": f"f64[{length},3]"})


def test_a_table_read_the_other_way_round_is_another_mask():
    def program(q, k, v, table):
        place = np.arange(4)
        return sm(q @ t(k) * 0.5 + table[(place - place[:, None] + 3) % 7].transpose(2, 0, 1)) @ v

    check("attention", program, {**QKV, "table": "f64[7,3]"})


def bias_and_mask(q, k, v, m, b):
    return sm(q @ t(k) * 0.5 + b + m) @ v


def two_halves(q, k, v, m, b):
    scores = (q @ t(k) * 0.5).reshape(2, 3, 4, 2, 2)
    rows, columns = (np.einsum("bhid,pd->bhip", q, table) for table in (b[0, 0, :2], b[0, 1, :2]))
    return sm((scores + rows[..., None] + columns[:, :, :, None]).reshape(2, 3, 4, 4)) @ v


def added_after_a_choice(q, k, v, m, b):
    return sm(np.where(TRIANGLE, q @ t(k) * 0.5, -1e9) + b) @ v


@pytest.mark.parametrize("spelling", [bias_and_mask, two_halves, added_after_a_choice])
def test_two_terms_may_be_added(spelling):
    match = check("attention", spelling, {**QKV, "m": "f64[2,1,1,4]", "b": "f64[1,3,4,4]"})
    assert "bias" in match.bindings


def test_a_sum_of_masks_that_others_read_too_is_one_mask():
    def program(q, k, v, m, b):
        whole = m + b
        first = sm(q @ t(k) * 0.5 + whole) @ v
        return sm(first @ t(k) * 0.5 + whole) @ v

    _, pool = searched(program, {**QKV, "m": "f64[2,1,1,4]", "b": "f64[1,3,4,4]"})
    found = [match for match in pool.matches if match.pattern == "attention"]
    assert [set(match.bindings) for match in found] == [{"q", "k", "v", "mask"}] * 2


def dropped(q, k, v, drop):
    return sm(q @ t(k) * 0.5) * drop @ v


def dropped_and_scaled(q, k, v, drop):
    return sm(q @ t(k) * 0.5) * drop / 0.9 @ v


def dropped_by_flags(q, k, v, drop):
    return (sm(q @ t(k) * 0.5) * (drop > 0) * (1 / 0.9)) @ v


@pytest.mark.parametrize(
    ("spelling", "scale"), [(dropped, 1.0), (dropped_and_scaled, 1 / 0.9), (dropped_by_flags, 1 / 0.9)]
)
@pytest.mark.parametrize("mask", ["f64[2,3,4,4]", "f64[3,1,4]"])
def test_the_weights_may_have_a_factor(spelling, scale, mask):
    match = check("attention", spelling, {**QKV, "drop": mask})
    assert "drop" in match.bindings
    assert match.facts.constants["rescale"] == pytest.approx(scale)


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_softmax_may_be_computed_in_single_precision(kind):
    def program(q, k, v, m):
        return sm((q @ t(k) * 0.5 + m).astype(np.float32)).astype(q.dtype) @ v

    specs = {name: spec.replace("f64", kind) for name, spec in {**QKV, "m": "f64[2,1,1,4]"}.items()}
    assert check("attention", program, specs).facts.options["widened"] == "yes"


def zero_added(q, k, v):
    return sm(q @ t(k) * 0.5 + np.zeros((4, 4))) @ v


def zero_added_before_the_scale(q, k, v):
    return (sm((q @ t(k) + 0.0) * 0.5) + 0.0) @ v


def zero_added_to_a_mask(q, k, v):
    return sm(q @ t(k) * 0.5 + np.where(TRIANGLE, 0.0, -1e9) + 0.0) @ v


@pytest.mark.parametrize("spelling", [zero_added, zero_added_before_the_scale, zero_added_to_a_mask])
def test_a_zero_that_is_added_changes_nothing(spelling):
    check("attention", spelling, QKV)


def test_a_second_boolean_mask_may_stand_on_top():
    def both(q, k, v, m):
        return sm(np.where(TRIANGLE, q @ t(k) * 0.5 + m, -np.inf)) @ v

    def twice(q, k, v, keep):
        return sm(np.where(TRIANGLE, np.where(keep, q @ t(k) * 0.5, -np.inf), -np.inf)) @ v

    assert check("attention", both, {**QKV, "m": "f64[2,1,4,4]"}).facts.options["causal"] == "yes"
    assert check("attention", twice, {**QKV, "keep": "bool[2,1,4,4]"}).facts.options["causal"] == "yes"


def repeated(q, k, v):
    k, v = (np.repeat(x, 2, 1) for x in (k, v))
    return sm(q @ t(k) * 0.5) @ v


def broadcast(q, k, v):
    k, v = (np.broadcast_to(x[:, :, None], (2, 3, 2, 4, 4)).reshape(2, 6, 4, 4) for x in (k, v))
    return sm(q @ t(k) * 0.5) @ v


def grouped_einsum(q, k, v):
    q = q.reshape(2, 3, 2, 4, 4)
    a = sm(np.einsum("bkgqd,bktd->bkgqt", q, k) * 0.5)
    return np.einsum("bkgqt,bktd->bkgqd", a, v).reshape(2, 6, 4, 4)


@pytest.mark.parametrize("spelling", [repeated, broadcast, grouped_einsum])
def test_groups_of_queries_may_share_keys(spelling):
    match = check("attention", spelling, {"q": "f64[2,6,4,4]", "k": "f64[2,3,4,4]", "v": "f64[2,3,4,4]"})
    assert match.facts.extents["b"] == 6
    assert match.facts.extents["i"] == 8


def test_all_queries_may_share_keys():
    specs = {"q": "f64[2,6,4,4]", "k": "f64[2,1,4,4]", "v": "f64[2,1,4,4]"}
    check("attention", textbook, specs)


def test_one_query_one_head_and_one_value_for_all_are_attention_too():
    check("attention", textbook, {"q": "f64[2,3,1,4]", "k": "f64[2,3,9,4]", "v": "f64[2,3,9,4]"})
    check("attention", textbook, dict.fromkeys("qkv", "f64[1,1,5,4]"))
    check("attention", textbook, dict.fromkeys("qkv", "f64[4,4]"))
    check("attention", lambda x: sm(x @ x.T * 0.5) @ x, {"x": "f64[4,4]"})


def test_one_product_may_hold_all_three():
    def slices(x, w):
        y = x @ w
        q, k, v = (part.reshape(2, 4, 3, 4).transpose(0, 2, 1, 3) for part in np.split(y, 3, -1))
        return sm(q @ t(k) * 0.5) @ v

    def axis(x, w):
        y = (x @ w).reshape(2, 4, 3, 3, 4).transpose(2, 0, 3, 1, 4)
        return sm(y[0] @ t(y[1]) * 0.5) @ y[2]

    for spelling in (slices, axis):
        check("attention", spelling, {"x": "f64[2,4,12]", "w": "f64[12,36]"})


def over_queries(q, k, v):
    return sm(q @ t(k) * 0.5, 2) @ v


def cast_weights(q, k, v):
    return sm(q @ t(k) * 0.5).astype("f4").astype("f8") @ v


def multiplied(q, k, v):
    return sm(q @ t(k) * 0.5 * TRIANGLE.astype("f8")) @ v


def multiplied_and_filled(q, k, v):
    m = TRIANGLE.astype(float)
    return sm(q @ t(k) * 0.5 * m - 1e4 * (1 - m)) @ v


def filled_with_zero(q, k, v):
    return sm(np.where(TRIANGLE, q @ t(k) * 0.5, 0)) @ v


def capped(q, k, v):
    return sm(np.tanh(q @ t(k) / 60.0) * 30.0) @ v


@pytest.mark.parametrize(
    ("program", "code"),
    [
        (over_queries, "axis-mixed"), (cast_weights, "cast"), (multiplied, "mask-multiplied"), (capped, "scores-capped"),
        (multiplied_and_filled, "mask-multiplied"), (filled_with_zero, "constant"),
    ],
)  # fmt: skip
def test_a_look_alike_is_refused_and_told_why(program, code):
    check_not("attention", program, QKV, code)


def test_a_choice_that_fills_with_0_is_told_in_numbers_that_exist():
    miss = check_not("attention", filled_with_zero, QKV, "constant")
    assert miss.sentence == "attention needs select to fill in a number other than 0; found 0"


@pytest.mark.parametrize(
    "program",
    [
        lambda q, k, v: sm(q @ t(k) * 0.5) * np.float64(3.0) + v,
        lambda q, k, v: sm(q @ t(k) * 0.5),
        lambda q, k, v: sm(q * 0.5) @ v,
    ],
)
def test_a_softmax_alone_is_no_near_miss_of_attention(program):
    check_not("attention", program, QKV, None)


def test_transposed_axes_of_a_square_are_told_apart():
    def wrong(q, k, v):
        return sm(q @ k * 0.5) @ v  # d of q against positions of k

    _, pool = searched(wrong, QKV)
    found = [m for m in pool.matches if m.pattern == "attention"]
    assert len(found) == 1  # attention whose keys are the columns of k
    assert found[0].facts.layouts["k"].roles == ("b", "d", "j")


def test_the_scale_may_stand_on_queries_whose_projection_carries_a_number():
    def program(x, w, b, k, v):
        scores = (((x * 3.0) @ w + np.tanh(b)) * 0.5) @ k.swapaxes(-1, -2)
        powers = np.exp(scores - scores.max(-1, keepdims=True))
        return powers / powers.sum(-1, keepdims=True) @ v

    match = check(
        "attention", program, {"x": "f32[5,6]", "w": "f32[6,4]", "b": "f32[4]", "k": "f32[7,4]", "v": "f32[7,4]"}
    )
    assert match.facts.constants["scale"] == pytest.approx(0.5)


@pytest.mark.parametrize("number", [1 / 3, 1 / np.sqrt(8.0), 0.1 + 0.2, 1e-3 / 7])
def test_a_scale_is_as_exact_as_float64_holds_it(number):
    def program(q, k, v):
        return sm((q * number) @ t(k)) @ v

    match = check("attention", program, QKV)
    assert match.facts.constants["scale"] == pytest.approx(number, rel=1e-14)


@pytest.mark.parametrize("mask", ["f64[2,1,5,5]", None])
def test_powers_without_the_shift_may_be_divided_by_their_sum_behind_the_second_product(mask):
    def program(q, k, v, mask=None):
        scores = q @ k.swapaxes(-1, -2) * 0.5
        powers = np.exp(scores if mask is None else scores + mask)
        return (powers @ v) / powers.sum(-1, keepdims=True)

    heads = dict.fromkeys("qkv", "f64[2,3,5,4]")
    match = check("attention", program, heads if mask is None else {**heads, "mask": mask})
    assert match.facts.options["shifted"] == "no"


@pytest.mark.parametrize(
    "spread",
    [
        lambda m: np.broadcast_to(m, (5, 5, 5)),
        lambda m: np.broadcast_to(m, (5, 5, 5))[:, None],
        lambda m: np.broadcast_to(m[:, None], (5, 5, 5)),
        lambda m: np.broadcast_to(m[:, :, None], (5, 5, 5))[:, None],
    ],
    ids=["over heads", "over the batch", "over queries", "over keys"],
)
def test_a_mask_that_is_spread_before_it_is_computed_is_proved_where_everything_is_as_long(spread):
    def attended(q, k, v, m):
        scores = q @ k.swapaxes(-1, -2) + np.exp(spread(m))
        powers = np.exp(scores - scores.max(-1, keepdims=True))
        return powers / powers.sum(-1, keepdims=True) @ v

    tape, pool = searched(attended, {"q": "f64[5,5,5,4]", "k": "f64[5,5,5,4]", "v": "f64[5,5,5,4]", "m": "f64[5,5]"})
    (match,) = (one for one in pool.matches if one.pattern == "attention")
    assert [proof.verdict for proof in prove(tape, [match])] == ["proved"]
