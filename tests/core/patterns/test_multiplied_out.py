"""A norm that is multiplied out, `x * (g * r) + (b - m * g * r)`, is told part by part where one part has another factor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.core.patterns.check import searched

Spelled = Callable[[Any, Any, Any, Any, Any], Any]
SPELLED: dict[str, Spelled] = {
    "the mean without the scale": lambda x, g, b, m, r: x * (g * r) + (b - m * r),
    "the mean without the root": lambda x, g, b, m, r: x * (g * r) + (b - m * g),
    "the mean added": lambda x, g, b, m, r: x * (g * r) + (b + m * g * r),
    "x without the scale": lambda x, g, b, m, r: x * r + (b - m * g * r),
}
TOLD = {
    "the mean without the scale": ("mean-factor", "the mean times the reciprocal deviation, without the scale"),
    "the mean without the root": ("mean-factor", "the mean times the scale, without the reciprocal deviation"),
    "the mean added": ("mean-sign", "the mean times that factor, added"),
    "x without the scale": ("scale-missing", "x times the reciprocal deviation, without the scale"),
}
ROWS = {"x": "f32[3,8]", "g": "f32[8]", "b": "f32[8]"}
BATCH = {"x": "f32[2,4,5,5]", "g": "f32[4,1,1]", "b": "f32[4,1,1]"}
IMAGES = {"x": "f32[2,4,5,5]", "g": "f32[4,1,1]", "b": "f32[4,1,1]", "m": "f32[4,1,1]", "v": "f32[4,1,1]"}


def of_rows(spelled: Spelled) -> Callable[..., Any]:
    def program(x: Any, g: Any, b: Any) -> Any:
        mean = x.mean(-1, keepdims=True)
        return spelled(x, g, b, mean, 1 / np.sqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-5))

    return program


def of_images(spelled: Spelled) -> Callable[..., Any]:
    return lambda x, g, b, m, v: spelled(x, g, b, m, 1 / np.sqrt(v + 1e-5))


def of_a_batch(spelled: Spelled) -> Callable[..., Any]:
    def program(x: Any, g: Any, b: Any) -> Any:
        mean = x.mean((0, 2, 3), keepdims=True)
        return spelled(x, g, b, mean, 1 / np.sqrt(((x - mean) ** 2).mean((0, 2, 3), keepdims=True) + 1e-5))

    return program


@pytest.mark.parametrize("name", SPELLED)
def test_a_batch_norm_of_its_own_statistics_tells_the_part_with_another_factor(name: str) -> None:
    _, pool = searched(of_a_batch(SPELLED[name]), BATCH)
    assert [(one.pattern, one.code, one.found) for one in pool.near_misses] == [("batch_norm_training", *TOLD[name])]


@pytest.mark.parametrize("name", SPELLED)
def test_a_layer_norm_tells_the_part_with_another_factor(name: str) -> None:
    _, pool = searched(of_rows(SPELLED[name]), ROWS)
    assert [(one.pattern, one.code, one.found) for one in pool.near_misses] == [("layer_norm", *TOLD[name])]


@pytest.mark.parametrize("name", SPELLED)
def test_a_batch_norm_tells_the_part_with_another_factor(name: str) -> None:
    _, pool = searched(of_images(SPELLED[name]), IMAGES)
    if name == "x without the scale":  # a batch norm of another mean: m * g
        assert "batch_norm_inference" in {match.pattern for match in pool.matches}
        assert not pool.near_misses
    else:
        told = [(one.pattern, one.code, one.found) for one in pool.near_misses]
        assert told == [("batch_norm_inference", *TOLD[name])]


def test_the_norm_itself_is_found_and_nothing_told() -> None:
    def right(x: Any, g: Any, b: Any, m: Any, r: Any) -> Any:
        return x * (g * r) + (b - m * g * r)

    for program, specs, name in (
        (of_rows(right), ROWS, "layer_norm"),
        (of_images(right), IMAGES, "batch_norm_inference"),
        (of_a_batch(right), BATCH, "batch_norm_training"),
    ):
        tape, pool = searched(program, specs)
        assert (name, tape.results[0]) in {(match.pattern, match.root) for match in pool.matches}
        assert not pool.near_misses
