"""What is drawn from random states while recording is noted where it is frozen."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import topos_core as tp
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
        Drawing,
    ],
)
def test_nothing_is_noted_where_every_state_stays(function: Callable[..., Any]) -> None:
    _, found = noted(function)
    assert found == []


def test_the_note_stands_at_the_expression_that_captured() -> None:
    tape, _ = noted(twice)
    lines = [tape.location_of(note.value).span.line for note in tape.notes]
    start = twice.__code__.co_firstlineno
    assert lines == [start + 1, start + 2]


def of_its_own(x: Any) -> Any:
    return x + np.random.default_rng(0).standard_normal(2).astype(np.float32)


def of_the_file(x: Any) -> Any:
    return x + GENERATOR.standard_normal(2).astype(np.float32)


def of_python(x: Any) -> Any:
    return x * random.random()


def unused(x: Any) -> Any:
    return x + np.float32(len(str(GENERATOR.bit_generator.state)) > 0)


@pytest.mark.parametrize("function", [of_its_own, of_the_file, of_python])
def test_numbers_of_every_known_generator_are_noted(function: Any) -> None:
    assert [note.code for note in tp.trace(function, "f32[2]").notes] == ["TP702"]


def test_a_generator_that_is_only_looked_at_is_not_noted() -> None:
    assert tp.trace(unused, "f32[2]").notes == ()


def test_making_generators_is_as_it_was_after_a_recording() -> None:
    made = np.random.default_rng
    tp.trace(of_its_own, "f32[2]")
    assert np.random.default_rng is made


def test_a_function_that_returns_nothing_is_told() -> None:
    def nothing(x: Any) -> None:
        x + 1

    def observing(x: Any) -> None:
        tp.observe(x + 1, "y")

    assert [note.code for note in tp.trace(nothing, "f32[2]").notes] == ["TP703"]
    assert tp.trace(observing, "f32[2]").notes == ()
