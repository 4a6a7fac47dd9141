"""Exceptions of user code end with what to do about them."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import topos_core as tp
from topos_core.recording.hints import remedy


def endless(x: Any) -> Any:
    return endless(x)


def misspelt(x: Any) -> Any:
    return np.frobnicate(x)  # type: ignore[attr-defined]


def nearly(x: Any) -> Any:
    return np.maximun(x, 0)  # type: ignore[attr-defined]


def typeless(x: Any) -> Any:
    return x + np.zeros(3, "f33")


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (endless, "calls itself without an end here; end it by what is known while recording"),
        (misspelt, "dir(numpy) lists what it has"),
        (nearly, "did you mean numpy.maximum?"),
        (typeless, "write a dtype that NumPy has, such as 'float32'"),
    ],
)
def test_what_the_function_raises_is_told_with_a_remedy(function: Callable[..., Any], words: str) -> None:
    with pytest.raises(tp.TraceError) as caught:
        tp.trace(function, "f32[3]")
    assert caught.value.code == "TP402"

    assert words in caught.value.message


def test_a_name_that_a_module_has_not_is_told_with_the_nearest() -> None:
    with pytest.raises(ImportError) as caught:
        exec("from numpy import maximun", {})
    assert remedy(caught.value) == "did you mean numpy.maximum?"


def test_an_exception_that_says_enough_is_left_alone() -> None:
    with pytest.raises(ModuleNotFoundError) as caught:
        importlib.import_module("no_such_module")
    assert remedy(caught.value) is None
    assert remedy(ValueError("x is negative")) is None
