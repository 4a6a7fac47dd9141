"""Networks of any length to measure recognition and planning on: repeated blocks, and networks no two blocks of which agree.

Those without repeats draw widths, heads, constants and spellings anew for each block, so that nothing of one block is
known from another.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np

from topos_core import nn
from topos_core.recording.recorder import Recorder, recording
from topos_core.recording.value import Value
from topos_core.tape.span import Location
from topos_core.tape.tape import Observation, Structure, Tape
from topos_core.tape.type import TensorType

Given = Callable[..., Any]
"""Makes an input of a shape."""


class Style:
    """What one block is drawn from; `fixed` blocks are all alike."""

    def __init__(self, seed: int, fixed: bool = False) -> None:
        self._random = random.Random(seed)
        self._fixed = fixed

    def of(self, *choices: Any) -> Any:
        """Picks one of several; always the first where blocks are alike."""
        return choices[0] if self._fixed else self._random.choice(choices)

    def between(self, low: float, high: float) -> float:
        """Picks a number."""
        return low if self._fixed else self._random.uniform(low, high)


def mean(style: Style, x: Any, axis: Any) -> Any:
    """Spells a mean."""
    axes = (axis,) if isinstance(axis, int) else axis
    count = math.prod(x.shape[a] for a in axes)
    return style.of(
        lambda: x.mean(axis, keepdims=True),
        lambda: x.sum(axis, keepdims=True) / count,
        lambda: x.sum(axis, keepdims=True) * (1 / count),
    )()


def layer_norm(style: Style, given: Given, x: Any) -> Any:
    """Spells a layer norm, at times an rms norm."""
    width, epsilon = x.shape[-1], style.between(1e-6, 1e-4)
    centred = style.of(lambda: x - mean(style, x, -1), lambda: x - mean(style, x, -1), lambda: x)()
    spread = mean(style, style.of(lambda: centred * centred, lambda: centred**2)(), -1)
    normal = style.of(lambda: centred / np.sqrt(spread + epsilon), lambda: centred * (spread + epsilon) ** -0.5)()
    return style.of(lambda: normal * given(width) + given(width), lambda: given(width) * normal)()


def linear(style: Style, given: Given, x: Any, out: int) -> Any:
    """Spells a linear layer."""
    y = style.of(lambda: x @ given(x.shape[-1], out), lambda: np.einsum("...i,oi->...o", x, given(out, x.shape[-1])))()
    return style.of(lambda: y + given(out), lambda: y)()


def softmax(style: Style, scores: Any) -> Any:
    """Spells a softmax."""
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    total = powers.sum(-1, keepdims=True)
    return style.of(lambda: powers / total, lambda: powers * (1 / total))()


def activation(style: Style, u: Any) -> Any:
    """Spells an activation."""
    return style.of(
        lambda: 0.5 * u * (1 + np.tanh(math.sqrt(2 / math.pi) * (u + 0.044715 * u**3))),
        lambda: u / (1 + np.exp(-u)),
        lambda: nn.gelu(u),
        lambda: np.maximum(u, 0),
    )()


def attention(style: Style, given: Given, x: Any, heads: int, mask: Any) -> Any:
    """Spells a block of attention."""
    batch, length, width = x.shape
    size = width // heads
    q, k, v = (linear(style, given, x, width).reshape(batch, length, heads, size).transpose(0, 2, 1, 3) for _ in "qkv")
    scale = size**-0.5
    scores = style.of(lambda: q @ k.swapaxes(-1, -2) * scale, lambda: (q * scale) @ k.swapaxes(-1, -2))()
    scores = style.of(lambda: scores + mask, lambda: scores)()
    seen = softmax(style, scores) @ v
    return linear(style, given, seen.transpose(0, 2, 1, 3).reshape(batch, length, width), width)


def transformer(given: Given, more: Callable[[], bool], fixed: bool) -> Any:
    """A transformer of as many layers as are wanted; without repeats its width changes with every layer."""
    x, mask, layer = given(2, 128, 768), given(128, 128), 0
    while more():
        style = Style(layer, fixed)
        heads = style.of(12, 8, 6, 4)
        if not fixed:
            x = x @ given(x.shape[-1], heads * (16 + layer))
        x = x + attention(style, given, layer_norm(style, given, x), heads, mask)
        normal, inner = layer_norm(style, given, x), x.shape[-1] * 4
        u = activation(style, linear(style, given, normal, inner))
        u = style.of(lambda: u, lambda: u * linear(style, given, normal, inner))()  # noqa: B023
        x = x + linear(style, given, u, x.shape[-1])
        layer += 1
    return x


def convolution(style: Style, given: Given, x: Any, out: int) -> Any:
    """Spells a convolution."""
    batch, channels, height, width = x.shape

    def patches() -> Any:
        padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
        rows = windows.transpose(0, 2, 3, 1, 4, 5).reshape(batch * height * width, channels * 9)
        y = rows @ given(out, channels, 3, 3).reshape(out, channels * 9).T
        return y.reshape(batch, height, width, out).transpose(0, 3, 1, 2)

    return style.of(
        patches,
        lambda: nn.conv2d(x, given(out, channels, 3, 3), padding=1),
        lambda: nn.conv2d(x, given(out, channels, 1, 1), given(out)),
    )()


def batch_norm(style: Style, given: Given, x: Any) -> Any:
    """Spells a batch norm of a batch, or of recorded statistics."""
    column, axes, epsilon = (1, x.shape[1], 1, 1), (0, 2, 3), style.between(1e-6, 1e-4)

    def trained() -> Any:
        centred = x - mean(style, x, axes)
        return centred / np.sqrt(mean(style, centred * centred, axes) + epsilon) * given(*column) + given(*column)

    def recorded_before() -> Any:
        return (x - given(*column)) / np.sqrt(given(*column) + epsilon) * given(*column) + given(*column)

    return style.of(trained, recorded_before)()


def resnet(given: Given, more: Callable[[], bool], fixed: bool) -> Any:
    """A residual network of as many blocks as are wanted; without repeats its channels change with every block."""
    x, block = given(8, 64, 14, 14), 0
    while more():
        style = Style(block, fixed)
        channels = 64 if fixed else 16 + block
        if not fixed:
            x = convolution(style, given, x, channels)
        y = np.maximum(batch_norm(style, given, convolution(style, given, x, channels)), 0)
        y = batch_norm(style, given, convolution(style, given, y, channels))
        x = style.of(lambda: np.maximum(x + y, 0), lambda: nn.silu(y) + x)()  # noqa: B023
        block += 1
    return x


NETWORKS: dict[str, Callable[[Given, Callable[[], bool], bool], Any]] = {"transformer": transformer, "resnet": resnet}


def recorded(name: str, least: int, repeats: bool) -> Tape:
    """Records a network of at least so many ops."""
    recorder = Recorder()

    def given(*shape: int) -> Value:
        return recorder.source("input", TensorType("f32", shape))

    with recording(recorder), recorder.at(Location(())):
        result = NETWORKS[name](given, lambda: len(recorder.ops) < least, repeats)
    inputs = tuple(value for value, op in enumerate(recorder.ops) if op.name == "input")
    observed = (Observation(result.index, "output", None, 0),)
    return Tape(
        tuple(recorder.ops), inputs, (), (result.index,), Structure("leaf", index=0), {}, observed, (Location(()),), {}
    )  # fmt: skip
