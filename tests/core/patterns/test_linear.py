from __future__ import annotations

import numpy as np
import pytest

from tests.core.patterns.check import check, searched

XWB = {"x": "f64[4,5]", "w": "f64[5,6]", "b": "f64[6]"}


def matmul(x, w, b):
    return x @ w + b


def einsum(x, w, b):
    return np.einsum("bi,io->bo", x, w) + b[None]


def multiply_and_sum(x, w, b):
    return (x[:, :, None] * w[None]).sum(1) + b


def tensordot(x, w, b):
    return b + np.tensordot(x, w, 1)


def dot(x, w, b):
    return np.dot(x, w) - (-b)


def transposed(x, w, b):
    return (w.T @ x.T).T + b


def scaled_inside(x, w, b):
    return (x * 2.0) @ w / 2.0 + b


def stacked_rows(x, w, b):
    return (x.reshape(2, 2, 5) @ w).reshape(4, 6) + b


@pytest.mark.parametrize(
    "spelling", [matmul, einsum, multiply_and_sum, tensordot, dot, transposed, scaled_inside, stacked_rows]
)
def test_every_spelling_is_one_linear_layer(spelling):
    match = check("linear", spelling, XWB)
    assert match.facts.extents == {"b": 4, "r": 5, "n": 6}
    assert set(match.bindings) == {"x", "w", "bias"}


def test_the_weight_may_be_transposed_and_the_batch_have_axes():
    match = check("linear", lambda x, w, b: b + x @ w.T, {"x": "f64[2,3,5]", "w": "f64[6,5]", "b": "f64[6]"})
    assert match.facts.layouts["w"].roles == ("n", "r")
    assert match.facts.extents["b"] == 6


def test_columns_may_be_examples():
    match = check(
        "linear", lambda x, w, b: (w @ x) + b.reshape(6, 1), {"x": "f64[5,4]", "w": "f64[6,5]", "b": "f64[6]"}
    )
    assert match.bindings == {"x": 0, "w": 1, "bias": 2}


def test_heads_may_lie_inside_the_outputs():
    def heads(x, w, b):
        return (x @ w.reshape(5, 8)).reshape(2, 3, 2, 4) + b

    check("linear", heads, {"x": "f64[2,3,5]", "w": "f64[5,2,4]", "b": "f64[2,4]"})


def test_without_a_bias_the_right_operand_is_the_weight():
    assert check("linear", lambda x, w: x @ w, {"x": "f64[4,5]", "w": "f64[5,6]"}).bindings == {"x": 0, "w": 1}
    assert check("linear", lambda w, x: x @ w, {"w": "f64[5,6]", "x": "f64[4,5]"}).bindings == {"x": 1, "w": 0}


def test_a_constant_or_a_parameter_is_the_weight():
    table = np.arange(30.0).reshape(5, 6) - 12.5

    def left(x):
        return table.T @ x

    match = check("linear", left, {"x": "f64[5,4]"})
    tape, _ = searched(left, {"x": "f64[5,4]"})
    assert tape.ops[match.bindings["w"]].name in ("constant", "parameter")


@pytest.mark.parametrize(
    "program",
    [
        lambda x, w, c: x @ w + c,  # one number per element
        lambda x, w, c: (x @ w) * 0 + c,
    ],
)
def test_what_is_no_bias_stays_outside(program):
    _, pool = searched(program, {"x": "f64[4,5]", "w": "f64[5,6]", "c": "f64[4,6]"})
    assert [m for m in pool.matches if m.pattern == "linear" and "bias" in m.bindings] == []


@pytest.mark.parametrize("program", [lambda x, w: x @ w + x, lambda x, w: (y := x @ w) - y.max(-1, keepdims=True)])
def test_a_residual_is_no_bias_and_nothing_to_tell(program):
    _, pool = searched(program, {"x": "f64[4,5]", "w": "f64[5,5]"})
    (match,) = [m for m in pool.matches if m.pattern == "linear"]
    assert match.stopped == ()


def test_a_bias_along_the_wrong_axis_is_told():
    _, pool = searched(lambda x, w, b: x @ w + b[None, :, None], {"x": "f64[2,4,5]", "w": "f64[5,6]", "b": "f64[4]"})
    found = [m for m in pool.matches if m.pattern == "linear"]
    assert [note.code for match in found for note in match.stopped] == ["axis"]


def test_batched_operands_and_windows_are_no_linear_layer():
    _, pool = searched(lambda a, b: a @ b, {"a": "f64[2,4,5]", "b": "f64[2,5,6]"})
    assert [m for m in pool.matches if m.pattern == "linear"] == []

    def windows(x, w):
        rows = np.lib.stride_tricks.sliding_window_view(x, 3, 1).reshape(-1, 3)
        return rows @ w

    _, pool = searched(windows, {"x": "f64[2,8]", "w": "f64[3,4]"})
    assert [m for m in pool.matches if m.pattern == "linear"] == []


def test_a_batch_axis_does_not_stand_in_for_a_reduction_over_one_element():
    def outer(x, w):
        return x.reshape(2, 3, 1) @ w.reshape(2, 1, 3)

    _, pool = searched(outer, {"x": "f64[2,3]", "w": "f64[2,3]"})
    assert [m for m in pool.matches if m.pattern == "linear"] == []


@pytest.mark.parametrize("value", [1.0, -np.inf])
def test_an_x_that_is_padded_with_another_number_than_0_is_bound_as_it_is(value):
    def padded(x, w):
        return np.pad(x, ((0, 0), (1, 1)), constant_values=value) @ w

    match = check("linear", padded, {"x": "f64[4,5]", "w": "f64[7,6]"})
    assert match.bindings["x"] != 0


def test_a_column_of_ones_is_no_image_with_a_pad():
    def program(x, w, b):
        return np.concatenate([x, np.ones((4, 1))], -1) @ np.concatenate([w, b[None]], 0)

    check("linear", program, {"x": "f64[4,5]", "w": "f64[5,6]", "b": "f64[6]"})
    _, pool = searched(program, {"x": "f64[4,5]", "w": "f64[5,6]", "b": "f64[6]"})
    assert pool.near_misses == ()


def test_windows_over_a_pad_with_another_number_are_a_convolutions():
    def program(x, w):
        padded = np.pad(x, ((0, 0), (2, 0)), constant_values=1.0)
        return np.lib.stride_tricks.sliding_window_view(padded, 3, axis=1) @ w

    _, pool = searched(program, {"x": "f64[4,5]", "w": "f64[3,6]"})
    assert {match.pattern for match in pool.matches} == {"convolution"}


@pytest.mark.parametrize(
    ("equation", "x", "w", "b"),
    [
        ("btd,dnh->btnh", "f64[2,3,8]", "f64[8,2,4]", "f64[2,4]"),
        ("dnh,btd->btnh", "f64[2,3,8]", "f64[8,2,4]", "f64[2,4]"),
        ("btd,ndh->bnth", "f64[2,3,8]", "f64[2,8,4]", "f64[2,1,4]"),
        ("btnh,nhd->btd", "f64[2,3,2,4]", "f64[2,4,8]", "f64[8]"),
        ("abtd,dnh->abtnh", "f64[2,2,3,8]", "f64[8,2,4]", "f64[2,4]"),
    ],
)
def test_a_weight_whose_first_axis_is_summed_is_no_image(equation, x, w, b):
    def dense(x, w, b):
        turned = equation.startswith(("dnh", "nhd,"))
        return np.einsum(equation, *((w, x) if turned else (x, w))) + b

    specs = {"x": x, "w": w, "b": b}
    match = check("linear", dense, specs)
    assert match.bindings == {"x": 0, "w": 1, "bias": 2}
    _, pool = searched(dense, specs)
    assert not {one.pattern for one in pool.matches} & {"convolution", "conv_bn_activation"}


def test_an_image_with_a_batch_and_heads_of_its_channels_is_one():
    def projected(x, w):
        return np.einsum("bchw,nkc->bnkhw", x, w)

    _, pool = searched(projected, {"x": "f64[2,6,5,5]", "w": "f64[2,4,6]"})
    assert "convolution" in {one.pattern for one in pool.matches}
