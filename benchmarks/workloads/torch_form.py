"""The workloads in torch: its own modules and functions, in both memory formats, eager and compiled with frozen weights."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.workloads.catalog import Arrays, arrays, resnet_blocks, workloads
from topos_core.run.bench.contender import Runner

IMAGES = ("conv_bn_relu", "depthwise_pointwise", "pool", "resnet")
"""Kinds whose speed may depend on the memory format."""


def runner(folder: Path, threads: int, workload: str, compiled: bool = False, channels_last: bool = False) -> Runner:
    import torch

    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    chosen = workloads()[workload]
    if channels_last and chosen.kind not in IMAGES:
        raise ValueError("the memory format makes no difference here")
    inputs, weights = arrays(chosen)
    module = _module(torch, globals()[chosen.kind], chosen.options, weights).eval()
    given = [torch.from_numpy(each) for each in inputs]
    if channels_last:
        module = module.to(memory_format=torch.channels_last)
        given = [each.to(memory_format=torch.channels_last) for each in given]
    if compiled:
        import torch._inductor.config as settings

        os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
        settings.freezing = True
        module = torch.compile(module, dynamic=False)
    return Runner(lambda: module(*given), _arrays)


def _arrays(given: Any) -> list[np.ndarray]:
    rows = given if isinstance(given, tuple) else (given,)
    return [each.contiguous().numpy() for each in rows]


def _module(torch: Any, make: Callable[..., Any], options: Any, weights: Arrays) -> Any:
    """Wraps what a kind's function makes: a function of the inputs, and the modules that it uses."""
    function, parts = make(torch, options, {name: torch.from_numpy(each) for name, each in weights.items()})

    class Program(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.parts = torch.nn.ModuleDict(parts)

        def forward(self, *given: Any) -> Any:
            return function(self.parts, *given)

    return Program()


def chain(torch: Any, o: Any, w: Any) -> Any:
    return lambda parts, x: torch.clamp_min(torch.sigmoid(torch.tanh(x * 1.3 + 0.2) * x + 0.1) * x, -0.2) - 0.05, {}


def gelu(torch: Any, o: Any, w: Any) -> Any:
    return lambda parts, x: torch.nn.functional.gelu(x, approximate=o["approximate"]), {}


def softmax(torch: Any, o: Any, w: Any) -> Any:
    return lambda parts, x: torch.softmax(x, -1), {}


def layer_norm(torch: Any, o: Any, w: Any) -> Any:
    return lambda parts, x: parts["norm"](x), {"norm": _layer_norm(torch, w["scale"], w["shift"])}


def mse(torch: Any, o: Any, w: Any) -> Any:
    return lambda parts, x, target: torch.nn.functional.mse_loss(x, target), {}


def linear_gelu(torch: Any, o: Any, w: Any) -> Any:
    parts = {"linear": _linear(torch, w["weight"], w["bias"])}
    return lambda parts, x: torch.nn.functional.gelu(parts["linear"](x)), parts


def conv_bn_relu(torch: Any, o: Any, w: Any) -> Any:
    top, bottom, left, right = o["pads"]
    even = top == bottom and left == right
    layer = _conv_bn(torch, w, "", o["stride"], (top, left) if even else 0, o["dilation"])
    pads = (left, right, top, bottom)

    def function(parts: Any, x: Any) -> Any:
        x = x if even else torch.nn.functional.pad(x, pads)
        return torch.nn.functional.relu(parts["layer"](x))

    return function, {"layer": layer}


def depthwise_pointwise(torch: Any, o: Any, w: Any) -> Any:
    count = o["channels"]
    deep = torch.nn.Conv2d(count, count, 3, padding=1, groups=count)
    deep.weight.data, deep.bias.data = w["deep"], w["deep_bias"]
    point = torch.nn.Conv2d(count, count, 1)
    point.weight.data, point.bias.data = w["point"], w["point_bias"]
    relu = torch.nn.functional.relu
    return lambda parts, x: relu(parts["point"](relu(parts["deep"](x)))), {"deep": deep, "point": point}


def pool(torch: Any, o: Any, w: Any) -> Any:
    function = torch.nn.functional.avg_pool2d if o["mean"] else torch.nn.functional.max_pool2d
    return lambda parts, x: function(x, 3, 2, 1), {}


def attention(torch: Any, o: Any, w: Any) -> Any:
    function, causal = torch.nn.functional.scaled_dot_product_attention, o["causal"]
    return lambda parts, q, k, v: function(q, k, v, is_causal=causal), {}


def batch_norm(torch: Any, o: Any, w: Any) -> Any:
    """Gives the batch's mean and variance too, as the program does; torch keeps the inverse root of the variance."""
    shape = (1, -1, *(1,) * (len(o["shape"]) - 2))

    def function(parts: Any, x: Any) -> Any:
        y, mean, root = torch.native_batch_norm(x, w["scale"], w["shift"], None, None, True, 0.1, 1e-5)
        return y, mean.reshape(shape), (root**-2 - 1e-5).reshape(shape)

    return function, {}


def resnet(torch: Any, o: Any, w: Any) -> Any:
    parts = {"stem": _conv_bn(torch, w, "stem.", 2, 3), "head": _linear(torch, w["head.weight"], w["head.bias"])}
    for name, _, _, stride in resnet_blocks():
        parts[f"{name}_first"] = _conv_bn(torch, w, f"{name}.first.", stride, 1)
        parts[f"{name}_second"] = _conv_bn(torch, w, f"{name}.second.", 1, 1)
        if stride == 2:
            parts[f"{name}_shortcut"] = _conv_bn(torch, w, f"{name}.shortcut.", 2, 0)
    relu = torch.nn.functional.relu

    def function(parts: Any, x: Any) -> Any:
        x = torch.nn.functional.max_pool2d(relu(parts["stem"](x)), 3, 2, 1)
        for name, _, _, stride in resnet_blocks():
            y = parts[f"{name}_second"](relu(parts[f"{name}_first"](x)))
            x = relu((parts[f"{name}_shortcut"](x) if stride == 2 else x) + y)
        return parts["head"](x.mean((2, 3)))

    return function, parts


def bert(torch: Any, o: Any, w: Any) -> Any:
    names = ("query", "key", "value", "out", "up", "down")
    parts = {name: _linear(torch, w[f"{name}.weight"], w[f"{name}.bias"]) for name in names}
    parts |= {name: _layer_norm(torch, w[f"{name}.scale"], w[f"{name}.shift"]) for name in ("norm1", "norm2")}
    functional = torch.nn.functional

    def function(parts: Any, x: Any) -> Any:
        def heads(name: str) -> Any:
            return parts[name](x).view(1, 128, 12, 64).transpose(1, 2)

        seen = functional.scaled_dot_product_attention(heads("query"), heads("key"), heads("value"))
        y = parts["norm1"](x + parts["out"](seen.transpose(1, 2).reshape(1, 128, 768)))
        return parts["norm2"](y + parts["down"](functional.gelu(parts["up"](y))))

    return function, parts


def _linear(torch: Any, weight: Any, bias: Any) -> Any:
    layer = torch.nn.Linear(*weight.shape)
    layer.weight.data, layer.bias.data = weight.t().contiguous(), bias
    return layer


def _layer_norm(torch: Any, scale: Any, shift: Any) -> Any:
    layer = torch.nn.LayerNorm(scale.shape[0])
    layer.weight.data, layer.bias.data = scale, shift
    return layer


def _conv_bn(torch: Any, w: Any, prefix: str, stride: int, padding: Any, dilation: int = 1) -> Any:
    weight = w[f"{prefix}weight"]
    convolution = torch.nn.Conv2d(
        weight.shape[1], weight.shape[0], weight.shape[2], stride, padding, dilation=dilation, bias=False
    )
    norm = torch.nn.BatchNorm2d(weight.shape[0])
    convolution.weight.data = weight
    norm.weight.data, norm.bias.data = w[f"{prefix}scale"], w[f"{prefix}shift"]
    norm.running_mean.data, norm.running_var.data = w[f"{prefix}mean"], w[f"{prefix}variance"]
    return torch.nn.Sequential(convolution, norm)
