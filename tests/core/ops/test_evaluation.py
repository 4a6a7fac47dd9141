"""The numeric rules, against NumPy where they are NumPy's and against the rule's own words where they differ."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.laws.cases import Case
from topos_core.ops.lookup import IndexOutOfRange
from topos_core.tape.type import numpy_dtype

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
NAN, INF = np.nan, np.inf


def check(op: str, operands: list[Any], expected: Any, **attributes: Any) -> None:
    arrays = tuple(np.asarray(x) for x in operands)
    case = Case(op, arrays, attributes)
    got, want = (
        case.definition.evaluate(arrays, attributes, case.type),
        np.asarray(expected, numpy_dtype(case.type.dtype)),
    )
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(np.signbit(got), np.signbit(want)) if want.dtype.kind == "f" else None


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_maximum_and_minimum_let_nan_win_and_order_the_zeros(dtype):
    a = np.array([0.0, -0.0, -0.0, 1.0, NAN, 2.0, -INF], dtype)
    b = np.array([-0.0, 0.0, -0.0, 2.0, 1.0, NAN, INF], dtype)
    check("maximum", [a, b], [0.0, 0.0, -0.0, 2.0, NAN, NAN, INF])
    check("minimum", [a, b], [-0.0, -0.0, -0.0, 1.0, NAN, NAN, -INF])


@pytest.mark.parametrize(("op", "expected"), [("max", [0.0, -0.0, 0.0, NAN]), ("min", [-0.0, -0.0, 0.0, NAN])])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_max_and_min_follow_the_elementwise_rules(op, expected, dtype):
    rows = np.array([[-0.0, 0.0, -0.0], [-0.0, -0.0, -0.0], [0.0, 0.0, 0.0], [NAN, 0.0, -0.0]], dtype)
    check(op, [rows], expected, axes=(1,))
    check(op, [rows.T], expected, axes=(0,))
    check(op, [rows[0]], expected[0], axes=(0,))


def test_sign_keeps_the_sign_of_zero_and_nan():
    check("sign", [np.array([-0.0, 0.0, -3.0, INF, NAN])], [-0.0, 0.0, -1.0, 1.0, NAN])
    check("sign", [np.array([-3, 0, 7], np.int8)], [-1, 0, 1])


def test_round_takes_the_even_neighbour():
    check("round", [np.array([0.5, 1.5, 2.5, -0.5, -1.5])], [0.0, 2.0, 2.0, -0.0, -2.0])


@pytest.mark.parametrize("source", ["f2", "f4", "f8"])
@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("i8", [0, 127, -128, 127, -128, 1, -1]),
        ("u8", [0, 255, 0, 255, 0, 1, 0]),
        ("i32", [0, 2**31 - 1, -(2**31), 60000, -60000, 1, -1]),
        ("i64", [0, 2**63 - 1, -(2**63), 60000, -60000, 1, -1]),
        ("u64", [0, 2**64 - 1, 0, 60000, 0, 1, 0]),
        ("bool", [True, True, True, True, True, True, True]),
    ],
)
def test_floats_become_integers_by_saturating_and_nan_becomes_zero(source, target, expected):
    check("cast", [np.array([NAN, INF, -INF, 60000, -60000, 1.75, -1.75], source)], expected, dtype=target)


@pytest.mark.parametrize("target", ["i32", "u32", "i64", "u64"])
def test_the_edge_of_the_range_is_exact(target):
    limits = np.iinfo(numpy_dtype(target))
    beyond = float(limits.max) + 1.0 if limits.bits == 32 else 2.0 ** (limits.bits - (limits.kind == "i"))
    below = np.nextafter(beyond, 0)
    check("cast", [np.array([beyond, below, limits.min])], [limits.max, int(below), limits.min], dtype=target)


def test_integer_division_drops_the_fraction_and_remainder_floors():
    a, b = np.array([7, -7, 7, -7, -128], np.int8), np.array([2, 2, -2, -2, -1], np.int8)
    check("div", [a, b], [3, -3, -3, 3, -128])
    check("remainder", [a, b], [1, 1, -1, -1, 0])


def test_integer_powers_wrap_and_negative_exponents_drop_the_fraction():
    a, b = np.array([2, 3, 1, -1, -1, 5, 0]), np.array([62, 3, -4, -3, -2, -1, 0])
    check("pow", [a, b], [2**62, 27, 1, -1, 1, 0, 1])


def test_argmax_takes_the_first_nan_else_the_first_maximum():
    check("argmax", [np.array([[1.0, 3.0, 3.0], [1.0, NAN, NAN], [-0.0, 0.0, 0.0]])], [1, 1, 0], axis=1)


def test_logsumexp_is_stable_and_keeps_infinities():
    rows = np.array([[1000.0, 1000.0], [-INF, -INF], [INF, 0.0], [-1000.0, -1000.0]])
    check("logsumexp", [rows], [1000 + np.log(2), -INF, INF, -1000 + np.log(2)], axes=(1,))


@pytest.mark.parametrize("op", ["sum", "prod"])
@pytest.mark.parametrize(
    ("dtype", "accumulate"), [("i1", "i64"), ("u1", "u64"), ("f2", "f32"), ("f4", "f32"), ("f4", "f64")]
)
def test_sums_are_numpys_for_the_accumulation_dtype(op, dtype, accumulate):
    x = (np.random.default_rng(0).uniform(0, 5, (3, 40, 2))).astype(dtype)
    ufunc = {"sum": np.add, "prod": np.multiply}[op]
    expected = ufunc.reduce(x, (1,), dtype=numpy_dtype(accumulate))
    with np.errstate(all="ignore"):
        check(op, [x], expected.astype(dtype), axes=(1,), accumulate=accumulate)


def test_a_product_runs_in_its_accumulation_dtype():
    a, b = np.full((1, 4), 300, np.int16), np.full((4, 1), 300, np.int16)
    check("matmul", [a, b], np.array([[4 * 90000]]).astype(np.int16), accumulate="i32")
    x = np.array([[2048.0, 1.0, 1.0]], np.float16)  # in f16 the ones would be lost one by one
    check("matmul", [x, np.ones((3, 1), np.float16)], [[2050.0]], accumulate="f16")


def test_duplicates_accumulate_in_scatter_add():
    check("scatter_add", [np.zeros(3), np.array([1, 1, 2]), np.array([1.0, 2.0, 4.0])], [0.0, 3.0, 4.0], axis=0)


@pytest.mark.parametrize("index", [-1, 3])
def test_indices_do_not_count_from_the_end(index):
    with pytest.raises(IndexOutOfRange, match=f"index {index} is out of range for an axis of 3; use 0 to 2"):
        check("gather", [np.zeros(3), np.array([0, index])], [0, 0], axis=0)


def test_indices_are_held_to_their_own_axis():
    index = np.array([-3, 2])
    check("within", [index], index, low=-3, high=3)
    check("within", [np.zeros(0, np.int64)], np.zeros(0, np.int64), low=0, high=0)
    for low, high, told in ((-2, 3, "-3"), (-3, 2, "2")):
        with pytest.raises(IndexOutOfRange, match=f"index {told} is out of range for an axis of {high}; use {low} to"):
            check("within", [index], index, low=low, high=high)


def test_pad_crops_spreads_and_fills():
    x = np.array([1, 2, 3])
    check("pad", [x], [9, 1, 9, 2, 9, 3], fill=np.int64(9), low=(1,), high=(0,), interior=(1,))
    check("pad", [x], [2, 9, 3, 9], fill=np.int64(9), low=(-2,), high=(1,), interior=(1,))
    check("pad", [x], [9, 2, 9], fill=np.int64(9), low=(-1,), high=(-1,), interior=(1,))
    check("pad", [x], [], fill=np.int64(9), low=(-3,), high=(0,), interior=(0,))


def test_bf16_stays_bf16():
    bf16 = numpy_dtype("bf16")
    check(
        "mul", [np.array([3.0], bf16), np.array([0.333], bf16)], np.array([3.0 * float(bf16.type(0.333))]).astype(bf16)
    )
    check("exp", [np.array([1.0], bf16)], [2.71875])
