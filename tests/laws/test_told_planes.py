"""The bytes that a convolution's work is told to move are those of the planes that its kernels make, and none where images are read where they lie."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import topos_core as tp
from topos_core import nn
from topos_core.kernels.convolution import offering, separable, winograd
from topos_core.kernels.host import host
from topos_core.kernels.vocabulary.blocks import PLANES
from topos_core.kernels.watching import Start, watching

RANDOM = np.random.default_rng(0)


def drawn(*shape: int) -> np.ndarray:
    return (RANDOM.standard_normal(shape) * 0.1).astype(np.float32)


def conv(*shape: int, **how: Any) -> Callable[[Any], Any]:
    weight = drawn(*shape)
    return lambda x: nn.conv2d(x, weight, **how)


def separate(stride: int) -> Callable[[Any], Any]:
    deep, point = drawn(32, 1, 3, 3), drawn(32, 32, 1, 1)
    return lambda x: nn.conv2d(nn.relu(nn.conv2d(x, deep, padding=1, stride=stride, groups=32)), point)


def turned(x: Any) -> Any:
    return TILED(x.transpose(0, 3, 1, 2))


TILED = conv(32, 32, 3, 3, padding=1)
IMAGE, LAST = (2, 32, 30, 34), (2, 30, 34, 32)
CASES: dict[str, tuple[Callable[[Any], Any], tuple[int, ...], tp.DType]] = {
    "tiles": (TILED, IMAGE, tp.f32),
    "tiles, channels last": (turned, LAST, tp.f32),
    "small tiles": (conv(64, 64, 3, 3, padding=1), (1, 64, 9, 9), tp.f32),
    "direct": (conv(8, 32, 3, 3, padding=1), IMAGE, tp.f32),
    "direct, f64": (TILED, IMAGE, tp.f64),
    "direct, f16": (TILED, IMAGE, tp.f16),
    "no pads": (conv(8, 32, 3, 3), IMAGE, tp.f32),
    "point": (conv(32, 32, 1, 1), IMAGE, tp.f32),
    "stride": (conv(32, 32, 3, 3, padding=1, stride=2), IMAGE, tp.f32),
    "phases": (lambda x: nn.conv_transpose2d(x, HALVES, stride=2), IMAGE, tp.f32),
    "depthwise and pointwise": (separate(1), IMAGE, tp.f32),
    "depthwise and pointwise, stride": (separate(2), IMAGE, tp.f32),
}
HALVES = drawn(32, 16, 2, 2)


def laid(start: Start) -> int:
    """Counts the elements of the planes that a copy makes."""
    words = dict(zip(PLANES, start.words, strict=True))
    return words["items"] * words["depth_phases"] * words["height_phases"] * words["width_phases"] * words["phase"]


@pytest.mark.parametrize("masked", [False, True] if host().masked else [False])
@pytest.mark.parametrize("name", CASES)
def test_the_bytes_told_are_those_of_the_planes_made(name: str, masked: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offering, "masked_on", lambda machine: masked)
    if not masked:  # kernels that could mask make planes as others do
        monkeypatch.setattr(winograd, "columns_follow", lambda convolution, strides: False)
        monkeypatch.setattr(separable, "masks_fit", lambda convolution, strides: False)
    function, shape, dtype = CASES[name]
    plan = tp.plan(tp.trace(function, dtype[shape]), cost="always")
    (taken,) = plan.taken
    x = drawn(*shape).astype(np.float64 if dtype is tp.f64 else np.float16 if dtype is tp.f16 else np.float32)
    with watching() as seen:
        plan.run(x, threads=1)
    tape, match, work = plan.data.tape, taken.match, taken.offer.work
    made = sum(laid(start) for start in seen.started if start.name == "planes") * (8 if dtype is tp.f64 else 4)
    assert work.bytes_written - tape.ops[match.root].type.bytes == made
    operands = sum(tape.ops[value].type.bytes for value in match.bindings.values())
    spread = taken.offer.kernel.startswith("Winograd")  # its kernel has more factors than taps
    assert work.bytes_read - made >= operands if spread else work.bytes_read - made == operands
