"""Normalization against the definitions, in f64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.core.nn.check import check, numbers
from topos_core import nn
from topos_core.errors import RecordingError
from topos_core.recording.spec import f32
from topos_core.recording.trace import trace


def normalized(x, axes, eps):
    x = x.astype("f8")
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)


def column(vector, rank, axis):
    return vector.reshape([-1 if k == axis else 1 for k in range(rank)])


@pytest.mark.parametrize(
    ("shape", "axis"), [((5, 3), 1), ((4, 3, 6), 1), ((2, 3, 4, 5), 1), ((2, 4, 5, 3), -1), ((2, 3, 2, 2, 2), 1)]
)
def test_batch_norm_while_training_gives_mean_and_variance(shape: Any, axis: int) -> None:
    x = numbers(*shape) * 3 + 1
    at = axis % len(shape)
    axes = tuple(k for k in range(len(shape)) if k != at)
    scale, shift = numbers(3, seed=1), numbers(3, seed=2)
    y = normalized(x, axes, 1e-5) * column(scale, len(shape), at) + column(shift, len(shape), at)
    wanted = (y, x.astype("f8").mean(axes), x.astype("f8").var(axes))
    arrays = {"x": x, "scale": scale, "shift": shift}
    check(lambda x, scale, shift: nn.batch_norm_training(x, scale, shift, axis=axis), arrays, wanted, 1e-4)
    check(
        lambda x, scale, shift: nn.batch_norm(x, scale=scale, shift=shift, training=True, axis=axis),
        arrays,
        wanted,
        1e-4,
    )


def test_batch_norm_by_running_statistics() -> None:
    x, mean, variance, scale, shift = (
        numbers(2, 3, 4),
        numbers(3),
        abs(numbers(3, seed=1)),
        numbers(3, seed=2),
        numbers(3, seed=3),
    )
    wanted = (x - mean[:, None]) / np.sqrt(variance[:, None] + 1e-3) * scale[:, None] + shift[:, None]
    arrays = {"x": x, "m": mean, "v": variance, "scale": scale, "shift": shift}
    check(lambda x, m, v, scale, shift: nn.batch_norm(x, m, v, scale, shift, eps=1e-3), arrays, wanted)
    check(
        lambda x, m, v: nn.batch_norm_inference(x, m, v),
        {"x": x, "m": mean, "v": variance},
        (x - mean[:, None]) / np.sqrt(variance[:, None] + 1e-5),
    )


def test_layer_norm_and_rms_norm() -> None:
    x, scale, shift = numbers(4, 5, 6), numbers(6, seed=1), numbers(6, seed=2)
    arrays = {"x": x, "scale": scale, "shift": shift}
    check(nn.layer_norm, arrays, normalized(x, -1, 1e-5) * scale + shift)
    check(lambda x: nn.layer_norm(x, eps=1e-3, axis=(1, 2)), {"x": x}, normalized(x, (1, 2), 1e-3))
    check(
        lambda x, scale: nn.rms_norm(x, scale),
        {"x": x, "scale": scale},
        x / np.sqrt((x.astype("f8") ** 2).mean(-1, keepdims=True) + 1e-6) * scale,
    )


def test_group_norm_and_instance_norm() -> None:
    x, scale, shift = numbers(2, 6, 3, 4), numbers(6, seed=1), numbers(6, seed=2)
    affine = lambda y: y * scale[:, None, None] + shift[:, None, None]  # noqa: E731
    grouped = normalized(x.reshape(2, 3, 2, 3, 4), (2, 3, 4), 1e-5).reshape(x.shape)
    arrays = {"x": x, "scale": scale, "shift": shift}
    check(lambda x, scale, shift: nn.group_norm(x, 3, scale, shift), arrays, affine(grouped), 1e-4)
    check(nn.instance_norm, arrays, affine(normalized(x, (2, 3), 1e-5)), 1e-4)


MISFITS: dict[str, tuple[Any, str]] = {
    "statistics missing": (lambda x: nn.batch_norm(x), "needs running_mean and running_var"),
    "scale": (
        lambda x: nn.batch_norm_training(x, np.ones(2, "f4")),
        "scale f32[2] does not fit axis 1 of f32[2,6,4]",
    ),
    "groups": (lambda x: nn.group_norm(x, 4), "6 channels of f32[2,6,4] do not divide into 4 groups"),
}


@pytest.mark.parametrize("name", MISFITS)
def test_arguments_that_do_not_fit_are_told(name: str) -> None:
    formula, message = MISFITS[name]
    with pytest.raises(RecordingError) as caught:
        trace(formula, f32[2, 6, 4])
    assert message in caught.value.message
