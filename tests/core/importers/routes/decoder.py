"""A block of a decoder, spelled for topos, JAX, ONNX and torch: RMS norms, causal attention, a gated layer with silu."""

from __future__ import annotations

from typing import Any

SPECS = {
    "x": "f32[2,16,64]", "first": "f32[64]", "second": "f32[64]", "query": "f32[64,64]", "key": "f32[64,64]", "value": "f32[64,64]",
    "back": "f32[64,64]", "gate": "f32[128,64]", "up": "f32[128,64]", "down": "f32[64,128]",
}  # fmt: skip


def topos(x, first, second, query, key, value, back, gate, up, down):
    from topos_core import nn

    def heads(y):
        return y.reshape(2, 16, 4, 16).transpose(0, 2, 1, 3)

    normal = nn.rms_norm(x, first)
    seen = nn.attention(*(heads(nn.linear(normal, weight)) for weight in (query, key, value)), causal=True)
    x = x + nn.linear(seen.transpose(0, 2, 1, 3).reshape(2, 16, 64), back)
    return x + nn.gated_mlp(nn.rms_norm(x, second), gate, up, down)


def jax(x, first, second, query, key, value, back, gate, up, down):
    import jax
    import jax.numpy as jnp

    def norm(y, scale):
        return y * jax.lax.rsqrt((y * y).mean(-1, keepdims=True) + 1e-6) * scale

    def heads(y):
        return y.reshape(2, 16, 4, 16).transpose(0, 2, 1, 3)

    normal = norm(x, first)
    q, k, v = (heads(normal @ weight.T) for weight in (query, key, value))
    scores = jnp.where(jnp.tri(16, dtype=bool), q @ k.swapaxes(-1, -2) * 0.25, -jnp.inf)
    seen = jax.nn.softmax(scores, axis=-1) @ v
    x = x + seen.transpose(0, 2, 1, 3).reshape(2, 16, 64) @ back.T
    normal = norm(x, second)
    return x + (jax.nn.silu(normal @ gate.T) * (normal @ up.T)) @ down.T


def torch(x, first, second, query, key, value, back, gate, up, down):
    import torch
    import torch.nn.functional as functional

    def norm(y, scale):
        return scale * (y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6))

    def heads(y):
        return y.view(2, 16, 4, 16).transpose(1, 2)

    normal = norm(x, first)
    q, k, v = (heads(functional.linear(normal, weight)) for weight in (query, key, value))
    seen = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    x = x + functional.linear(seen.transpose(1, 2).reshape(2, 16, 64), back)
    normal = norm(x, second)
    gated = functional.silu(functional.linear(normal, gate)) * functional.linear(normal, up)
    return x + functional.linear(gated, down)


def onnx() -> tuple[list[Any], list[int]]:
    """Gives the nodes, whose last result is `out`, and its shape."""
    import numpy as np
    from onnx.helper import make_node
    from onnx.numpy_helper import from_array

    def number(name: str, array: Any) -> Any:
        return make_node("Constant", [], [name], value=from_array(np.asarray(array)))

    def norm(x: str, scale: str, y: str) -> list[Any]:
        return [
            make_node("Pow", [x, "two"], [f"{y}_squares"]),
            make_node("ReduceMean", [f"{y}_squares"], [f"{y}_mean"], axes=[-1], keepdims=1),
            make_node("Add", [f"{y}_mean", "eps"], [f"{y}_moved"]),
            make_node("Sqrt", [f"{y}_moved"], [f"{y}_root"]),
            make_node("Div", [x, f"{y}_root"], [f"{y}_unit"]),
            make_node("Mul", [scale, f"{y}_unit"], [y]),
        ]

    def linear(x: str, weight: str, y: str) -> list[Any]:
        return [
            make_node("Transpose", [weight], [f"{y}_weight"], perm=[1, 0]),
            make_node("MatMul", [x, f"{y}_weight"], [y]),
        ]

    def heads(x: str, y: str, permuted: list[int]) -> list[Any]:
        return [
            make_node("Reshape", [x, "split"], [f"{y}_split"]),
            make_node("Transpose", [f"{y}_split"], [y], perm=permuted),
        ]

    hidden = np.where(np.tri(16, dtype=bool), 0, -np.inf).astype(np.float32)
    nodes = [
        number("split", np.array([2, 16, 4, 16])), number("joined", np.array([2, 16, 64])), number("two", np.float32(2)),
        number("eps", np.float32(1e-6)), number("root", np.float32(4)), number("hidden", hidden),
        *norm("x", "first", "normal"),
        *linear("normal", "query", "q"), *linear("normal", "key", "k"), *linear("normal", "value", "v"),
        *heads("q", "qs", [0, 2, 1, 3]), *heads("k", "ks", [0, 2, 3, 1]), *heads("v", "vs", [0, 2, 1, 3]),
        make_node("MatMul", ["qs", "ks"], ["products"]), make_node("Div", ["products", "root"], ["scaled"]),
        make_node("Add", ["scaled", "hidden"], ["scores"]), make_node("Softmax", ["scores"], ["weights"], axis=-1),
        make_node("MatMul", ["weights", "vs"], ["seen"]), make_node("Transpose", ["seen"], ["turned"], perm=[0, 2, 1, 3]),
        make_node("Reshape", ["turned", "joined"], ["flat"]),
        *linear("flat", "back", "attended"), make_node("Add", ["x", "attended"], ["x2"]),
        *norm("x2", "second", "normal2"),
        *linear("normal2", "gate", "gated"), make_node("Sigmoid", ["gated"], ["open"]), make_node("Mul", ["gated", "open"], ["silu"]),
        *linear("normal2", "up", "wide"), make_node("Mul", ["silu", "wide"], ["inner"]),
        *linear("inner", "down", "narrow"), make_node("Add", ["x2", "narrow"], ["out"]),
    ]  # fmt: skip
    return nodes, [2, 16, 64]
