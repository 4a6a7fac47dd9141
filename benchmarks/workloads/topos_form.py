"""The workloads for topos: NumPy and `nn`, traced, planned with the weights bound, run with results from the pool.

`recorded` runs the same program op by op with NumPy; it is one of the peers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import topos_core as tp
from benchmarks.workloads.catalog import Arrays, Workload, arrays, resnet_blocks, workloads
from topos_core import nn
from topos_core.run.bench.contender import Runner
from topos_core.tape.tape import Tape

f32 = np.float32


def chain(o: Any, w: Arrays, x: Any) -> Any:
    y = np.tanh(x * f32(1.3) + f32(0.2)) * x + f32(0.1)
    return np.maximum(nn.sigmoid(y) * x, f32(-0.2)) - f32(0.05)


def gelu(o: Any, w: Arrays, x: Any) -> Any:
    return nn.gelu(x, o["approximate"])


def softmax(o: Any, w: Arrays, x: Any) -> Any:
    return nn.softmax(x)


def layer_norm(o: Any, w: Arrays, x: Any) -> Any:
    return nn.layer_norm(x, w["scale"], w["shift"])


def mse(o: Any, w: Arrays, x: Any, target: Any) -> Any:
    return ((x - target) ** 2).mean()


def linear_gelu(o: Any, w: Arrays, x: Any) -> Any:
    return nn.gelu(x @ w["weight"] + w["bias"])


def conv_bn_relu(o: Any, w: Arrays, x: Any) -> Any:
    top, bottom, left, right = o["pads"]
    return nn.relu(_conv_bn(x, w, "", o["stride"], ((top, bottom), (left, right)), o["dilation"]))


def depthwise_pointwise(o: Any, w: Arrays, x: Any) -> Any:
    deep = nn.relu(nn.conv2d(x, w["deep"], w["deep_bias"], padding=1, groups=o["channels"]))
    return nn.relu(nn.conv2d(deep, w["point"], w["point_bias"]))


def pool(o: Any, w: Arrays, x: Any) -> Any:
    return (nn.avg_pool if o["mean"] else nn.max_pool)(x, 3, stride=2, padding=1)


def attention(o: Any, w: Arrays, q: Any, k: Any, v: Any) -> Any:
    return nn.attention(q, k, v, causal=o["causal"])


def batch_norm(o: Any, w: Arrays, x: Any) -> Any:
    axes = (0, *range(2, x.ndim))
    shape = (1, -1, *(1,) * (x.ndim - 2))
    mean = x.mean(axes, keepdims=True)
    variance = ((x - mean) ** 2).mean(axes, keepdims=True)
    y = (x - mean) / np.sqrt(variance + f32(1e-5)) * w["scale"].reshape(shape) + w["shift"].reshape(shape)
    return y, mean, variance


def resnet(o: Any, w: Arrays, x: Any) -> Any:
    x = nn.max_pool(nn.relu(_conv_bn(x, w, "stem.", 2, 3)), 3, stride=2, padding=1)
    for name, _, _, stride in resnet_blocks():
        y = nn.relu(_conv_bn(x, w, f"{name}.first.", stride, 1))
        y = _conv_bn(y, w, f"{name}.second.", 1, 1)
        if stride == 2:
            x = _conv_bn(x, w, f"{name}.shortcut.", 2, 0)
        x = nn.relu(x + y)
    return x.mean((2, 3)) @ w["head.weight"] + w["head.bias"]


def bert(o: Any, w: Arrays, x: Any) -> Any:
    def linear(y: Any, name: str) -> Any:
        return y @ w[f"{name}.weight"] + w[f"{name}.bias"]

    def heads(name: str) -> Any:
        return linear(x, name).reshape(1, 128, 12, 64).transpose(0, 2, 1, 3)

    seen = nn.attention(heads("query"), heads("key"), heads("value"))
    seen = linear(seen.transpose(0, 2, 1, 3).reshape(1, 128, 768), "out")
    y = nn.layer_norm(x + seen, w["norm1.scale"], w["norm1.shift"])
    return nn.layer_norm(y + linear(nn.gelu(linear(y, "up")), "down"), w["norm2.scale"], w["norm2.shift"])


def _conv_bn(x: Any, w: Arrays, prefix: str, stride: int, padding: Any, dilation: int = 1) -> Any:
    y = nn.conv2d(x, w[f"{prefix}weight"], stride=stride, padding=padding, dilation=dilation)
    given = (w[f"{prefix}{name}"] for name in ("mean", "variance", "scale", "shift"))
    return nn.batch_norm(y, *given)


def traced(workload: Workload) -> tuple[Tape, list[np.ndarray]]:
    """Records a workload; gives its tape and its inputs."""
    program: Callable[..., Any] = globals()[workload.kind]
    inputs, weights = arrays(workload)
    specs = [tp.f32[each.shape] for each in inputs]
    return tp.trace(lambda *given: program(workload.options, weights, *given), *specs), inputs


def home(folder: Path, threads: int, workload: str) -> Runner:
    """Traces, plans with the weights bound, and runs with this machine's kernels."""
    tape, inputs = traced(workloads()[workload])
    plan = tp.plan(tape, parameters=dict(tape.defaults))
    return Runner(lambda: plan.run(*inputs, threads=threads), _leaves)


def recorded(folder: Path, threads: int, workload: str) -> Runner:
    """Runs the recorded ops with NumPy, its BLAS on all threads: what the same code costs without a plan."""
    import threadpoolctl

    from topos_core.run.interpreter import bind
    from topos_core.run.program import make_program

    tape, inputs = traced(workloads()[workload])
    nothing = tp.plan(tape, off=sorted(_patterns()))
    program = make_program(nothing.data)
    given = {value: array for value, array in bind(tape, inputs).items() if value in tape.inputs}
    threadpoolctl.threadpool_limits(threads, "blas")
    return Runner(
        lambda: program.run(given, threads, threads), lambda values: [values[value] for value in tape.results]
    )


def _patterns() -> Sequence[str]:
    from topos_core.matching.catalog import patterns

    return list(patterns())


def _leaves(given: Any) -> list[np.ndarray]:
    return [given] if isinstance(given, np.ndarray) else [np.asarray(each) for each in given]
