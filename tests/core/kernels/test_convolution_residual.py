"""A residual around an activation that is no clamp is added once, whichever axis the result runs along."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import topos_core as tp
from topos_core import nn
from topos_core.run.interpreter import interpret


@pytest.mark.parametrize("turned", [False, True], ids=["channels first", "channels last"])
@pytest.mark.parametrize("behind", [False, True], ids=["before the activation", "behind it"])
@pytest.mark.parametrize("activation", [nn.gelu, nn.silu, nn.relu], ids=lambda each: each.__name__)
def test_a_residual_is_added_once(activation: Any, behind: bool, turned: bool) -> None:
    def function(x: Any, weight: Any, bias: Any, residual: Any) -> Any:
        y = nn.conv1d(x, weight, bias, stride=2, padding=1)
        turn = (lambda each: each.transpose(0, 2, 1)) if turned else (lambda each: each)
        return turn(activation(y)) + residual if behind else activation(turn(y) + residual)

    generator = np.random.default_rng(0)
    shapes = ((1, 16, 64), (32, 16, 3), (32,), (1, 32, 32))
    arrays = [generator.standard_normal(shape).astype(np.float32) for shape in shapes]
    tape = tp.trace(function, *[tp.f32[array.shape] for array in arrays])
    plan = tp.plan(tape, machine="host", cost="always")
    assert [decision.match.pattern for decision in plan.taken] == ["conv_bn_activation"]
    np.testing.assert_allclose(plan.run(*arrays), interpret(tape, arrays)[0], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("behind", [False, True], ids=["before the activation", "behind it"])
@pytest.mark.parametrize("rows", [5, 8, 15])
@pytest.mark.parametrize("channels", [3, 60])
def test_a_residual_is_added_where_image_rows_end_within_a_register(channels: int, rows: int, behind: bool) -> None:
    def function(x: Any, weight: Any, residual: Any) -> Any:
        y = nn.conv2d(x, weight, padding=1)
        return nn.relu(y) + residual if behind else nn.relu(y + residual)

    generator = np.random.default_rng(0)
    shapes = ((2, channels, 7, 19), (rows, channels, 3, 3), (2, rows, 7, 19))
    arrays = [generator.standard_normal(shape).astype(np.float32) for shape in shapes]
    arrays[0][0, 0, 2, 17] = np.nan
    arrays[2][1, 2, 3, 4] = -np.inf
    tape = tp.trace(function, *[tp.f32[array.shape] for array in arrays])
    plan = tp.plan(tape, machine="host", cost="always")
    assert [decision.match.pattern for decision in plan.taken] == ["conv_bn_activation"]
    np.testing.assert_allclose(plan.run(*arrays), interpret(tape, arrays)[0], rtol=1e-4, atol=1e-4)
