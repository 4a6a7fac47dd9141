import contextlib
from typing import Any

import numpy as np
import pytest

from tests.core.recording.check import refusal
from topos_core.errors import RecordingError, ToposError
from topos_core.recording.spec import f32
from topos_core.recording.trace import trace


def branch(x: Any) -> Any:
    try:
        if x.sum() > 0:
            return x * 2
    except Exception:
        pass
    return x * 3


def bare(x: Any) -> Any:
    try:  # noqa: SIM105  # as people write it
        x[0] = 1
    except:  # noqa: E722
        pass
    return x


def as_array(x: Any) -> Any:
    with contextlib.suppress(Exception):
        x = x * np.asarray(x)
    return x


def in_a_caller(x: Any) -> Any:
    def inner(y: Any) -> Any:
        return y * float(y.sum())

    try:
        return inner(x)
    except Exception:
        return x


@pytest.mark.parametrize(
    ("model", "text"),
    [(branch, "x.sum() > 0"), (bare, "x[0]"), (as_array, "np.asarray(x)"), (in_a_caller, "float(y.sum())")],
)
def test_an_error_that_the_function_swallows_is_told_at_its_expression(model, text):
    shown, message = refusal(model, x=f32[2, 3])
    assert shown == text
    assert "the function caught this error and went on" in message


def test_who_catches_the_error_by_its_name_knows_what_follows():
    def by_name(x: Any) -> Any:
        try:
            return x * float(x.sum())
        except (ValueError, ToposError):
            return x * 2

    def by_a_caller(x: Any) -> Any:
        def inner(y: Any) -> Any:
            return y * float(y.sum())

        with contextlib.suppress(RecordingError):
            x = inner(x)
        return x * 2

    for model in (by_name, by_a_caller):
        assert trace(model, x=f32[3]).ops[-1].name == "mul"


def test_probing_for_attributes_is_no_error():
    def model(x: Any) -> Any:
        return x.numpy() if hasattr(x, "numpy") else getattr(x, "tolist", None) or x + 1

    assert trace(model, x=f32[3]).ops[-1].name == "add"


def test_what_cannot_be_returned_is_told_at_the_return():
    def model(x: Any) -> Any:
        y = x * 2
        return {y}

    shown, message = refusal(model, x=f32[3])
    assert shown == "return {y}"
    assert "the result is a set" in message
