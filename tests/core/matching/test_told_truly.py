"""What a near miss says was found is there; where nothing of a pattern held, nothing is said."""

from __future__ import annotations

import numpy as np
import pytest

from tests.core.patterns.check import searched
from topos_core.matching.telling import _nice
from topos_core.recording.elementary import erf

SPECS = {"x": "f32[4,5,6]", "g": "f32[6]", "b": "f32[6]"}


def moments(x):
    mean = x.mean(-1, keepdims=True)
    return x - mean, ((x - mean) ** 2).mean(-1, keepdims=True)


def the_least(x, g, b):
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / np.exp(x - x.min(-1, keepdims=True)).sum(-1, keepdims=True)


def another_root(x, g, b):
    centred, _ = moments(x)
    return centred / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * g


def no_root(x, g, b):
    centred, variance = moments(x)
    return centred / (variance + 1e-5) * g + b


def multiplied(x, g, b):
    centred, variance = moments(x)
    return centred * np.sqrt(variance + 1e-5) * g + b


def bounded(x, g, b):
    centred, variance = moments(x)
    return centred / np.sqrt(np.maximum(variance, 1e-5)) * g + b


def no_epsilon(x, g, b):
    centred, variance = moments(x)
    return centred / np.sqrt(variance) * g + b


def a_sum_over_a_part(x, g, b):
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers[..., 1:].sum(-1, keepdims=True)


def a_mean_of_a_part(x, g, b):
    mean = x[..., :5].mean(-1, keepdims=True)
    centred = x - mean
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * g + b


def the_other_half(x, g, b):
    half = x[..., :3]
    return np.exp(half) / np.exp(x[..., 3:]).sum(-1, keepdims=True)


def another_axis(x, g, b):
    square = x[:, :4, :4]
    return 0.5 * square * (1 + erf(square.swapaxes(1, 2) * 0.5**0.5))


@pytest.mark.parametrize(
    ("program", "sentence", "at"),
    [
        (
            a_sum_over_a_part,
            "softmax needs the same part of x wherever it is read; found another part of axis 2 of a sum (extent 6)",
            "sub",
        ),
        (
            a_mean_of_a_part,
            "layer norm needs the same part of x wherever it is read; found another part of axis 2 of x (extent 6)",
            "input",
        ),
        (the_other_half, "softmax needs the same part of x wherever it is read; found another part", "input"),
        (
            another_axis,
            "gelu needs x along the same axes wherever it is read; found other axes in place of axes 1, 2 of x (extents 5, 6)",
            "input",
        ),
        (the_least, "softmax needs the max of x; found the min of it", "min"),
        (another_root, "rms norm needs the same x everywhere (x); found a sum", "sub"),
        (no_root, "layer norm needs the power -0.5; found the power -1", "add"),
        (multiplied, "layer norm needs the power -0.5; found the power 0.5", "add"),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_what_differs_is_told_where_it_stands(program, sentence, at):
    tape, pool = searched(program, SPECS)
    (told,) = pool.near_misses
    assert (told.sentence, tape.ops[told.at].name) == (sentence, at)
    assert told.steps_held > 0


def gated_linear_unit(x, g, b):
    return x[..., :3] / (1 + np.exp(-x[..., 3:]))


def even_and_odd(x, g, b):
    return np.tanh(x[..., ::2]) * (1 / (1 + np.exp(-x[..., 1::2])))


def layers_apart(x, g, b):
    return x[0] * (1 / (1 + np.exp(-x[1])))


@pytest.mark.parametrize("program", [bounded, no_epsilon, gated_linear_unit, even_and_odd, layers_apart])
def test_where_nothing_held_nothing_is_told(program):
    assert not [miss.sentence for miss in searched(program, SPECS)[1].near_misses]


def test_the_root_of_a_square_is_told_as_a_whole_number():
    assert [_nice(number) for number in (1 / 9, -1 / 7, 1 / 3**0.5, 1 / 36)] == ["1/9", "-1/7", "1/sqrt(3)", "1/36"]
