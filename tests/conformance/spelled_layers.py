"""Spellings of layers with what stands around them: their activations, norms and losses, and programs that look alike."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from tests.conformance.spellings import Group, group
from topos_core import nn
from topos_core.recording.elementary import erf


def _conv_bn_activation() -> Group:
    specs = {
        "x": "f32[2,3,8,8]",
        "w": "f32[4,3,3,3]",
        **dict.fromkeys(("b", "mean", "var", "scale", "shift"), "f32[4]"),
    }

    def column(v: Any) -> Any:
        return v[:, None, None]

    def windows(x: Any, w: Any) -> Any:
        return np.einsum("bchwij,ocij->bohw", sliding_window_view(x, (3, 3), axis=(2, 3)), w)

    def bias(x, w, b, mean, var, scale, shift):
        return windows(x, w) + column(b)

    def bias_relu(x, w, b, mean, var, scale, shift):
        return np.maximum(column(b) + windows(x, w), 0)

    def relu_by_choice(x, w, b, mean, var, scale, shift):
        y = windows(x, w) + b.reshape(1, 4, 1, 1)
        return np.where(y > 0, y, 0)

    def normed(x, w, b, mean, var, scale, shift):
        y = (windows(x, w) - column(mean)) / np.sqrt(column(var) + 1e-5)
        return np.maximum(y * column(scale) + column(shift), 0)

    def folded(x, w, b, mean, var, scale, shift):
        factor = scale / np.sqrt(var + 1e-5)
        return windows(x, w) * column(factor) + column(shift - mean * factor)

    def framework(x, w, b, mean, var, scale, shift):
        return nn.relu(nn.batch_norm(nn.conv2d(x, w, b), mean, var, scale, shift))

    def channels_last(x, w, b, mean, var, scale, shift):
        image = np.transpose(x, (0, 2, 3, 1))
        y = np.einsum("bhwcij,ocij->bhwo", sliding_window_view(image, (3, 3), axis=(1, 2)), w)
        return 1 / (1 + np.exp(-(y + b)))

    def matrix(x, w, b, mean, var, scale, shift):
        columns = sliding_window_view(x, (3, 3), axis=(2, 3)).transpose(0, 2, 3, 1, 4, 5).reshape(72, 27)
        return np.tanh(columns @ w.reshape(4, 27).T + b).reshape(2, 6, 6, 4)

    def swish(x, w, b, mean, var, scale, shift):
        y = nn.conv2d(x, w, b)
        return y / (1 + np.exp(-y))

    def clipped(x, w, b, mean, var, scale, shift):
        return np.clip(nn.conv2d(x, w) + column(b), 0, 6)

    def bias_per_position(x, w, b, mean, var, scale, shift):
        return (windows(x, w)[..., :4] + b) * 1.0

    def leaky(x, w, b, mean, var, scale, shift):
        y = windows(x, w)
        return np.where(y > 0, y, 0.1 * y)

    taken = (bias, bias_relu, relu_by_choice, normed, folded, framework, channels_last, matrix, swish, clipped)
    return group(specs, taken, (bias_per_position, leaky))


def _depthwise_pointwise() -> Group:
    specs = {"x": "f32[2,4,6,6]", "d": "f32[4,1,3,3]", "p": "f32[5,4,1,1]"}

    def padded(x: Any) -> Any:
        return np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))

    def clipped_between(x, d, p):
        return nn.conv2d(np.clip(nn.conv2d(x, d, padding=1, groups=4), 0, 6), p)

    def channels_last(x, d, p):
        image = padded(x).transpose(0, 2, 3, 1)
        y = np.einsum("nhwcij,cij->nhwc", sliding_window_view(image, (3, 3), axis=(1, 2)), d[:, 0])
        return np.einsum("nhwc,oc->nohw", np.maximum(y, 0), p[:, :, 0, 0])

    def summed(x, d, p):
        y = (sliding_window_view(padded(x), (3, 3), axis=(2, 3)) * d[:, 0, None, None]).sum((-1, -2))
        return (np.maximum(y, 0)[:, None] * p[:, :, 0, 0][None, :, :, None, None]).sum(2)

    def activated_behind(x, d, p):
        y = nn.relu(nn.conv2d(x, d, padding=1, groups=4))
        return nn.relu(nn.conv2d(y, p))

    def swish_between(x, d, p):
        return nn.conv2d(nn.silu(nn.conv2d(x, d, padding=1, groups=4)), p)

    def by_matmul(x, d, p):
        y = nn.relu(nn.conv2d(x, d, padding=1, groups=4))
        return (p[:, :, 0, 0] @ y.reshape(2, 4, 36)).reshape(2, 5, 6, 6)

    def grouped_second(x, d, p):
        return nn.conv2d(nn.conv2d(x, d, padding=1, groups=4), p[:4, :1], groups=4)

    taken = (clipped_between, channels_last, summed, activated_behind, swish_between, by_matmul)
    return group(specs, taken, (grouped_second,))


def _batch_norm_inference() -> Group:
    specs = {"x": "f32[2,4,5,5]", **dict.fromkeys(("mean", "var", "scale", "shift"), "f32[4]")}

    def column(v: Any) -> Any:
        return v[:, None, None]

    def textbook(x, mean, var, scale, shift):
        return (x - column(mean)) / np.sqrt(column(var) + 1e-5) * column(scale) + column(shift)

    def reciprocal_root(x, mean, var, scale, shift):
        return (x - column(mean)) * (1 / np.sqrt(column(var) + 1e-5)) * column(scale) + column(shift)

    def powered(x, mean, var, scale, shift):
        return column(shift) + column(scale) * (x - column(mean)) * (column(var) + 1e-5) ** -0.5

    def vectors_first(x, mean, var, scale, shift):
        factor = scale / np.sqrt(var + 1e-5)
        return (x - column(mean)) * column(factor) + column(shift)

    def folded(x, mean, var, scale, shift):
        factor = scale / np.sqrt(1e-5 + var)
        return x * column(factor) + column(shift - mean * factor)

    def reshaped(x, mean, var, scale, shift):
        m, v, g, b = (a.reshape(1, 4, 1, 1) for a in (mean, var, scale, shift))
        return g * ((x - m) / (v + 1e-5) ** 0.5) + b

    def channels_last(x, mean, var, scale, shift):
        y = np.moveaxis(x, 1, -1)
        return np.moveaxis((y - mean) / np.sqrt(var + 1e-5) * scale + shift, -1, 1)

    def library(x, mean, var, scale, shift):
        return nn.batch_norm(x, mean, var, scale, shift)

    def outside(x, mean, var, scale, shift):
        return (x - column(mean)) / (np.sqrt(column(var)) + 1e-5) * column(scale) + column(shift)

    def squared(x, mean, var, scale, shift):
        return (x - column(mean)) / (column(var) + 1e-5) * column(scale) + column(shift)

    taken = (textbook, reciprocal_root, powered, vectors_first, folded, reshaped, channels_last, library)
    return group(specs, taken, (outside, squared))


def _linear_bias_activation() -> Group:
    specs = {"x": "f32[4,5,8]", "w": "f32[8,6]", "b": "f32[6]"}

    def relu(x, w, b):
        return np.maximum(x @ w + b, 0)

    def by_choice(x, w, b):
        y = x @ w + b
        return np.where(y < 0, 0, y)

    def squashed(x, w, b):
        return np.tanh(np.einsum("bti,io->bto", x, w) + b)

    def logistic(x, w, b):
        return 1 / (1 + np.exp(-(b + x @ w)))

    def gelu(x, w, b):
        y = x @ w + b
        return 0.5 * y * (1 + erf(y / 2**0.5))

    def swish(x, w, b):
        y = x @ w + b
        return y * (1 / (1 + np.exp(-y)))

    def flattened(x, w, b):
        return np.clip(x.reshape(20, 8) @ w + b, 0, 6).reshape(4, 5, 6)

    def library(x, w, b):
        return nn.gelu(nn.linear(x, w.T, b), "tanh")

    def unbiased(x, w, b):
        return np.maximum(0.0, np.dot(x, w))

    def heads(x, w, b):
        return np.maximum((x @ w + b).reshape(4, 5, 2, 3).transpose(0, 2, 1, 3), 0)

    def columns(x, w, b):
        return np.tanh(np.swapaxes(x @ w + b, 1, 2))

    def leaky(x, w, b):
        y = x @ w + b
        return np.maximum(y, 0.1 * y)

    def absolute(x, w, b):
        return np.abs(x @ w + b)

    taken = (relu, by_choice, squashed, logistic, gelu, swish, flattened, library, unbiased, heads, columns)
    return group(specs, taken, (leaky, absolute))


def _layer_norm_linear() -> Group:
    specs = {"x": "f32[2,5,6]", "g": "f32[6]", "b": "f32[6]", "w": "f32[6,7]"}

    def normed(x: Any) -> Any:
        d = x - x.mean(-1, keepdims=True)
        return d * ((d * d).mean(-1, keepdims=True) + 1e-5) ** -0.5

    def activated(x, g, b, w):
        return np.maximum((normed(x) * g + b) @ w, 0)

    def commuted(x, g, b, w):
        return np.matmul(b + g * normed(x), w)

    def unscaled(x, g, b, w):
        return normed(x) @ w

    def dotted(x, g, b, w):
        return np.dot(normed(x) * g + b, w)

    taken = (activated, commuted, unscaled, dotted)

    def one_pass(x, g, b, w):
        m = x.mean(-1, keepdims=True)
        return ((x - m) / np.sqrt((x * x).mean(-1, keepdims=True) - m * m + 1e-5) * g + b) @ w

    return group(specs, taken, (one_pass,))


def _gated_mlp() -> Group:
    specs = {"x": "f32[3,8]", "g": "f32[8,6]", "u": "f32[8,6]", "d": "f32[6,8]"}

    def llama(x, g, u, d):
        y = x @ g
        return (y / (1 + np.exp(-y)) * (x @ u)) @ d

    def commuted(x, g, u, d):
        y = x @ g
        return ((x @ u) * y * (1 / (1 + np.exp(-y)))) @ d

    def by_tanh(x, g, u, d):
        y = x @ g
        return (0.5 * y * (1 + np.tanh(0.5 * y)) * (x @ u)) @ d

    def gelu(x, g, u, d):
        y = x @ g
        return (0.5 * y * (1 + erf(y / 2**0.5)) * (x @ u)) @ d

    def relu(x, g, u, d):
        return np.dot(np.maximum(x @ g, 0) * np.dot(x, u), d)

    def logistic(x, g, u, d):
        return ((x @ u) / (1 + np.exp(-(x @ g)))) @ d

    def einsum(x, g, u, d):
        y = np.einsum("bi,ij->bj", x, g)
        return np.einsum("bj,jk->bk", y * (1 + np.exp(-y)) ** -1 * np.einsum("bi,ij->bj", x, u), d)

    def joined(x, g, u, d):
        both = x @ np.concatenate([g, u], axis=1)
        y, z = both[:, :6], both[:, 6:]
        return (y / (1 + np.exp(-y)) * z) @ d

    def library(x, g, u, d):
        return nn.gated_mlp(x, g.T, u.T, d.T)

    def of_itself(x, g, u, d):
        y = x @ g
        return (y / (1 + np.exp(-y)) * y) @ d

    def summed(x, g, u, d):
        y = x @ g
        return (y / (1 + np.exp(-y)) + (x @ u)) @ d

    taken = (llama, commuted, by_tanh, gelu, relu, logistic, einsum, joined, library)
    return group(specs, taken, (of_itself, summed))


def _multi_head_attention() -> Group:
    specs = {"x": "f32[2,5,8]", **dict.fromkeys(("wq", "wk", "wv", "wo"), "f32[8,8]")}

    def softmax(x: Any) -> Any:
        e = np.exp(x - x.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)

    def heads(y: Any) -> Any:
        return y.reshape(2, 5, 2, 4).transpose(0, 2, 1, 3)

    def back(y: Any) -> Any:
        return y.transpose(0, 2, 1, 3).reshape(2, 5, 8)

    def textbook(x, wq, wk, wv, wo):
        q, k, v = heads(x @ wq), heads(x @ wk), heads(x @ wv)
        return back(softmax(q @ k.swapaxes(-1, -2) / 2) @ v) @ wo

    def scaled_query(x, wq, wk, wv, wo):
        q, k, v = heads(x @ wq * 0.5), heads(x @ wk), heads(x @ wv)
        return back(softmax(q @ k.transpose(0, 1, 3, 2)) @ v) @ wo

    def einsum(x, wq, wk, wv, wo):
        q, k, v = ((x @ w).reshape(2, 5, 2, 4) for w in (wq, wk, wv))
        weights = softmax(np.einsum("bihd,bjhd->bhij", q, k) * 0.5)
        return np.einsum("bhij,bjhd->bihd", weights, v).reshape(2, 5, 8) @ wo

    def causal(x, wq, wk, wv, wo):
        q, k, v = heads(x @ wq), heads(x @ wk), heads(x @ wv)
        scores = np.where(np.tri(5, dtype=bool), q @ k.swapaxes(-1, -2) * 0.5, -np.inf)
        return back(softmax(scores) @ v) @ wo

    def joined(x, wq, wk, wv, wo):
        both = x @ np.concatenate([wq, wk, wv], axis=1)
        q, k, v = heads(both[..., :8]), heads(both[..., 8:16]), heads(both[..., 16:])
        return back(softmax(q @ k.swapaxes(-1, -2) * 0.5) @ v) @ wo

    def flattened(x, wq, wk, wv, wo):
        q, k, v = (heads(x @ w).reshape(4, 5, 4) for w in (wq, wk, wv))
        y = softmax(q @ k.swapaxes(1, 2) * 0.5) @ v
        return back(y.reshape(2, 2, 5, 4)) @ wo

    def by_swapaxes(x, wq, wk, wv, wo):
        q, k, v = ((x @ w).reshape(2, 5, 2, 4).swapaxes(1, 2) for w in (wq, wk, wv))
        return (softmax(q @ k.swapaxes(-1, -2) * 4**-0.5) @ v).swapaxes(1, 2).reshape(2, 5, 8) @ wo

    def library(x, wq, wk, wv, wo):
        return back(nn.attention(heads(x @ wq), heads(x @ wk), heads(x @ wv))) @ wo

    def late(x, wq, wk, wv, wo):
        q, k, v = heads(x @ wq), heads(x @ wk), heads(x @ wv)
        s = q @ k.swapaxes(-1, -2) * 0.5
        e = np.exp(s - s.max(-1, keepdims=True))
        return back(e @ v / e.sum(-1, keepdims=True)) @ wo

    def over_heads(x, wq, wk, wv, wo):
        q, k, v = ((x @ w).reshape(2, 5, 2, 4) for w in (wq, wk, wv))
        return (softmax(q @ k.swapaxes(-1, -2) * 0.5) @ v).reshape(2, 5, 8)[..., ::-1] @ wo

    def over_queries(x, wq, wk, wv, wo):
        q, k, v = heads(x @ wq), heads(x @ wk), heads(x @ wv)
        return back(softmax((q @ k.swapaxes(-1, -2) / 2).swapaxes(-1, -2)).swapaxes(-1, -2) @ v) @ wo

    taken = (textbook, scaled_query, einsum, causal, joined, flattened, by_swapaxes, library, late)
    return group(specs, taken, (over_heads, over_queries))


def groups() -> dict[str, Group]:
    """Gives the spellings by the identifier of their pattern."""
    return {
        "conv_bn_activation": _conv_bn_activation(), "depthwise_pointwise": _depthwise_pointwise(),
        "batch_norm_inference": _batch_norm_inference(), "linear_bias_activation": _linear_bias_activation(),
        "layer_norm_linear": _layer_norm_linear(), "gated_mlp": _gated_mlp(),
        "multi_head_attention": _multi_head_attention(),
    }  # fmt: skip
