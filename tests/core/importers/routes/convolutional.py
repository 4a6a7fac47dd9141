"""A convolutional network, spelled for topos, JAX, ONNX and torch."""

from __future__ import annotations

from typing import Any

SPECS = {
    "x": "f32[2,3,16,16]", "first": "f32[8,3,3,3]", "mean": "f32[8]", "variance": "f32[8]", "scale": "f32[8]", "shift": "f32[8]",
    "second": "f32[8,8,3,3]", "bias": "f32[8]", "hidden": "f32[32,128]", "inner": "f32[32]", "head": "f32[10,32]", "outer": "f32[10]",
}  # fmt: skip


def topos(x, first, mean, variance, scale, shift, second, bias, hidden, inner, head, outer):
    from topos_core import nn

    y = nn.relu(nn.batch_norm_inference(nn.conv2d(x, first, padding=1), mean, variance, scale, shift))
    y = nn.silu(nn.conv2d(nn.max_pool(y, 2), second, bias, padding=1))
    y = nn.relu(nn.linear(nn.avg_pool(y, 2).reshape(2, -1), hidden, inner))
    return nn.softmax(nn.linear(y, head, outer))


def jax(x, first, mean, variance, scale, shift, second, bias, hidden, inner, head, outer):
    import jax
    import jax.numpy as jnp

    def windows(y, start, step):
        return jax.lax.reduce_window(y, start, step, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")

    def channels(y):
        return y[:, None, None]

    y = jax.lax.conv_general_dilated(x, first, (1, 1), "SAME")
    y = (y - channels(mean)) * channels(jax.lax.rsqrt(variance + 1e-5)) * channels(scale) + channels(shift)
    y = windows(jax.nn.relu(y), -jnp.inf, jax.lax.max)
    y = jax.nn.silu(jax.lax.conv_general_dilated(y, second, (1, 1), "SAME") + channels(bias))
    y = (windows(y, 0.0, jax.lax.add) / 4).reshape(2, -1)
    return jax.nn.softmax(jax.nn.relu(y @ hidden.T + inner) @ head.T + outer, axis=-1)


def torch(x, first, mean, variance, scale, shift, second, bias, hidden, inner, head, outer):
    import torch
    import torch.nn.functional as functional

    y = functional.batch_norm(functional.conv2d(x, first, padding=1), mean, variance, scale, shift)
    y = functional.conv2d(functional.max_pool2d(torch.relu(y), 2), second, bias, padding=1)
    y = functional.avg_pool2d(functional.silu(y), 2).flatten(1)
    return torch.softmax(functional.linear(torch.relu(functional.linear(y, hidden, inner)), head, outer), dim=-1)


def onnx() -> tuple[list[Any], list[int]]:
    """Gives the nodes, whose last result is `out`, and its shape."""
    from onnx.helper import make_node

    nodes = [
        make_node("Conv", ["x", "first"], ["a"], pads=[1, 1, 1, 1]),
        make_node("BatchNormalization", ["a", "scale", "shift", "mean", "variance"], ["b"]),
        make_node("Relu", ["b"], ["c"]),
        make_node("MaxPool", ["c"], ["d"], kernel_shape=[2, 2], strides=[2, 2]),
        make_node("Conv", ["d", "second", "bias"], ["e"], pads=[1, 1, 1, 1]),
        make_node("Sigmoid", ["e"], ["gate"]),
        make_node("Mul", ["e", "gate"], ["f"]),
        make_node("AveragePool", ["f"], ["g"], kernel_shape=[2, 2], strides=[2, 2]),
        make_node("Flatten", ["g"], ["h"]),
        make_node("Gemm", ["h", "hidden", "inner"], ["i"], transB=1),
        make_node("Relu", ["i"], ["j"]),
        make_node("Gemm", ["j", "head", "outer"], ["k"], transB=1),
        make_node("Softmax", ["k"], ["out"], axis=-1),
    ]
    return nodes, [2, 10]
