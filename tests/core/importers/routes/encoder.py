"""A block of an encoder with norms in front, spelled for topos, JAX, ONNX and torch: attention in four heads, gelu, two residuals."""

from __future__ import annotations

from typing import Any

SPECS = {
    "x": "f32[2,16,64]", "scale": "f32[64]", "shift": "f32[64]", "query": "f32[64,64]", "key": "f32[64,64]", "value": "f32[64,64]",
    "back": "f32[64,64]", "bias": "f32[64]", "up": "f32[128,64]", "inner": "f32[128]", "down": "f32[64,128]", "outer": "f32[64]",
    "head": "f32[10,64]",
}  # fmt: skip


def topos(x, scale, shift, query, key, value, back, bias, up, inner, down, outer, head):
    from topos_core import nn

    def heads(y):
        return y.reshape(2, 16, 4, 16).transpose(0, 2, 1, 3)

    normal = nn.layer_norm(x, scale, shift)
    seen = nn.attention(*(heads(nn.linear(normal, weight)) for weight in (query, key, value)))
    x = x + nn.linear(seen.transpose(0, 2, 1, 3).reshape(2, 16, 64), back, bias)
    x = x + nn.linear(nn.gelu(nn.linear(nn.layer_norm(x, scale, shift), up, inner)), down, outer)
    return nn.softmax(nn.linear(x, head))


def jax(x, scale, shift, query, key, value, back, bias, up, inner, down, outer, head):
    import jax
    import jax.numpy as jnp

    def norm(y):
        centred = y - y.mean(-1, keepdims=True)
        return centred / jnp.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * scale + shift

    def heads(y):
        return y.reshape(2, 16, 4, 16).transpose(0, 2, 1, 3)

    normal = norm(x)
    q, k, v = (heads(normal @ weight.T) for weight in (query, key, value))
    seen = jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(jnp.einsum("bhqd,bhkd->bhqk", q, k) / 4, axis=-1), v)
    x = x + (seen.transpose(0, 2, 1, 3).reshape(2, 16, 64) @ back.T + bias)
    x = x + (jax.nn.gelu(norm(x) @ up.T + inner, approximate=False) @ down.T + outer)
    return jax.nn.softmax(x @ head.T, axis=-1)


def torch(x, scale, shift, query, key, value, back, bias, up, inner, down, outer, head):
    import torch
    import torch.nn.functional as functional

    def heads(y):
        return y.view(2, 16, 4, 16).transpose(1, 2)

    normal = functional.layer_norm(x, (64,), scale, shift)
    q, k, v = (heads(functional.linear(normal, weight)) for weight in (query, key, value))
    seen = functional.scaled_dot_product_attention(q, k, v)
    x = x + functional.linear(seen.transpose(1, 2).reshape(2, 16, 64), back, bias)
    y = functional.gelu(functional.linear(functional.layer_norm(x, (64,), scale, shift), up, inner))
    return torch.softmax(functional.linear(x + functional.linear(y, down, outer), head), dim=-1)


def onnx() -> tuple[list[Any], list[int]]:
    """Gives the nodes, whose last result is `out`, and its shape."""
    import numpy as np
    from onnx.helper import make_node
    from onnx.numpy_helper import from_array

    def number(name: str, array: Any) -> Any:
        return make_node("Constant", [], [name], value=from_array(np.asarray(array)))

    def linear(x: str, weight: str, y: str, bias: str | None = None) -> list[Any]:
        product = f"{y}_product" if bias else y
        nodes = [
            make_node("Transpose", [weight], [f"{y}_weight"], perm=[1, 0]),
            make_node("MatMul", [x, f"{y}_weight"], [product]),
        ]
        return [*nodes, make_node("Add", [product, bias], [y])] if bias else nodes

    def heads(x: str, y: str, permuted: list[int]) -> list[Any]:
        return [
            make_node("Reshape", [x, "split"], [f"{y}_split"]),
            make_node("Transpose", [f"{y}_split"], [y], perm=permuted),
        ]

    nodes = [
        number("split", np.array([2, 16, 4, 16])), number("joined", np.array([2, 16, 64])), number("root", np.float32(4)),
        number("root2", np.float32(2**0.5)), number("one", np.float32(1)), number("half", np.float32(0.5)),
        make_node("LayerNormalization", ["x", "scale", "shift"], ["normal"]),
        *linear("normal", "query", "q"), *linear("normal", "key", "k"), *linear("normal", "value", "v"),
        *heads("q", "qs", [0, 2, 1, 3]), *heads("k", "ks", [0, 2, 3, 1]), *heads("v", "vs", [0, 2, 1, 3]),
        make_node("MatMul", ["qs", "ks"], ["products"]), make_node("Div", ["products", "root"], ["scores"]),
        make_node("Softmax", ["scores"], ["weights"], axis=-1), make_node("MatMul", ["weights", "vs"], ["seen"]),
        make_node("Transpose", ["seen"], ["turned"], perm=[0, 2, 1, 3]), make_node("Reshape", ["turned", "joined"], ["flat"]),
        *linear("flat", "back", "attended", "bias"), make_node("Add", ["x", "attended"], ["x2"]),
        make_node("LayerNormalization", ["x2", "scale", "shift"], ["normal2"]),
        *linear("normal2", "up", "wide", "inner"),
        make_node("Div", ["wide", "root2"], ["g1"]), make_node("Erf", ["g1"], ["g2"]), make_node("Add", ["g2", "one"], ["g3"]),
        make_node("Mul", ["wide", "g3"], ["g4"]), make_node("Mul", ["g4", "half"], ["gelu"]),
        *linear("gelu", "down", "narrow", "outer"), make_node("Add", ["x2", "narrow"], ["x3"]),
        *linear("x3", "head", "logits"), make_node("Softmax", ["logits"], ["out"], axis=-1),
    ]  # fmt: skip
    return nodes, [2, 16, 10]
