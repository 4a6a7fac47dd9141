"""Scopes: function names below the entry, and names opened by hand, in the order of the stack."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

from topos_core.recording.scope import scope
from topos_core.recording.spec import f32
from topos_core.recording.trace import trace


def attend(x: Any) -> Any:
    return np.tanh(x)


def block(x: Any) -> Any:
    x = np.exp(x)
    with scope("attention"):
        x = attend(x)
        x = np.sqrt(x)
    return np.log(x)


def model(x: Any) -> Any:
    for k in range(2):
        with scope(f"layer{k}"):
            x = block(x)
    return np.abs(x)


class Layer:
    def __call__(self, x: Any) -> Any:
        return self.inner(x)

    def inner(self, x: Any) -> Any:
        return np.exp(x)


def uses_layer(x: Any) -> Any:
    return Layer()(x)


def in_lambda(x: Any) -> Any:
    return (lambda v: [np.exp(each) for each in (v,)])(x)[0]


def wrapped(function: Any) -> Any:
    @functools.wraps(function)
    def wrapper(*arguments: Any) -> Any:
        return np.abs(function(*arguments))

    return wrapper


@wrapped
def wrapped_model(x: Any) -> Any:
    return attend(x)


CASES = {
    model: [
        ("exp", ("layer0", "block")),
        ("tanh", ("layer0", "block", "attention", "attend")),
        ("sqrt", ("layer0", "block", "attention")),
        ("log", ("layer0", "block")),
        ("exp", ("layer1", "block")),
        ("tanh", ("layer1", "block", "attention", "attend")),
        ("sqrt", ("layer1", "block", "attention")),
        ("log", ("layer1", "block")),
        ("abs", ()),
    ],
    uses_layer: [("exp", ("Layer", "Layer.inner"))],
    in_lambda: [("exp", ())],
    wrapped_model: [("tanh", ("attend",)), ("abs", ())],
}


@pytest.mark.parametrize("function", CASES, ids=lambda function: function.__name__)
def test_scope_runs_from_the_entry_to_the_op(function: Any) -> None:
    tape = trace(function, x=f32[2])
    found = [(op.name, tape.locations[op.location].scope) for op in tape.ops if op.name != "input"]
    assert found == CASES[function]


def test_the_same_line_in_two_scopes_is_two_locations() -> None:
    tape = trace(model, x=f32[2])
    rows = [op.location for op in tape.ops if op.name == "tanh"]
    assert len(set(rows)) == 2
    assert tape.locations[rows[0]].span == tape.locations[rows[1]].span


def test_a_scope_closes_when_its_block_raises() -> None:
    def leaves(x: Any) -> Any:
        try:
            with scope("inside"):
                raise KeyError
        except KeyError:
            return np.exp(x)

    tape = trace(leaves, x=f32[2])
    assert tape.location_of(1).scope == ()


def test_outside_of_a_trace_a_scope_does_nothing() -> None:
    with scope("anything"):
        assert np.exp(0.0) == 1
