"""The workloads in JAX: `jax.jit` with the weights as constants, images in either order of axes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.workloads.catalog import arrays, resnet_blocks, workloads
from benchmarks.workloads.torch_form import IMAGES
from topos_core.run.bench.contender import Runner


class Axes:
    """How images lie: channels first or last."""

    def __init__(self, last: bool) -> None:
        self.last = last
        self.order = ("NHWC", "HWIO", "NHWC") if last else ("NCHW", "OIHW", "NCHW")
        self.spatial = (1, 2) if last else (2, 3)

    def kernel(self, weight: Any) -> Any:
        return weight.transpose(2, 3, 1, 0) if self.last else weight

    def vector(self, x: Any) -> Any:
        return x if self.last else x[:, None, None]

    def windows(self, size: int) -> tuple[int, ...]:
        return (1, size, size, 1) if self.last else (1, 1, size, size)

    def pads(self, side: int) -> tuple[tuple[int, int], ...]:
        around, none = (side, side), (0, 0)
        return (none, around, around, none) if self.last else (none, none, around, around)


def runner(folder: Path, threads: int, workload: str, channels_last: bool = False) -> Runner:
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_platforms", "cpu")
    chosen = workloads()[workload]
    if channels_last and chosen.kind not in IMAGES:
        raise ValueError("the order of axes makes no difference here")
    inputs, weights = arrays(chosen)
    make: Callable[..., Any] = globals()[chosen.kind]
    function = jax.jit(
        make(jax, jnp, chosen.options, {k: jnp.asarray(v) for k, v in weights.items()}, Axes(channels_last))
    )
    turned = [each.transpose(0, 2, 3, 1) if channels_last else each for each in inputs]
    given = [jnp.asarray(np.ascontiguousarray(each)) for each in turned]

    def back(results: Any) -> list[np.ndarray]:
        rows = results if isinstance(results, tuple) else (results,)
        plain = [np.asarray(each) for each in rows]
        return [each.transpose(0, 3, 1, 2) if channels_last and each.ndim == 4 else each for each in plain]

    return Runner(lambda: jax.block_until_ready(function(*given)), back)


def chain(jax: Any, jnp: Any, o: Any, w: Any, axes: Axes) -> Any:
    return lambda x: jnp.maximum(jax.nn.sigmoid(jnp.tanh(x * 1.3 + 0.2) * x + 0.1) * x, -0.2) - 0.05


def gelu(jax: Any, jnp: Any, o: Any, w: Any, axes: Axes) -> Any:
    return lambda x: jax.nn.gelu(x, approximate=o["approximate"] == "tanh")


def softmax(jax: Any, jnp: Any, o: Any, w: Any, axes: Axes) -> Any:
    return lambda x: jax.nn.softmax(x, -1)


def layer_norm(jax: Any, jnp: Any, o: Any, w: Any, axes: Axes) -> Any:
    return lambda x: _layer_norm(jax, x, w["scale"], w["shift"])


def mse(jax: Any, jnp: Any, o: Any, w: Any, axes: Axes) -> Any:
    return lambda x, target: ((x - target) ** 2).mean()


def linear_gelu(jax: Any, jnp: Any, o: Any, w: Any, axes: Axes) -> Any:
    return lambda x: jax.nn.gelu(x @ w["weight"] + w["bias"], approximate=False)


def conv_bn_relu(jax: Any, jnp: Any, o: Any, w: Any, axes: Axes) -> Any:
    top, bottom, left, right = o["pads"]
    pads = ((top, bottom), (left, right))
    return lambda x: jax.nn.relu(_conv_bn(jax, jnp, x, w, "", o["stride"], pads, axes, o["dilation"]))


def depthwise_pointwise(jax: Any, jnp: Any, o: Any, w: Any, axes: Axes) -> Any:
    def function(x: Any) -> Any:
        deep = _convolved(jax, x, axes.kernel(w["deep"]), 1, ((1, 1), (1, 1)), axes, groups=o["channels"])
        deep = jax.nn.relu(deep + axes.vector(w["deep_bias"]))
        point = _convolved(jax, deep, axes.kernel(w["point"]), 1, ((0, 0), (0, 0)), axes)
        return jax.nn.relu(point + axes.vector(w["point_bias"]))

    return function


def pool(jax: Any, jnp: Any, o: Any, w: Any, axes: Axes) -> Any:
    if o["mean"]:
        return lambda x: _pooled(jax, x, 0.0, jax.lax.add, axes) / 9
    return lambda x: _pooled(jax, x, -jnp.inf, jax.lax.max, axes)


def attention(jax: Any, jnp: Any, o: Any, w: Any, axes: Axes) -> Any:
    return lambda q, k, v: _attention(jax, jnp, q, k, v, o["causal"])


def batch_norm(jax: Any, jnp: Any, o: Any, w: Any, axes: Axes) -> Any:
    reduced = (0, *range(2, len(o["shape"])))
    shape = (1, -1, *(1,) * (len(o["shape"]) - 2))

    def function(x: Any) -> Any:
        mean = x.mean(reduced, keepdims=True)
        variance = ((x - mean) ** 2).mean(reduced, keepdims=True)
        scale, shift = w["scale"].reshape(shape), w["shift"].reshape(shape)
        return (x - mean) * (scale / jnp.sqrt(variance + 1e-5)) + shift, mean, variance

    return function


def resnet(jax: Any, jnp: Any, o: Any, w: Any, axes: Axes) -> Any:
    def layer(x: Any, prefix: str, stride: int, side: int) -> Any:
        return _conv_bn(jax, jnp, x, w, prefix, stride, ((side, side), (side, side)), axes)

    def function(x: Any) -> Any:
        x = _pooled(jax, jax.nn.relu(layer(x, "stem.", 2, 3)), -jnp.inf, jax.lax.max, axes)
        for name, _, _, stride in resnet_blocks():
            y = layer(jax.nn.relu(layer(x, f"{name}.first.", stride, 1)), f"{name}.second.", 1, 1)
            x = jax.nn.relu((layer(x, f"{name}.shortcut.", 2, 0) if stride == 2 else x) + y)
        return x.mean(axes.spatial) @ w["head.weight"] + w["head.bias"]

    return function


def bert(jax: Any, jnp: Any, o: Any, w: Any, axes: Axes) -> Any:
    def function(x: Any) -> Any:
        def linear(y: Any, name: str) -> Any:
            return y @ w[f"{name}.weight"] + w[f"{name}.bias"]

        def heads(name: str) -> Any:
            return linear(x, name).reshape(1, 128, 12, 64).transpose(0, 2, 1, 3)

        seen = _attention(jax, jnp, heads("query"), heads("key"), heads("value"), False)
        seen = linear(seen.transpose(0, 2, 1, 3).reshape(1, 128, 768), "out")
        y = _layer_norm(jax, x + seen, w["norm1.scale"], w["norm1.shift"])
        inner = linear(jax.nn.gelu(linear(y, "up"), approximate=False), "down")
        return _layer_norm(jax, y + inner, w["norm2.scale"], w["norm2.shift"])

    return function


def _layer_norm(jax: Any, x: Any, scale: Any, shift: Any) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    return centred * jax.lax.rsqrt((centred * centred).mean(-1, keepdims=True) + 1e-5) * scale + shift


def _attention(jax: Any, jnp: Any, q: Any, k: Any, v: Any, causal: bool) -> Any:
    scores = jnp.einsum("bhld,bhmd->bhlm", q, k) * q.shape[-1] ** -0.5
    if causal:
        scores = jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], bool)), scores, -jnp.inf)
    return jnp.einsum("bhlm,bhmd->bhld", jax.nn.softmax(scores, -1), v)


def _convolved(
    jax: Any, x: Any, kernel: Any, stride: int, pads: Any, axes: Axes, groups: int = 1, dilation: int = 1
) -> Any:
    return jax.lax.conv_general_dilated(
        x, kernel, (stride, stride), pads, rhs_dilation=(dilation, dilation), dimension_numbers=axes.order,
        feature_group_count=groups,
    )  # fmt: skip


def _conv_bn(
    jax: Any, jnp: Any, x: Any, w: Any, prefix: str, stride: int, pads: Any, axes: Axes, dilation: int = 1
) -> Any:
    y = _convolved(jax, x, axes.kernel(w[f"{prefix}weight"]), stride, pads, axes, dilation=dilation)
    inverse = w[f"{prefix}scale"] / jnp.sqrt(w[f"{prefix}variance"] + 1e-5)
    return y * axes.vector(inverse) + axes.vector(w[f"{prefix}shift"] - w[f"{prefix}mean"] * inverse)


def _pooled(jax: Any, x: Any, start: float, combine: Any, axes: Axes) -> Any:
    return jax.lax.reduce_window(x, start, combine, axes.windows(3), axes.windows(2), axes.pads(1))
