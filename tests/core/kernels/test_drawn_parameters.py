"""Drawn programs of convolutions and norms with drawn parameters, many of them no ordinary numbers, give what is recorded.

Values near the largest number are left to `test_special_parameters`: sums of several overflow in one order and not in another.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.core.kernels.special_parameters import agrees, drawn, normed
from topos_core import nn
from topos_core.tape.type import numpy_dtype

VALUES = (0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, 1e-40, 1e-20, 1e20, -1.0, -1e-5)
ACTIVATIONS = (lambda x: x, nn.relu, nn.silu, nn.gelu, np.tanh, nn.sigmoid, lambda x: np.clip(x, 0, 6))
STEPS = (lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, lambda a, b: a / b)
NAMES = ("mean", "variance", "scale", "shift")


class Draw:
    """Draws one program and its arrays."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.dtype = self.one("f32", "f32", "f32", "f64", "f16", "bf16")
        self.activate = self.one(*ACTIVATIONS)

    def one(self, *options):
        return options[int(self.random.integers(len(options)))]

    def array(self, *shape, scale=1.0):
        return drawn(self.random, *shape, scale=scale)

    def weight(self, *shape):
        return self.array(*shape, scale=0.3).astype(numpy_dtype(self.dtype))

    def vector(self, channels, positive=False):
        made = self.array(channels)
        made = np.abs(made) + 0.1 if positive else made
        for _ in range(self.one(0, 0, 1, 2)):
            value = self.one(*VALUES)
            made[slice(None) if self.random.random() < 0.15 else int(self.random.integers(channels))] = (
                value if self.dtype != "f16" or abs(value) != 1e20 else 1e3
            )
        return made

    def norm(self, channels):
        return [self.vector(channels, name == "variance") for name in NAMES]

    def convolution(self):
        groups = self.one(1, 1, 1, 2)
        channels, rows = groups * self.one(3, 8, 16, 32), groups * self.one(5, 8, 16, 32)
        size, stride = self.one(1, 3, 3, 5), self.one(1, 1, 2)
        weight = self.weight(rows, channels // groups, size, size)
        steps = [self.one(*STEPS) for _ in range(self.one(0, 1, 2, 3))]

        def program(x, bias, *vectors):
            y = nn.conv2d(x, weight, bias, stride=stride, padding=size // 2, groups=groups)
            if not steps:
                return self.activate(normed(y, dict(zip(NAMES, vectors, strict=True))))
            for step, vector in zip(steps, vectors, strict=True):
                y = step(y, vector[:, None, None])
            return self.activate(y)

        x = self.array(self.one(1, 2), channels, self.one(7, 12, 21), self.one(8, 19))
        vectors = [self.vector(rows) for _ in steps] or self.norm(rows)
        return program, [x, self.vector(rows), *vectors]

    def separable(self):
        channels, rows, stride = self.one(4, 9, 33), self.one(4, 17), self.one(1, 1, 2)
        deep, point = self.weight(channels, 1, 3, 3), self.weight(rows, channels, 1, 1)

        def program(x, *vectors):
            y = nn.conv2d(x, deep, padding=1, stride=stride, groups=channels)
            y = nn.conv2d(self.activate(normed(y, dict(zip(NAMES, vectors[:4], strict=True)))), point)
            return normed(y, dict(zip(NAMES, vectors[4:], strict=True)))

        x = self.array(2, channels, self.one(6, 13), self.one(9, 20))
        return program, [x, *self.norm(channels), *self.norm(rows)]

    def given_statistics(self):
        channels = self.one(1, 7, 33)
        shape = self.one((3, channels), (2, channels, 5, 7), (1, channels, 20))
        return lambda x, *v: normed(x, dict(zip(NAMES, v, strict=True))), [self.array(*shape), *self.norm(channels)]  # fmt: skip

    def own_statistics(self):
        channels = self.one(2, 8, 32)
        shape = self.one((30, channels), (2, channels, 5, 7), (3, channels, 4))
        arrays = [self.array(*shape), self.vector(channels), self.vector(channels)]
        kind = self.one("batch_norm_training", "group_norm") if len(shape) > 2 else "batch_norm_training"
        self.dtype = self.one("f32", "f64")  # group norms of other floats have no kernel
        if kind == "group_norm":
            return lambda x, a, b: nn.group_norm(x, 2, a, b), arrays
        return lambda x, a, b: nn.batch_norm_training(x, a, b)[0], arrays

    def rows(self):
        width = self.one(2, 16, 33, 255)
        arrays = [self.array(self.one(1, 6), 5, width), self.vector(width), self.vector(width)]
        return lambda x, a, b: nn.layer_norm(x, a, b), arrays


KINDS = ("convolution", "separable", "given_statistics", "own_statistics", "rows")


def check(seed):
    draw = Draw(seed)
    program, arrays = getattr(draw, draw.one(*KINDS))()
    return agrees(program, arrays, draw.dtype, None, axis=None)


PATTERNS = {
    "conv_bn_activation", "depthwise_pointwise", "batch_norm_inference", "batch_norm_training", "group_norm", "layer_norm",
}  # fmt: skip


def test_drawn_parameters():
    assert set().union(*(check(seed) for seed in range(60))) >= PATTERNS


@pytest.mark.conformance
@pytest.mark.timeout(3600)
def test_drawn_parameters_at_length():
    for seed in range(60, 1500):
        check(seed)
