"""A norm of a negated value is that norm; the same turned round is none: `|f|` is not `f` where a value's factor is -1."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.core.patterns.check import agrees, match_at_result, searched

SPECS = {"x": "f64[6,4,5]", "b": "f64[6,4,5]"}

VALUES = {
    "a difference": lambda x, b: b - x,
    "a negation": lambda x, b: -x,
    "minus twice": lambda x, b: x * -2.0,
    "a negative quotient": lambda x, b: x / -3.0,
    "one minus": lambda x, b: 1.0 - x,
    "both signs": lambda x, b: (b - x) + 0.0 * (x - b),
}


def _batch(y: Any, turned: bool) -> Any:
    mean, variance = y.mean((0, 2), keepdims=True), y.var((0, 2), keepdims=True)
    return (mean - y if turned else y - mean) / np.sqrt(variance + 0.1)


def _layer(y: Any, turned: bool) -> Any:
    mean, variance = y.mean(-1, keepdims=True), y.var(-1, keepdims=True)
    return (mean - y if turned else y - mean) / np.sqrt(variance + 0.1)


def _root_mean_square(y: Any, turned: bool) -> Any:
    return (-y if turned else y) / np.sqrt((y * y).mean(-1, keepdims=True) + 0.1)


NORMS = {"batch_norm_training": _batch, "layer_norm": _layer, "rms_norm": _root_mean_square}


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("norm", NORMS)
def test_a_norm_of_a_negated_value_is_a_norm(norm, value):
    tape, pool = searched(lambda x, b: NORMS[norm](VALUES[value](x, b), False), SPECS)
    match = match_at_result(tape, pool, norm)
    assert match is not None, [miss.sentence for miss in pool.near_misses]
    for each in pool.matches:
        agrees(tape, each)


@pytest.mark.parametrize("value", [*VALUES, "as it is"])
@pytest.mark.parametrize("norm", NORMS)
def test_whatever_matches_a_norm_turned_round_computes_it(norm, value):
    value_of = VALUES.get(value, lambda x, b: x)
    tape, pool = searched(lambda x, b: NORMS[norm](value_of(x, b), True), SPECS)
    for each in pool.matches:
        agrees(tape, each)


@pytest.mark.parametrize("value", ["a difference", "one minus"])
@pytest.mark.parametrize("norm", ["batch_norm_training", "layer_norm"])
def test_a_norm_turned_round_is_none_where_no_value_has_that_norm(norm, value):
    _, pool = searched(lambda x, b: NORMS[norm](VALUES[value](x, b), True), SPECS)
    assert [match for match in pool.matches if match.pattern == norm] == []


@pytest.mark.parametrize("factor", [1.0, -1.0, 2.0, -0.5])
@pytest.mark.parametrize("scale", [1.0, -1.0, -0.577])
def test_attention_and_softmax_of_negated_scores_are_what_they_compute(scale, factor):
    def attend(q: Any, k: Any, v: Any) -> Any:
        scores = (q * factor) @ k.swapaxes(1, 2) * scale
        powers = np.exp(scores - scores.max(-1, keepdims=True))
        return powers / powers.sum(-1, keepdims=True) @ v

    tape, pool = searched(attend, {"q": "f64[2,4,3]", "k": "f64[2,4,3]", "v": "f64[2,4,3]"})
    assert match_at_result(tape, pool, "attention") is not None
    for each in pool.matches:
        agrees(tape, each)


def test_a_softmax_of_negated_values_is_shifted_by_their_least():
    def attend(x: Any) -> Any:
        powers = np.exp(x.min(-1, keepdims=True) - x)
        return powers / powers.sum(-1, keepdims=True)

    tape, pool = searched(attend, {"x": "f64[2,4,3]"})
    for each in pool.matches:
        agrees(tape, each)
