"""Dtypes: NumPy's own answer for every pair, and a note where a NumPy scalar made a float wider."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from tests.core.recording.check import source_of
from topos_core.errors import RecordingError
from topos_core.recording.spec import bf16, f16, f32, i32
from topos_core.recording.trace import trace
from topos_core.tape.type import DTYPE_NAMES, SIGNED, TensorType, dtype_name, numpy_dtype

OPERATIONS: dict[str, Any] = {
    "add": lambda a, b: a + b,
    "divide": lambda a, b: a / b,
    "floor_divide": lambda a, b: a // b,
    "less": lambda a, b: a < b,
    "maximum": lambda a, b: np.maximum(a, b),
    "where": lambda a, b: np.where(True, a, b),
    "concatenate": lambda a, b: np.concatenate([a, b]),
    "matmul": lambda a, b: a @ b,
}
NUMPY_NAMES = [name for name in DTYPE_NAMES if name != "bf16"]


@pytest.mark.parametrize("name", OPERATIONS)
def test_two_arrays_promote_as_numpys_do(name: str) -> None:
    operation = OPERATIONS[name]
    for one, other in itertools.product(NUMPY_NAMES, repeat=2):
        if name == "less" and _needs_mixed_signs(one, other):
            continue
        arrays = [np.ones(2, numpy_dtype(each)) for each in (one, other)]
        wanted = dtype_name(operation(*arrays).dtype)
        tape = trace(operation, TensorType(one, (2,)), TensorType(other, (2,)))
        assert tape.type_of(tape.results[0]).dtype == wanted, (one, other)


def _needs_mixed_signs(one: str, other: str) -> bool:
    """NumPy compares u64 with signed integers in a loop of two dtypes, for which there is no op."""
    return "u64" in (one, other) and bool({one, other}.intersection(SIGNED))


def test_comparing_u64_with_signed_integers_is_refused() -> None:
    with pytest.raises(RecordingError, match=r"operand dtypes differ: u64\[2\] and i64\[2\]; cast one of them"):
        trace(OPERATIONS["less"], TensorType("u64", (2,)), TensorType("i64", (2,)))


SCALARS = [
    2,
    2.5,
    True,
    np.float32(2),
    np.float64(2),
    np.float16(2),
    np.int8(2),
    np.int64(2),
    np.uint8(2),
    np.bool_(True),
]


@pytest.mark.parametrize("scalar", SCALARS, ids=lambda scalar: f"{type(scalar).__name__}")
def test_an_array_and_a_number_promote_as_numpys_do(scalar: Any) -> None:
    for name in NUMPY_NAMES:
        array = np.ones(2, numpy_dtype(name))
        for operation in (OPERATIONS["add"], OPERATIONS["divide"], OPERATIONS["less"], OPERATIONS["where"]):
            signed = isinstance(scalar, np.generic) and dtype_name(scalar.dtype) in SIGNED
            if operation is OPERATIONS["less"] and name == "u64" and signed:
                continue
            for flipped in (False, True):
                both = (lambda x: operation(scalar, x)) if flipped else (lambda x: operation(x, scalar))  # noqa: B023
                tape = trace(both, TensorType(name, (2,)))
                assert tape.type_of(tape.results[0]).dtype == dtype_name(np.asarray(both(array)).dtype), name


BF16 = {"f16": "f32", "f32": "f32", "f64": "f64"}


@pytest.mark.parametrize("other", [name for name in DTYPE_NAMES if name != "bf16"])
def test_bf16_yields_to_wider_floats_only(other: str) -> None:
    for name in ("add", "where", "concatenate", "matmul"):
        tape = trace(OPERATIONS[name], bf16[2], TensorType(other, (2,)))
        assert tape.type_of(tape.results[0]).dtype == BF16.get(other, "bf16"), name


def test_reductions_of_bf16_accumulate_in_f32() -> None:
    tape = trace(lambda x: (x.sum(), x @ x, np.var(x), np.cumsum(x)), bf16[4])
    running = [op.attributes["accumulate"] for op in tape.ops if "accumulate" in op.attributes]
    assert running == ["f32"] * len(running)
    assert [tape.type_of(value).dtype for value in tape.results] == ["bf16"] * 4


def test_sums_carry_numpys_accumulation_dtype() -> None:
    def running(function: Any, spec: Any) -> list[str]:
        return [op.attributes["accumulate"] for op in trace(function, spec).ops if "accumulate" in op.attributes]

    assert running(np.sum, f16[4]) == ["f16"]
    assert running(np.mean, f16[4]) == ["f32"]
    assert running(np.var, f16[4]) == ["f16", "f16"]
    assert running(np.sum, i32[4]) == ["i64"]
    assert running(np.sum, TensorType("u8", (4,))) == ["u64"]
    assert running(lambda x: x @ x, f16[4]) == ["f32"]
    assert running(lambda x: x @ x, i32[4]) == ["i32"]


def test_the_variance_of_many_halves_does_not_overflow_its_count() -> None:
    from topos_core.run.interpreter import interpret

    x = np.resize(np.array([-1, 1], "f2"), 70_000)
    (got,) = interpret(trace(lambda x: np.var(x), f16[70_000]), [x])
    np.testing.assert_allclose(got.astype("f4"), np.var(x).astype("f4"), rtol=1e-3)


WIDENED = {
    "root of a number": lambda x: x / np.sqrt(64),
    "product of a shape": lambda x: x / np.prod(x.shape),
    "integer scalar": lambda x: x * np.int64(3),
    "0-d array": lambda x: x + np.array(1.0),
    "where": lambda x: np.where(x > 0, x, np.float64(0)),
    "clip": lambda x: np.minimum(x, np.float64(6)),
}


@pytest.mark.parametrize("name", WIDENED)
def test_a_numpy_scalar_that_widens_is_noted_at_its_expression(name: str) -> None:
    tape = trace(WIDENED[name], f32[4])
    (note,) = tape.notes
    assert note.code == "TP701"
    assert tape.type_of(note.value).dtype == "f64"
    assert "f32 became f64 here because" in note.message
    assert "float()" in note.message
    assert source_of(tape, tape.location_of(note.value).span) in __import__("inspect").getsource(WIDENED[name])


QUIET = {
    "Python numbers": lambda x: x / math.sqrt(64) * 2,
    "scalars of the same dtype": lambda x: x * np.float32(3),
    "arrays": lambda x: x * np.ones(4),
    "integers": lambda x: x.astype(int) * np.int64(3),
    "narrower scalars": lambda x: x * np.float16(3),
    "comparisons of equal width": lambda x: x > np.float32(0),
    "already wide": lambda x: x.astype("f8") * np.float64(3),
    "an array that widens anyway": lambda x: np.add(x, np.ones(4)) * np.float64(2),
}


@pytest.mark.parametrize("name", QUIET)
def test_nothing_is_noted_where_no_numpy_scalar_widens(name: str) -> None:
    assert trace(QUIET[name], f32[4]).notes == ()


def test_a_dtype_argument_reads_numpys_names_and_topos_objects() -> None:
    for dtype, wanted in (
        ("f4", "f32"),
        (np.float64, "f64"),
        (float, "f64"),
        ("i8", "i64"),
        (bf16, "bf16"),
        ("bf16", "bf16"),
        (">f4", "f32"),
    ):
        tape = trace(lambda x: x.astype(dtype), f16[2])  # noqa: B023
        assert tape.type_of(tape.results[0]).dtype == wanted
    with pytest.raises(RecordingError, match="dtype 'f33' is not known"):
        trace(lambda x: x.astype("f33"), f16[2])
