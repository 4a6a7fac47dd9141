"""Programs whose sums are longer than the patterns' examples have; `measure_envelopes` measures them beside those.

Some are longer than a kernel adds up in f32 before a double takes over (8,192 elements). Where values repeat (`ties`), all
terms round the same way, and the error grows with the length up to there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from topos_core import erf, nn
from topos_core.kernels.probes import Program


def programs() -> Mapping[str, tuple[Program, ...]]:
    """Gives them by pattern; those of Winograd's forms together."""

    def convolved(**options):
        return lambda x, w: nn.conv2d(x, w, **options)

    def with_weights(channels, rows, finish=False):
        random = np.random.default_rng(channels)
        w = (random.standard_normal((rows, channels, 3, 3)) / math.sqrt(9 * channels)).astype(np.float32)
        vector = random.random(rows).astype(np.float32) + 0.5
        plain = lambda x: nn.conv2d(x, w, padding=1)  # noqa: E731
        return (lambda x: nn.relu(nn.batch_norm(plain(x), vector, vector, vector, vector))) if finish else plain

    def finished(x, w, b, scale, shift, mean, variance, other):
        return nn.relu(nn.batch_norm(nn.conv2d(x, w, b, padding=1), mean, variance, scale, shift) + other)

    def trained(x, scale, shift):
        axes = (0, *range(2, x.ndim))
        shape = (-1, *(1,) * (x.ndim - 2))
        mean = x.mean(axes, keepdims=True)
        variance = ((x - mean) ** 2).mean(axes, keepdims=True)
        return (x - mean) / np.sqrt(variance + 1e-5) * scale.reshape(shape) + shift.reshape(shape)

    def inferred(x, mean, variance, scale, shift):
        return nn.batch_norm(x, mean, variance, scale, shift)

    def headed(x, wq, wk, wv, wo):
        q, k, v = ((x @ w).reshape(*x.shape[:2], 3, -1).swapaxes(1, 2) for w in (wq, wk, wv))
        return nn.attention(q, k, v).swapaxes(1, 2).reshape(*x.shape[:2], -1) @ wo

    def separable(x, w, b, p):
        return nn.conv2d(nn.relu(nn.conv2d(x, w, b, padding=1, groups=x.shape[1])), p)

    vectors = dict.fromkeys(("b", "scale", "shift", "mean", "variance"), "f32[16]")
    return {
        "convolution": (
            (convolved(padding=1), {"x": "f32[1,64,12,12]", "w": "f32[16,64,3,3]"}),
            (convolved(padding=1), {"x": "f32[1,512,5,5]", "w": "f32[8,512,3,3]"}),
            (convolved(stride=2, padding=3), {"x": "f32[1,3,30,30]", "w": "f32[16,3,7,7]"}),
            (convolved(), {"x": "f32[2,2048,4,4]", "w": "f32[8,2048,1,1]"}),
            (convolved(padding=1, groups=32), {"x": "f32[1,32,20,20]", "w": "f32[32,1,3,3]"}),
        ),
        "winograd": (
            (with_weights(64, 16), {"x": "f32[1,64,12,12]"}),
            (with_weights(512, 16), {"x": "f32[2,512,13,14]"}),
            (with_weights(16, 16, finish=True), {"x": "f32[3,16,17,9]"}),
            (with_weights(33, 19, finish=True), {"x": "f32[1,33,30,31]"}),
            (with_weights(512, 128), {"x": "f32[1,512,8,8]"}),
            (with_weights(65, 65, finish=True), {"x": "f32[1,65,7,7]"}),
        ),
        "conv_bn_activation": (
            (finished, {"x": "f32[1,64,12,12]", "w": "f32[16,64,3,3]", **vectors, "other": "f32[1,16,12,12]"}),
        ),
        "window_reduce": (
            (lambda x: nn.avg_pool(x, 7), {"x": "f32[1,8,7,7]"}),
            (lambda x: nn.avg_pool(x, 56), {"x": "f32[1,4,56,56]"}),
            (lambda x: nn.avg_pool(x, 3, stride=2, padding=1), {"x": "f32[1,4,33,33]"}),
        ),
        "batch_norm_training": (
            (trained, {"x": "f32[2,3,64,129]", "scale": "f32[3]", "shift": "f32[3]"}),
            (trained, {"x": "f32[8,6,28,28]", "scale": "f32[6]", "shift": "f32[6]"}),
            (trained, {"x": "f32[4096,24]", "scale": "f32[24]", "shift": "f32[24]"}),
        ),
        "linear": (
            (lambda x, w, b: x @ w + b, {"x": "f32[9,768]", "w": "f32[768,50]", "b": "f32[50]"}),
            (lambda x, w, b: x @ w + b, {"x": "f32[3,4096]", "w": "f32[4096,20]", "b": "f32[20]"}),
            (lambda x, w, b: x @ w.T + b, {"x": "f32[1,300]", "w": "f32[90,300]", "b": "f32[90]"}),
        ),
        "linear_bias_activation": (
            (lambda x, w, b: nn.gelu(x @ w + b), {"x": "f32[9,768]", "w": "f32[768,50]", "b": "f32[50]"}),
        ),
        "mse_loss": (
            (lambda x, target: ((x - target) ** 2).mean(), {"x": "f32[20000]", "target": "f32[20000]"}),
        ),
        "cross_entropy": (
            (lambda x, t: nn.cross_entropy(x, t), {"x": "f32[3,9000]", "t": "i64[3]<9000"}),
            (lambda x, t: nn.cross_entropy(x, t), {"x": "f32[9,1000]", "t": "i64[9]<1000"}),
        ),
        "attention": (
            (
                lambda q, k, v: nn.attention(q, k, v),
                {"q": "f32[2,3,40,64]", "k": "f32[2,3,90,64]", "v": "f32[2,3,90,64]"},
            ),
            (
                lambda q, k, v: nn.attention(q, k, v, causal=True),
                {"q": "f32[2,70,32]", "k": "f32[2,70,32]", "v": "f32[2,70,32]"},
            ),
        ),
        "multi_head_attention": (
            (headed, {"x": "f32[2,40,96]", **dict.fromkeys(("wq", "wk", "wv", "wo"), "f32[96,96]")}),
        ),
        "gated_mlp": (
            (
                lambda x, gate, up, down: nn.gated_mlp(x, gate, up, down),
                {"x": "f32[9,256]", "gate": "f32[300,256]", "up": "f32[300,256]", "down": "f32[50,300]"},
            ),
        ),
        "depthwise_pointwise": (
            (separable, {"x": "f32[1,64,12,12]", "w": "f32[64,1,3,3]", "b": "f32[64]", "p": "f32[16,64,1,1]"}),
            (separable, {"x": "f32[1,512,5,5]", "w": "f32[512,1,3,3]", "b": "f32[512]", "p": "f32[8,512,1,1]"}),
        ),
        "add_norm": (
            (
                lambda x, y, scale, shift: nn.layer_norm(x + y, scale, shift),
                {"x": "f32[3,9000]", "y": "f32[3,9000]", "scale": "f32[9000]", "shift": "f32[9000]"},
            ),
        ),
        "layer_norm_linear": (
            (
                lambda x, scale, shift, w: nn.layer_norm(x, scale, shift) @ w,
                {"x": "f32[3,9000]", "scale": "f32[9000]", "shift": "f32[9000]", "w": "f32[9000,8]"},
            ),
            (
                lambda x, scale, shift, w: nn.layer_norm(x, scale, shift) @ w,
                {"x": "f32[7,768]", "scale": "f32[768]", "shift": "f32[768]", "w": "f32[768,50]"},
            ),
        ),
        "rotary_embedding": (
            (nn.rotary_embedding, {"x": "f32[3,40,64]", "cos": "f32[40,64]", "sin": "f32[40,64]"}),
        ),
        "softmax": (
            (lambda x: nn.softmax(x), {"x": "f32[3,9000]"}),
            (lambda x: nn.softmax(x), {"x": "f32[5,1000]"}), (lambda x: nn.softmax(x, axis=1), {"x": "f32[3,40,70]"}),
        ),
        "log_softmax": (
            (lambda x: nn.log_softmax(x), {"x": "f32[3,9000]"}),
            (lambda x: nn.log_softmax(x), {"x": "f32[5,1000]"}),
            (lambda x: nn.log_softmax(x, axis=1), {"x": "f32[3,40,70]"}),
        ),
        "layer_norm": (
            (
                lambda x, scale, shift: nn.layer_norm(x, scale, shift),
                {"x": "f32[3,9000]", "scale": "f32[9000]", "shift": "f32[9000]"},
            ),
            (lambda x: nn.layer_norm(x), {"x": "f32[9,4096]"}),
            (
                lambda x, scale, shift: nn.layer_norm(x, scale, shift),
                {"x": "f32[7,768]", "scale": "f32[768]", "shift": "f32[768]"},
            ),
            (
                lambda x, scale, shift: nn.layer_norm(x.swapaxes(1, 2), scale, shift).swapaxes(1, 2),
                {"x": "f32[2,300,40]", "scale": "f32[300]", "shift": "f32[300]"},
            ),
        ),
        "rms_norm": (
            (lambda x, scale: nn.rms_norm(x, scale), {"x": "f32[3,9000]", "scale": "f32[9000]"}),
            (lambda x, scale: nn.rms_norm(x, scale), {"x": "f32[7,4096]", "scale": "f32[4096]"}),
            (lambda x, scale: nn.rms_norm(x.swapaxes(0, 1), scale), {"x": "f32[300,40]", "scale": "f32[300]"}),
        ),
        "group_norm": (
            (
                lambda x, scale, shift: nn.group_norm(x, 2, scale, shift),
                {"x": "f32[3,6,64,65]", "scale": "f32[6]", "shift": "f32[6]"},
            ),
            (
                lambda x, scale, shift: nn.group_norm(x, 4, scale, shift),
                {"x": "f32[2,32,14,14]", "scale": "f32[32]", "shift": "f32[32]"},
            ),
        ),
        "instance_norm": (
            (
                lambda x, scale, shift: nn.instance_norm(x, scale, shift),
                {"x": "f32[2,3,64,129]", "scale": "f32[3]", "shift": "f32[3]"},
            ),
            (
                lambda x, scale, shift: nn.instance_norm(x, scale, shift),
                {"x": "f32[2,8,28,28]", "scale": "f32[8]", "shift": "f32[8]"},
            ),
        ),
        "gelu": (
            (lambda x: nn.gelu(x), {"x": "f32[5000]"}), (lambda x: nn.gelu(x, "tanh"), {"x": "f32[5000]"}),
        ),
        "silu": ((lambda x: nn.silu(x), {"x": "f32[5000]"}),),
        "elementwise_chain": (
            (lambda x, y: np.exp(x * 0.5) * np.tanh(y) - erf(x + y), {"x": "f32[5000]", "y": "f32[5000]"}),
            (lambda x, y: x**2 / (1.0 + np.abs(y) ** 3), {"x": "f32[50,70]", "y": "f32[70]"}),
        ),
        "elementwise_reduction": (
            (lambda x: np.abs(x).sum(-1), {"x": "f32[7,9000]"}), (lambda x: np.abs(x).sum(0), {"x": "f32[900,70]"}),
            (lambda x, y: np.exp(x - y).sum(), {"x": "f32[100000]", "y": "f32[100000]"}),
        ),
        "reduction_elementwise": (
            (lambda x: x / (np.abs(x).mean(-1, keepdims=True) + 1), {"x": "f32[7,9000]"}),
            (lambda x: np.tanh(x / (np.abs(x).mean(0) + 1)), {"x": "f32[900,70]"}),
        ),
        "sibling_elementwise": ((lambda x, y: (np.exp(x * 0.5), np.tanh(x) * y, erf(x)), {"x": "f32[5000]", "y": "f32[5000]"}),),
        "matmul": (
            (lambda q, k: q @ k.swapaxes(-1, -2), {"q": "f32[3,40,768]", "k": "f32[3,50,768]"}),
            (lambda a, b: a @ b, {"a": "f32[2,9,4096]", "b": "f32[2,4096,20]"}),
        ),
        "sibling_matmul": (
            (lambda x, a, b: (x @ a, x @ b), {"x": "f32[9,768]", "a": "f32[768,50]", "b": "f32[768,20]"}),
        ),
        "batch_norm_inference": (
            (inferred, {"x": "f32[2,16,9,9]", **{k: v for k, v in vectors.items() if k != "b"}}),
        ),
    }  # fmt: skip
