"""Times taken regions against their recorded ops, interleaved, and prints the ratios; a region above 1 is a defect.

`python -m benchmarks.home_against_recorded [--threads N] [WORD...]`: one thread and CPU time by default; WORD selects rows
by name. Weights are inputs, so packing counts; `pinned` rows bind them as parameters. NumPy's BLAS should be its own:
the script starts itself anew without OPENBLAS_CORETYPE and OPENBLAS_L2_SIZE.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import topos_core as tp
from topos_core import nn
from topos_core.run.executor import make_program, run
from topos_core.run.interpreter import interpret
from topos_core.tape.type import numpy_dtype

OVERRIDES = {"OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"}
Case = tuple[Callable[..., Any], Mapping[str, str]]


def convolution(image: str, kernel: str, **options: Any) -> Case:
    """Gives a convolution by nn."""
    rank = image.count(",") - 1
    function = {1: nn.conv1d, 2: nn.conv2d, 3: nn.conv3d}[rank]
    return lambda x, w: function(x, w, **options), {"x": f"f32[{image}]", "w": f"f32[{kernel}]"}


def channels_last(x: Any, w: Any) -> Any:
    """Convolves [batch, height, width, channel] images with [height, width, in, out] kernels."""
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
    return np.einsum("bhwcij,ijco->bhwo", windows, w)


def residual_block(x: Any, w: Any, scale: Any, shift: Any, mean: Any, variance: Any, other: Any) -> Any:
    """Gives a residual block's second half."""
    return nn.relu(nn.batch_norm(nn.conv2d(x, w, padding=1), mean, variance, scale, shift) + other)


def trained(x: Any, scale: Any, shift: Any) -> Any:
    """Normalises by the batch's own statistics, channels on axis 1."""
    axes = (0, *range(2, x.ndim))
    shape = (-1, *(1,) * (x.ndim - 2))
    mean = x.mean(axes, keepdims=True)
    variance = ((x - mean) ** 2).mean(axes, keepdims=True)
    return (x - mean) / np.sqrt(variance + 1e-5) * scale.reshape(shape) + shift.reshape(shape)


def inferred(x: Any, mean: Any, variance: Any, scale: Any, shift: Any) -> Any:
    """Normalises by given statistics."""
    return nn.batch_norm(x, mean, variance, scale, shift)


def vectors(count: int, *names: str) -> dict[str, str]:
    """Gives specs of one vector per name."""
    return dict.fromkeys(names, f"f32[{count}]")


def linear(rows: int, steps: int, columns: int) -> Case:
    """Gives a layer whose weight is an input."""
    specs = {"x": f"f32[{rows},{steps}]", "w": f"f32[{steps},{columns}]", **vectors(columns, "b")}
    return lambda x, w, b: x @ w + b, specs


def attention(batch: int, heads: int, length: int, width: int, causal: bool = False) -> Case:
    """Gives an attention of heads."""
    spec = f"f32[{batch},{heads},{length},{width}]"
    return lambda q, k, v: nn.attention(q, k, v, causal=causal), dict.fromkeys(("q", "k", "v"), spec)


def block(batch: int, length: int, width: int, heads: int, fused: bool = False) -> Case:
    """Gives an attention with its projections, which are inputs."""

    def split(y: Any) -> Any:
        return y.reshape(batch, length, heads, width // heads).transpose(0, 2, 1, 3)

    def back(q: Any, k: Any, v: Any, wo: Any) -> Any:
        return nn.attention(q, k, v).transpose(0, 2, 1, 3).reshape(batch, length, width) @ wo

    def apart(x: Any, wq: Any, wk: Any, wv: Any, wo: Any) -> Any:
        return back(*(split(x @ w) for w in (wq, wk, wv)), wo)

    def together(x: Any, w: Any, wo: Any) -> Any:
        return back(*(split(part) for part in np.split(x @ w, 3, -1)), wo)

    x, square = f"f32[{batch},{length},{width}]", f"f32[{width},{width}]"
    if fused:
        return together, {"x": x, "w": f"f32[{width},{3 * width}]", "wo": square}
    return apart, {"x": x, **dict.fromkeys(("wq", "wk", "wv", "wo"), square)}


def gated(rows: int, width: int, inner: int, fused: bool = False) -> Case:
    """Gives a gated layer by silu, whose weights are inputs."""

    def apart(x: Any, gate: Any, up: Any, down: Any) -> Any:
        return (nn.silu(x @ gate) * (x @ up)) @ down

    def together(x: Any, w: Any, down: Any) -> Any:
        gate, up = np.split(x @ w, 2, -1)
        return (nn.silu(gate) * up) @ down

    x, down = f"f32[{rows},{width}]", f"f32[{inner},{width}]"
    if fused:
        return together, {"x": x, "w": f"f32[{width},{2 * inner}]", "down": down}
    return apart, {"x": x, **dict.fromkeys(("gate", "up"), f"f32[{width},{inner}]"), "down": down}


def even_and_odd(x: Any, cos: Any, sin: Any) -> Any:
    """Turns pairs of features that lie beside each other."""
    return x * cos + np.stack([-x[..., 1::2], x[..., ::2]], -1).reshape(x.shape) * sin


def rotary(function: Callable[..., Any], heads: int, length: int, width: int) -> Case:
    """Gives a rotary embedding of heads."""
    return function, {"x": f"f32[{heads},{length},{width}]", **dict.fromkeys(("cos", "sin"), f"f32[{length},{width}]")}


def separable(image: str, rows: int, stride: int = 1) -> Case:
    """Gives a depthwise 3x3 and a pointwise convolution, each with bias and relu."""
    channels = image.split(",")[1]

    def pair(x: Any, w: Any, b: Any, p: Any, c: Any) -> Any:
        y = nn.relu(nn.conv2d(x, w, b, stride=stride, padding=1, groups=x.shape[1]))
        return nn.relu(nn.conv2d(y, p, c))

    return pair, {
        "x": f"f32[{image}]", "w": f"f32[{channels},1,3,3]", "b": f"f32[{channels}]", "p": f"f32[{rows},{channels},1,1]",
        "c": f"f32[{rows}]",
    }  # fmt: skip


def normed(rows: int, width: int, columns: int) -> Case:
    """Gives a layer norm and the linear layer behind it."""
    specs = {"x": f"f32[{rows},{width}]", **vectors(width, "scale", "shift"), "w": f"f32[{width},{columns}]"}
    return lambda x, scale, shift, w: nn.layer_norm(x, scale, shift) @ w, specs


def pinned(rows: int, steps: int, columns: int) -> Case:
    """Gives a layer whose weight is a parameter."""
    random = np.random.default_rng(1)
    w, b = (random.standard_normal(shape).astype(np.float32) for shape in ((steps, columns), columns))
    return lambda x: x @ w + b, {"x": f"f32[{rows},{steps}]"}


def chain(x: Any) -> Any:
    """Gives eight elementwise ops with a tanh and a sigmoid among them."""
    y = np.tanh(x * 1.3 + 0.2) * x + 0.1
    return np.maximum(1 / (1 + np.exp(-y)) * x, -0.2) - 0.05


def cases() -> dict[str, Case]:
    """Lists the rows."""
    return {
        "conv seed example": convolution("1,1,6,6", "2,1,3,3"),
        "conv 3x3 tiny": convolution("1,3,8,8", "4,3,3,3"),
        "conv 3x3 8x8 b64 (digits)": convolution("64,1,8,8", "8,1,3,3", padding=1),
        "conv 5x5 14 (lenet)": convolution("1,6,14,14", "16,6,5,5"),
        "conv 3x3 56": convolution("1,64,56,56", "64,64,3,3", padding=1),
        "conv 3x3 56 b8": convolution("8,64,56,56", "64,64,3,3", padding=1),
        "conv 3x3 28 b8": convolution("8,128,28,28", "128,128,3,3", padding=1),
        "conv 3x3 14": convolution("1,256,14,14", "256,256,3,3", padding=1),
        "conv 3x3 7": convolution("1,512,7,7", "512,512,3,3", padding=1),
        "conv 3x3 s2 56": convolution("1,64,56,56", "128,64,3,3", stride=2, padding=1),
        "conv 7x7 s2 224": convolution("1,3,224,224", "64,3,7,7", stride=2, padding=3),
        "conv 16x16 s16 224 (patches)": convolution("1,3,224,224", "768,3,16,16", stride=16),
        "conv 1x1 56": convolution("1,256,56,56", "64,256,1,1"),
        "conv 1x1 s2 56": convolution("1,256,56,56", "512,256,1,1", stride=2),
        "conv 1x1 7": convolution("1,512,7,7", "512,512,1,1"),
        "conv 3x3 d2 28": convolution("1,64,28,28", "64,64,3,3", padding=2, dilation=2),
        "conv 3x3 odd 13x17": convolution("7,19,13,17", "23,19,3,3", padding=1),
        "depthwise 3x3 56": convolution("1,128,56,56", "128,1,3,3", padding=1, groups=128),
        "depthwise 3x3 112 b8": convolution("8,32,112,112", "32,1,3,3", padding=1, groups=32),
        "depthwise 7x7 14": convolution("1,384,14,14", "384,1,7,7", padding=3, groups=384),
        "grouped 3x3 56": convolution("1,128,56,56", "128,4,3,3", padding=1, groups=32),
        "conv 1-D 3000": convolution("1,80,3000", "384,80,3", padding=1),
        "conv 1-D dilated b4": convolution("4,64,1000", "64,64,3", padding=8, dilation=8),
        "conv 3-D": convolution("1,16,16,32,32", "32,16,3,3,3", padding=1),
        "conv transposed 14 -> 28": (
            lambda x, w: nn.conv_transpose2d(x, w, stride=2, padding=1),
            {"x": "f32[1,64,14,14]", "w": "f32[64,32,4,4]"},
        ),
        "conv channels last 56": (channels_last, {"x": "f32[1,56,56,64]", "w": "f32[3,3,64,64]"}),
        "conv f64 28": (
            lambda x, w: nn.conv2d(x, w, padding=1), {"x": "f64[1,64,28,28]", "w": "f64[64,64,3,3]"},
        ),
        "conv bn residual relu 28": (
            residual_block,
            {
                "x": "f32[1,128,28,28]", "w": "f32[128,128,3,3]",
                **vectors(128, "scale", "shift", "mean", "variance"), "other": "f32[1,128,28,28]",
            },
        ),
        "conv gelu 28": (
            lambda x, w: nn.gelu(nn.conv2d(x, w, padding=1)), {"x": "f32[1,64,28,28]", "w": "f32[64,64,3,3]"},
        ),
        "max pool 2x2 tiny": (lambda x: nn.max_pool(x, 2), {"x": "f32[1,2,4,4]"}),
        "max pool 3x3 s2 112": (lambda x: nn.max_pool(x, 3, stride=2, padding=1), {"x": "f32[1,64,112,112]"}),
        "max pool 2x2 56 b8": (lambda x: nn.max_pool(x, 2), {"x": "f32[8,64,56,56]"}),
        "avg pool 3x3 s2 112": (lambda x: nn.avg_pool(x, 3, stride=2, padding=1), {"x": "f32[1,64,112,112]"}),
        "avg pool 7x7 whole": (lambda x: nn.avg_pool(x, 7), {"x": "f32[8,512,7,7]"}),
        "bn training 32x64x56x56": (trained, {"x": "f32[32,64,56,56]", **vectors(64, "scale", "shift")}),
        "bn training 8x512x7x7": (trained, {"x": "f32[8,512,7,7]", **vectors(512, "scale", "shift")}),
        "bn training 8192x1024": (trained, {"x": "f32[8192,1024]", **vectors(1024, "scale", "shift")}),
        "bn training tiny": (trained, {"x": "f32[4,3,5]", **vectors(3, "scale", "shift")}),
        "bn inference 8x64x56x56": (
            inferred, {"x": "f32[8,64,56,56]", **vectors(64, "mean", "variance", "scale", "shift")},
        ),
        "bn inference tiny": (inferred, {"x": "f32[2,3,4,4]", **vectors(3, "mean", "variance", "scale", "shift")}),
        "linear 512x768x3072": linear(512, 768, 3072),
        "linear 128x768x768": linear(128, 768, 768),
        "linear 1x768x3072": linear(1, 768, 3072),
        "linear 32x64x10": linear(32, 64, 10),
        "linear 2x4x3": linear(2, 4, 3),
        "linear 512x768x3072 pinned": pinned(512, 768, 3072),
        "linear 1x768x3072 pinned": pinned(1, 768, 3072),
        "linear transposed 64x512x512": (
            lambda x, w, b: x @ w.T + b, {"x": "f32[64,512]", "w": "f32[512,512]", **vectors(512, "b")},
        ),
        "linear gelu 512x768x3072": (
            lambda x, w, b: nn.gelu(x @ w + b), {"x": "f32[512,768]", "w": "f32[768,3072]", **vectors(3072, "b")},
        ),
        "linear relu 32x64x64": (
            lambda x, w, b: nn.relu(x @ w + b), {"x": "f32[32,64]", "w": "f32[64,64]", **vectors(64, "b")},
        ),
        "mse 16M": (lambda x, t: ((x - t) ** 2).mean(), {"x": "f32[16777216]", "t": "f32[16777216]"}),
        "mse 64": (lambda x, t: ((x - t) ** 2).mean(), {"x": "f32[64]", "t": "f32[64]"}),
        "cross entropy 256x1000": (lambda x, t: nn.cross_entropy(x, t), {"x": "f32[256,1000]", "t": "i64[256]<1000"}),
        "add norm 512x768": (
            lambda x, y, scale, shift: nn.layer_norm(x + y, scale, shift),
            {"x": "f32[512,768]", "y": "f32[512,768]", **vectors(768, "scale", "shift")},
        ),
        "attention 12x512x64": attention(1, 12, 512, 64),
        "attention causal 12x512x64": attention(1, 12, 512, 64, causal=True),
        "attention 8x2048x64": attention(1, 8, 2048, 64),
        "attention 2x2x10x8": attention(2, 2, 10, 8),
        "block 2x128x256 4 heads": block(2, 128, 256, 4),
        "block 1x512x768 12 heads": block(1, 512, 768, 12),
        "block fused 2x128x256 4 heads": block(2, 128, 256, 4, fused=True),
        "block 2x5x12 3 heads": block(2, 5, 12, 3),
        "gated 128x512x1376": gated(128, 512, 1376),
        "gated fused 128x512x1376": gated(128, 512, 1376, fused=True),
        "gated 1x512x1376": gated(1, 512, 1376),
        "gated 3x8x6": gated(3, 8, 6),
        "rotary 32x512x128": rotary(nn.rotary_embedding, 32, 512, 128),
        "rotary even and odd 32x512x128": rotary(even_and_odd, 32, 512, 128),
        "rotary 6x5x8": rotary(nn.rotary_embedding, 6, 5, 8),
        "depthwise pointwise 128x56x56": separable("1,128,56,56", 128),
        "depthwise pointwise s2 64x112x112": separable("1,64,112,112", 128, stride=2),
        "depthwise pointwise 512x14x14": separable("1,512,14,14", 512),
        "depthwise pointwise 960x7x7": separable("1,960,7,7", 160),
        "depthwise pointwise 4x6x6": separable("2,4,6,6", 5),
        "layer norm linear 512x768x768": normed(512, 768, 768),
        "layer norm linear 8x64x64": normed(8, 64, 64),
        "chain 8 ops 16M": (chain, {"x": "f32[16777216]"}),
        "chain 8 ops 300x500": (chain, {"x": "f32[300,500]"}),
        "chain 8 ops 4096": (chain, {"x": "f32[4096]"}),
        "chain 8 ops 64": (chain, {"x": "f32[64]"}),
        "chain 8 ops f64 1M": (chain, {"x": "f64[1048576]"}),
        "chain 8 ops f16 1M": (chain, {"x": "f16[1048576]"}),
        "chain 2 ops 1M": (lambda x, y: (x + y) * 0.5, {"x": "f32[1048576]", "y": "f32[1048576]"}),
        "chain bias and gate 512x768": (
            lambda x, b, g: np.maximum(x + b, 0) * g, {"x": "f32[512,768]", **vectors(768, "b"), "g": "f32[512,768]"},
        ),
        "chain 3 columns 100000x3": (
            lambda x, b, g: np.maximum(x * b, g) - 1, {"x": "f32[100000,3]", **vectors(3, "b", "g")},
        ),
        "chain transposed operand 1024x1024": (
            lambda x, y: np.abs(x - y.T) * 0.5, {"x": "f32[1024,1024]", "y": "f32[1024,1024]"},
        ),
        "chain of integers 1M": (lambda x, y: (x * 3 + y) & 255, {"x": "i32[1048576]", "y": "i32[1048576]"}),
        "reduction of a difference 16M": (
            lambda x, y: np.abs(x - y).sum(), {"x": "f32[16777216]", "y": "f32[16777216]"},
        ),
        "reduction of rows 4096x1024": (lambda x: np.exp(x).sum(-1), {"x": "f32[4096,1024]"}),
        "reduction of columns 4096x1024": (lambda x: np.abs(x).sum(0), {"x": "f32[4096,1024]"}),
        "reduction of short rows 50000x8": (lambda x: np.abs(x).max(-1), {"x": "f32[50000,8]"}),
        "reduction of planes 32x64x28x28": (lambda x: np.abs(x).sum((0, 2, 3)), {"x": "f32[32,64,28,28]"}),
        "reduction and division of rows 4096x1024": (
            lambda x: x / (np.abs(x).sum(-1, keepdims=True) + 1e-6), {"x": "f32[4096,1024]"},
        ),
        "reduction and difference of columns 4096x1024": (
            lambda x: np.abs(x - x.max(0)), {"x": "f32[4096,1024]"},
        ),
        "siblings 1M": (lambda x: (np.tanh(x), x * 2 + 1, np.abs(x)), {"x": "f32[1048576]"}),
        "siblings matmul 64x256x16": (
            lambda x, q, k, v: (x @ q, x @ k, x @ v), {"x": "f32[64,256]", **dict.fromkeys("qkv", "f32[256,16]")},
        ),
        "siblings matmul 1024x768x4": (
            lambda x, q, k: (x @ q, x @ k), {"x": "f32[1024,768]", **dict.fromkeys("qk", "f32[768,4]")},
        ),
        "matmul of batches 48x128x64": (
            lambda q, k: q @ k.swapaxes(-1, -2), {"q": "f32[48,128,64]", "k": "f32[48,128,64]"},
        ),
        "matmul of batches 8x256x256": (lambda a, b: a @ b, {"a": "f32[8,256,256]", "b": "f32[8,256,256]"}),
        "matmul spelled 8x32x32": (
            lambda a, b: (a[:, :, :, None] * b[:, None]).sum(2), {"a": "f32[8,32,32]", "b": "f32[8,32,32]"},
        ),
        "softmax 4096x1024": (lambda x: nn.softmax(x), {"x": "f32[4096,1024]"}),
        "softmax axis 1 8x64x56x56": (lambda x: nn.softmax(x, axis=1), {"x": "f32[8,64,56,56]"}),
        "softmax 32x10": (lambda x: nn.softmax(x), {"x": "f32[32,10]"}),
        "log softmax 128x1000": (lambda x: nn.log_softmax(x), {"x": "f32[128,1000]"}),
        "layer norm 4096x1024": (
            lambda x, scale, shift: nn.layer_norm(x, scale, shift),
            {"x": "f32[4096,1024]", **vectors(1024, "scale", "shift")},
        ),
        "layer norm 4x16": (
            lambda x, scale, shift: nn.layer_norm(x, scale, shift), {"x": "f32[4,16]", **vectors(16, "scale", "shift")},
        ),
        "layer norm axis 1 (channels first)": (first_channels, {"x": "f32[8,96,28,28]", **vectors(96, "scale", "shift")}),
        "rms norm 512x4096": (
            lambda x, scale: nn.rms_norm(x, scale), {"x": "f32[512,4096]", **vectors(4096, "scale")},
        ),
        "group norm 8x64x28x28": (
            lambda x, scale, shift: nn.group_norm(x, 8, scale, shift),
            {"x": "f32[8,64,28,28]", **vectors(64, "scale", "shift")},
        ),
        "gelu erf 4M": (lambda x: nn.gelu(x), {"x": "f32[4194304]"}),
        "gelu tanh 4M": (lambda x: nn.gelu(x, "tanh"), {"x": "f32[4194304]"}),
        "gelu tiny": (lambda x: nn.gelu(x), {"x": "f32[40]"}),
        "silu 1M": (lambda x: nn.silu(x), {"x": "f32[1048576]"}),
    }  # fmt: skip


def first_channels(x: Any, scale: Any, shift: Any) -> Any:
    """Normalises over axis 1 of images."""
    mean = x.mean(1, keepdims=True)
    variance = ((x - mean) ** 2).mean(1, keepdims=True)
    return (x - mean) / np.sqrt(variance + 1e-6) * scale[:, None, None] + shift[:, None, None]


def main() -> None:
    """Prints a row per case: what was taken, both times, the ratio of medians."""
    parser = argparse.ArgumentParser()
    parser.add_argument("words", nargs="*")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0.6)
    parser.add_argument("--cost", default="model")
    options = parser.parse_args()
    if OVERRIDES & os.environ.keys():  # BLAS read them when it was loaded
        environment = {name: value for name, value in os.environ.items() if name not in OVERRIDES}
        command = [sys.executable, "-m", "benchmarks.home_against_recorded", *sys.argv[1:]]
        os.execve(sys.executable, command, environment)
    clock = time.process_time if options.threads == 1 else time.perf_counter
    print(f"{'':32} {'recorded ms':>12} {'home ms':>10} {'ratio':>6}  predicted  taken")
    for name, (function, specs) in cases().items():
        if options.words and not any(word in name for word in options.words):
            continue
        tape = tp.trace(function, **specs)
        plan = tp.plan(tape, machine="host", cost=options.cost).data
        program = make_program(plan)
        random = np.random.default_rng(0)
        kinds = [tape.ops[value].type for value in tape.inputs]
        given = [(random.random(kind.shape) + 0.5).astype(numpy_dtype(kind.dtype)) for kind in kinds]
        recorded, home = [], []
        end = time.perf_counter() + options.seconds
        while time.perf_counter() < end or len(recorded) < 5:
            start = clock()
            interpret(tape, given)
            middle = clock()
            run(plan, given, program=program, threads=options.threads)
            finish = clock()
            recorded.append(middle - start)
            home.append(finish - middle)
        ratio = float(np.median(home) / np.median(recorded))
        predicted = plan.totals["planned"]["seconds"].value / plan.totals["recorded"]["seconds"].value
        taken = " ".join(decision.match.pattern for decision in plan.taken) or "-"
        print(
            f"{name:32} {1e3 * np.median(recorded):12.3f} {1e3 * np.median(home):10.3f} {ratio:6.2f}"
            f"  {predicted:9.2f}  {taken}{'   <-- slower' if ratio > 1 and taken != '-' else ''}",
            flush=True,
        )


if __name__ == "__main__":
    main()
