"""What is drawn from NumPy's global random state while recording is noted where it is frozen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from topos_core import f32, trace
from topos_core.tape.tape import Tape

GENERATOR = np.random.default_rng(0)
DRAWN = np.random.default_rng(1).random(100)


def small(x: Any) -> Any:
    return x * (np.random.rand(4) > 0.5)


def large(x: Any) -> Any:
    scaled = x * 2
    return scaled.sum() + np.random.randn(100)


def twice(x: Any) -> Any:
    first = x + np.random.rand(4)
    return first * np.random.rand(4)


def number(x: Any) -> Any:
    return x * float(np.random.rand())


def seeded(x: Any) -> Any:
    np.random.seed(7)
    return x + np.arange(4)


class Drawing:
    def __init__(self) -> None:
        self.weight = np.random.rand(4)

    def __call__(self, x: Any) -> Any:
        return x * self.weight


def noted(function: Callable[..., Any]) -> tuple[Tape, list[str]]:
    state = np.random.get_state()
    try:
        tape = trace(function, f32[4])
    finally:
        np.random.set_state(state)
    assert {note.code for note in tape.notes} <= {"TP702"}
    assert all("random numbers were drawn while recording" in note.message for note in tape.notes)
    return tape, [tape.ops[note.value].name for note in tape.notes]


@pytest.mark.parametrize(
    ("function", "places"),
    [
        (small, ["constant"]),
        (large, ["parameter"]),
        (twice, ["constant", "constant"]),
        (number, ["input"]),
        (seeded, ["constant"]),
        (lambda x: np.random.shuffle([1, 2]) or x * 2, ["input"]),
    ],
)
def test_a_draw_is_noted_at_what_it_froze_or_at_the_entry(function: Callable[..., Any], places: list[str]) -> None:
    _, found = noted(function)
    assert found == places


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * 2 + np.arange(4),
        lambda x: x.sum() + DRAWN,
        lambda x: x + GENERATOR.random(4),
        lambda x: x + np.random.default_rng(3).random(4),
        Drawing,
    ],
)
def test_nothing_is_noted_where_the_global_state_stays(function: Callable[..., Any]) -> None:
    _, found = noted(function)
    assert found == []


def test_the_note_stands_at_the_expression_that_captured() -> None:
    tape, _ = noted(twice)
    lines = [tape.location_of(note.value).span.line for note in tape.notes]
    start = twice.__code__.co_firstlineno
    assert lines == [start + 1, start + 2]
