"""The law of recording: the recorded program, interpreted, gives what the same program gives on NumPy arrays."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special
from numpy.lib.stride_tricks import sliding_window_view

from tests.laws.expressions import CLOSE, EXACT, REFUSED, split
from topos_core.errors import RecordingError
from topos_core.recording import elementary
from topos_core.recording.trace import trace
from topos_core.run.interpreter import interpret
from topos_core.tape.type import TensorType, dtype_name

GENERATOR = np.random.default_rng(3)
ARRAYS = {
    "x": GENERATOR.standard_normal((3, 4)).astype("f4"),
    "y": GENERATOR.standard_normal((3, 4)).astype("f4"),
    "v": GENERATOR.standard_normal(4).astype("f4"),
    "t": GENERATOR.standard_normal((2, 3, 4, 5)).astype("f4"),
    "h": GENERATOR.standard_normal((3, 4)).astype("f2"),
    "n": GENERATOR.integers(-5, 6, (3, 4)).astype("i4"),
    "k": GENERATOR.integers(-9, 10, (3, 4)).astype("i1"),
    "u": GENERATOR.integers(0, 200, (3, 4)).astype("u1"),
    "m": GENERATOR.random((3, 4)) < 0.5,
    "i": np.array([1, 0, -1]),
    "j": np.array([[0, 1], [2, 0]], "u2"),
}
CAPTURED = {
    "A": np.arange(12, dtype="f4").reshape(3, 4),
    "D": np.arange(12, dtype="f8").reshape(3, 4),
    "WIDE": GENERATOR.standard_normal((40, 4)).astype("f4"),
    "TABLE": np.arange(160).reshape(40, 4),
    "LAYERS": GENERATOR.standard_normal((3, 20, 20)).astype("f4"),
    "COLUMNS": np.asfortranarray(GENERATOR.standard_normal((20, 20)).astype("f4")),
    "FLAT": GENERATOR.standard_normal(400).astype("f4"),
    "REGROUPED": np.arange(100, dtype="f4").reshape(4, 25),
}
NAMES = {**CAPTURED, "np": np, "tp": elementary, "scipy": scipy, "sliding_window_view": sliding_window_view}


def program(text: str) -> tuple[Callable[..., Any], dict[str, np.ndarray]]:
    """Makes a function of the arrays that an expression names."""
    named = [name for name in ARRAYS if re.search(rf"\b{name}\b", text)]
    return eval(f"lambda {', '.join(named)}: {text}", NAMES), {name: ARRAYS[name] for name in named}


def both(text: str) -> tuple[tuple[np.ndarray, ...], list[np.ndarray]]:
    """Gives what the recorded program gives, and what NumPy gives."""
    function, arrays = program(text)
    tape = trace(
        function, **{name: TensorType(dtype_name(each.dtype) or "", each.shape) for name, each in arrays.items()}
    )
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        wanted = function(**{name: each.copy() for name, each in arrays.items()})
        got = interpret(tape, list(arrays.values()))
    return got, [np.asarray(each) for each in (wanted if isinstance(wanted, (tuple, list)) else [wanted])]


def check(text: str, tolerance: float) -> None:
    """Compares dtypes and shapes, and values bit for bit or within a tolerance relative to the largest."""
    got, wanted = both(text)
    assert len(got) == len(wanted), text
    for one, other in zip(got, wanted, strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape), text
        if tolerance and other.dtype.kind == "f":
            scale = max(1.0, float(np.abs(other[np.isfinite(other)]).max(initial=0)))
            np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance * scale, err_msg=text)
        else:
            np.testing.assert_array_equal(one, other, err_msg=text)


@pytest.mark.parametrize("group", EXACT)
def test_recorded_expressions_equal_numpy_bit_for_bit(group: str) -> None:
    for text in split(EXACT[group]):
        check(text, 0.0)


@pytest.mark.parametrize("group", CLOSE)
def test_recorded_products_equal_numpy_up_to_the_order_of_sums(group: str) -> None:
    for text in split(CLOSE[group]):
        check(text, 2e-3 if re.search(r"\bh\b", text) else 2e-6)


@pytest.mark.parametrize("text", split(REFUSED))
def test_what_cannot_be_recorded_is_refused(text: str) -> None:
    function, arrays = program(text)
    with pytest.raises(RecordingError):
        trace(function, **{name: TensorType(dtype_name(each.dtype) or "", each.shape) for name, each in arrays.items()})


def test_the_law_covers_hundreds_of_expressions() -> None:
    assert sum(len(split(text)) for text in EXACT.values()) > 600
    assert sum(len(split(text)) for text in CLOSE.values()) > 80
