"""What is compared: names, shapes, seeds and bars. Every framework's file makes the same program of a workload's kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True, slots=True)
class Workload:
    """One program at one size.

    Args:
        name: What `--only` takes.
        kind: Which program: every framework's file has a function of this name.
        title: For people.
        bar: The largest ratio to the best peer that counts as reached, one thread, CPU time; None for the odd shapes,
            which are judged together.
        options: The program's numbers.
    """

    name: str
    kind: str
    title: str
    bar: float | None
    options: Mapping[str, Any] = field(default_factory=dict)


def drawn(seed: int, *shape: int, scale: float = 1.0) -> np.ndarray:
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(np.float32)


def positive(seed: int, *shape: int) -> np.ndarray:
    return np.abs(drawn(seed, *shape)) + np.float32(0.5)


def convolution(
    batch: int,
    channels: int,
    extents: Sequence[int],
    out: int,
    size: int,
    stride: int,
    pads: Sequence[int],
    **more: Any,
) -> dict[str, Any]:
    """`pads`: before and after the height, before and after the width."""
    return {
        "batch": batch, "channels": channels, "extents": tuple(extents), "out": out, "size": size, "stride": stride,
        "pads": tuple(pads), "dilation": 1, **more,
    }  # fmt: skip


def attention(batch: int, heads: int, length: int, width: int, causal: bool) -> dict[str, Any]:
    return {"batch": batch, "heads": heads, "length": length, "width": width, "causal": causal}


def pool(batch: int, channels: int, extents: Sequence[int], mean: bool) -> dict[str, Any]:
    return {"batch": batch, "channels": channels, "extents": tuple(extents), "mean": mean}


def workloads() -> dict[str, Workload]:
    """The 22 workloads with a bar each, then 10 odd ones: nothing divisible by 16, strides, uneven pads, batch 1 and 7."""
    same, three = (1, 1, 1, 1), (3, 3, 3, 3)
    rows = [
        Workload("ew8", "chain", "elementwise chain of eight, 16M", 0.65, {"size": 1 << 24}),
        Workload("gelu_tanh", "gelu", "gelu by tanh, 4M", 0.48, {"size": 1 << 22, "approximate": "tanh"}),
        Workload("gelu_erf", "gelu", "gelu by erf, 4M", 0.48, {"size": 1 << 22, "approximate": "none"}),
        Workload("softmax", "softmax", "softmax 4096x1024", 0.95, {"shape": (4096, 1024)}),
        Workload("layernorm", "layer_norm", "layer norm 4096x1024", 0.60, {"shape": (4096, 1024)}),
        Workload("mse", "mse", "mean squared error, 16M", 0.98, {"size": 1 << 24}),
        Workload(
            "linear_gelu", "linear_gelu", "linear + gelu 512x768x3072", 1.0, {"shape": (512,), "steps": 768, "out": 3072}
        ),
        Workload("conv3_56", "conv_bn_relu", "conv 3x3 + bn + relu, 64x56x56", 0.40, convolution(1, 64, (56, 56), 64, 3, 1, same)),
        Workload("conv3_28", "conv_bn_relu", "conv 3x3 + bn + relu, 8x128x28x28", 0.40, convolution(8, 128, (28, 28), 128, 3, 1, same)),
        Workload("conv7", "conv_bn_relu", "conv 7x7 /2 + bn + relu, 3x224x224", 1.08, convolution(1, 3, (224, 224), 64, 7, 2, three)),
        Workload("conv1", "conv_bn_relu", "conv 1x1 + bn + relu, 256x56x56", 0.90, convolution(1, 256, (56, 56), 64, 1, 1, (0, 0, 0, 0))),
        Workload("dwpw", "depthwise_pointwise", "depthwise + pointwise, 128x56x56", 1.0, {"channels": 128, "extents": (56, 56)}),
        Workload("maxpool", "pool", "max pool 3x3 /2, 64x112x112", 0.95, pool(1, 64, (112, 112), False)),
        Workload("avgpool", "pool", "mean pool 3x3 /2, 64x112x112", 0.95, pool(1, 64, (112, 112), True)),
        Workload("attn512", "attention", "attention 12x512x64", 0.97, attention(1, 12, 512, 64, False)),
        Workload("attn512c", "attention", "attention 12x512x64, causal", 0.55, attention(1, 12, 512, 64, True)),
        Workload("attn2048", "attention", "attention 8x2048x64", 0.97, attention(1, 8, 2048, 64, False)),
        Workload("attn2048c", "attention", "attention 8x2048x64, causal", 0.55, attention(1, 8, 2048, 64, True)),
        Workload("bn4d", "batch_norm", "batch norm training 32x64x56x56", 0.45, {"shape": (32, 64, 56, 56)}),
        Workload("bn2d", "batch_norm", "batch norm training 8192x1024", 0.85, {"shape": (8192, 1024)}),
        Workload("resnet18", "resnet", "ResNet-18, batch 1", 0.85),
        Workload("bert", "bert", "BERT layer, 1x128x768", 1.0),
        Workload("odd_linear", "linear_gelu", "linear + gelu 7x37x131 -> 219", None, {"shape": (7, 37), "steps": 131, "out": 219}),
        Workload(
            "odd_conv3", "conv_bn_relu", "conv 3x3, uneven pads, 7x19x29x31", None, convolution(7, 19, (29, 31), 23, 3, 1, (1, 0, 2, 1))
        ),
        Workload("odd_conv5", "conv_bn_relu", "conv 5x5 /2, 1x21x57x43", None, convolution(1, 21, (57, 43), 35, 5, 2, (2, 1, 0, 2))),
        Workload(
            "odd_dilated", "conv_bn_relu", "conv 3x3 dilated, 1x18x45x37", None,
            convolution(1, 18, (45, 37), 26, 3, 1, (2, 2, 2, 2), dilation=2),
        ),
        Workload("odd_softmax", "softmax", "softmax 777x333", None, {"shape": (777, 333)}),
        Workload("odd_layernorm", "layer_norm", "layer norm 7x143x517", None, {"shape": (7, 143, 517)}),
        Workload("odd_attn", "attention", "attention 7x3x101x42", None, attention(7, 3, 101, 42, False)),
        Workload("odd_attnc", "attention", "attention 1x5x211x53, causal", None, attention(1, 5, 211, 53, True)),
        Workload("odd_pool", "pool", "max pool 3x3 /2, 7x19x61x53", None, pool(7, 19, (61, 53), False)),
        Workload("odd_bn", "batch_norm", "batch norm training 7x27x41x39", None, {"shape": (7, 27, 41, 39)}),
    ]  # fmt: skip
    return {row.name: row for row in rows}


def arrays(workload: Workload) -> tuple[list[np.ndarray], Arrays]:
    """Gives a workload's inputs and its weights."""
    o = workload.options
    match workload.kind:
        case "chain" | "gelu":
            return [drawn(1, o["size"])], {}
        case "mse":
            return [drawn(1, o["size"]), drawn(2, o["size"])], {}
        case "softmax":
            return [drawn(1, *o["shape"])], {}
        case "layer_norm":
            return [drawn(1, *o["shape"])], {"scale": drawn(2, o["shape"][-1]), "shift": drawn(3, o["shape"][-1])}
        case "batch_norm":
            return [drawn(1, *o["shape"])], {"scale": drawn(2, o["shape"][1]), "shift": drawn(3, o["shape"][1])}
        case "linear_gelu":
            weight = drawn(2, o["steps"], o["out"], scale=o["steps"] ** -0.5)
            return [drawn(1, *o["shape"], o["steps"])], {"weight": weight, "bias": drawn(3, o["out"])}
        case "conv_bn_relu":
            image = drawn(1, o["batch"], o["channels"], *o["extents"])
            return [image], conv_bn(2, o["out"], o["channels"], o["size"])
        case "depthwise_pointwise":
            count = o["channels"]
            weights = {
                "deep": drawn(2, count, 1, 3, 3, scale=1 / 3), "deep_bias": drawn(3, count, scale=0.1),
                "point": drawn(4, count, count, 1, 1, scale=count**-0.5), "point_bias": drawn(5, count, scale=0.1),
            }  # fmt: skip
            return [drawn(1, 1, count, *o["extents"])], weights
        case "pool":
            return [drawn(1, o["batch"], o["channels"], *o["extents"])], {}
        case "attention":
            shape = (o["batch"], o["heads"], o["length"], o["width"])
            return [drawn(seed, *shape) for seed in (1, 2, 3)], {}
        case "resnet":
            return [drawn(1, 1, 3, 224, 224)], resnet_weights()
        case "bert":
            return [drawn(1, 1, 128, 768)], bert_weights()
    raise ValueError(f"no kind is called {workload.kind!r}")


def conv_bn(seed: int, out: int, channels: int, size: int, prefix: str = "") -> Arrays:
    """Gives a convolution's weight and the statistics, scale and shift of the norm behind it."""
    return {
        f"{prefix}weight": drawn(seed, out, channels, size, size, scale=(channels * size * size) ** -0.5),
        f"{prefix}scale": positive(seed + 1, out), f"{prefix}shift": drawn(seed + 2, out, scale=0.1),
        f"{prefix}mean": drawn(seed + 3, out, scale=0.1), f"{prefix}variance": positive(seed + 4, out),
    }  # fmt: skip


def resnet_blocks() -> list[tuple[str, int, int, int]]:
    """Lists a ResNet-18's blocks: name, channels in, channels out, stride."""
    blocks, channels = [], 64
    for stage, out in enumerate((64, 128, 256, 512)):
        for number in range(2):
            stride = 2 if stage and not number else 1
            blocks.append((f"block{stage}{number}", channels, out, stride))
            channels = out
    return blocks


def resnet_weights() -> Arrays:
    weights = conv_bn(100, 64, 3, 7, "stem.")
    for number, (name, channels, out, stride) in enumerate(resnet_blocks()):
        seed = 200 + 20 * number
        weights |= conv_bn(seed, out, channels, 3, f"{name}.first.")
        weights |= conv_bn(seed + 5, out, out, 3, f"{name}.second.")
        if stride == 2:
            weights |= conv_bn(seed + 10, out, channels, 1, f"{name}.shortcut.")
    return weights | {"head.weight": drawn(900, 512, 1000, scale=512**-0.5), "head.bias": drawn(901, 1000, scale=0.1)}


def bert_weights(width: int = 768, inner: int = 3072) -> Arrays:
    shapes = {
        "query": (width, width), "key": (width, width), "value": (width, width), "out": (width, width),
        "up": (width, inner), "down": (inner, width),
    }  # fmt: skip
    weights: Arrays = {}
    for number, (name, shape) in enumerate(shapes.items()):
        weights[f"{name}.weight"] = drawn(10 + 2 * number, *shape, scale=shape[0] ** -0.5)
        weights[f"{name}.bias"] = drawn(11 + 2 * number, shape[1], scale=0.1)
    for number, name in enumerate(("norm1", "norm2")):
        weights[f"{name}.scale"] = positive(40 + 2 * number, width)
        weights[f"{name}.shift"] = drawn(41 + 2 * number, width)
    return weights
