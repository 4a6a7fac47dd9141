"""Programs written from the textbook definition of each pattern, without a look at how it is found.

By pattern: `taken` spellings of its meaning, and `other` programs that look alike and mean something else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

import topos_core as tp
from topos_core import nn
from topos_core.recording.elementary import erf


@dataclass
class Group:
    """Spellings of one pattern and programs that are none."""

    specs: Mapping[str, str]
    taken: dict[str, Callable[..., Any]] = field(default_factory=dict)
    other: dict[str, Callable[..., Any]] = field(default_factory=dict)
    also: tuple[str, ...] = ()  # identifiers that a spelling may go by besides


IMAGE = {"x": "f32[2,3,8,8]", "w": "f32[4,3,3,3]"}


def _convolution() -> Group:
    def loops(x, w):
        rows = []
        for i in range(6):
            row = [np.tensordot(x[:, :, i : i + 3, j : j + 3], w, axes=([1, 2, 3], [1, 2, 3])) for j in range(6)]
            rows.append(np.stack(row, axis=-1))
        return np.stack(rows, axis=-2)

    def loops_over_everything(x, w):
        out = []
        for o in range(w.shape[0]):
            total = 0
            for c in range(x.shape[1]):
                for i in range(3):
                    for j in range(3):
                        total = total + x[:, c, i : i + 6, j : j + 6] * w[o, c, i, j]
            out.append(total)
        return np.stack(out, axis=1)

    def taps(x, w):
        out = 0
        for i in range(3):
            for j in range(3):
                out = out + np.einsum("nchw,oc->nohw", x[:, :, i : i + 6, j : j + 6], w[:, :, i, j])
        return out

    def taps_by_matmul(x, w):
        last = x.transpose(0, 2, 3, 1)
        out = sum(last[:, i : i + 6, j : j + 6, :] @ w[:, :, i, j].T for i in range(3) for j in range(3))
        return out.transpose(0, 3, 1, 2)

    def columns(x, w):
        windows = sliding_window_view(x, (3, 3), axis=(2, 3)).transpose(0, 2, 3, 1, 4, 5)
        return (windows.reshape(-1, 27) @ w.reshape(4, 27).T).reshape(2, 6, 6, 4).transpose(0, 3, 1, 2)

    def columns_first(x, w):
        windows = sliding_window_view(x, (3, 3), axis=(2, 3)).transpose(0, 1, 4, 5, 2, 3).reshape(2, 27, 36)
        return (w.reshape(4, 27) @ windows).reshape(2, 4, 6, 6)

    def multiplied(x, w):
        windows = sliding_window_view(x, (3, 3), axis=(2, 3))
        return (windows[:, None] * w[None, :, :, None, None]).sum(axis=(2, 5, 6))

    def by_tensordot(x, w):
        windows = sliding_window_view(x, (3, 3), axis=(2, 3))
        return np.tensordot(windows, w, axes=[(1, 4, 5), (1, 2, 3)]).transpose(0, 3, 1, 2)

    def indexed(x, w):
        at = np.arange(6)[:, None] + np.arange(3)
        windows = x[:, :, at][:, :, :, :, at]
        return np.einsum("nchiwj,ocij->nohw", windows, w)

    def strided(x, w):
        windows = tp.as_strided(x, (2, 3, 6, 6, 3, 3), (192, 64, 8, 1, 8, 1))
        return np.einsum("nchwij,ocij->nohw", windows, w)

    def padded(x, w):
        y = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        return np.einsum("nchwij,ocij->nohw", sliding_window_view(y, (3, 3), axis=(2, 3)), w)

    def stepped(x, w):
        return np.einsum("nchwij,ocij->nohw", sliding_window_view(x, (3, 3), axis=(2, 3))[:, :, ::2, ::2], w)

    def flipped(x, w):
        windows = sliding_window_view(x, (3, 3), axis=(2, 3))
        return np.einsum("nchwij,ocij->nohw", windows, w[:, :, ::-1, ::-1])

    def library(x, w):
        return nn.conv2d(x, w, padding=1)

    def stacked(x, w):
        pieces = [x[:, :, i : i + 6, j : j + 6] for i in range(3) for j in range(3)]
        return np.einsum("tnchw,oct->nohw", np.stack(pieces), w.reshape(4, 3, 9))

    def one_pad(x, w):
        y = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=1.0)
        return np.einsum("nchwij,ocij->nohw", sliding_window_view(y, (3, 3), axis=(2, 3)), w)

    def by_position(x, w):
        windows = sliding_window_view(x, (3, 3), axis=(2, 3))
        return np.einsum("nchwij,ocij->nohw", windows * np.linspace(0, 1, 6, dtype=np.float32)[:, None, None], w)

    def largest(x, w):
        windows = sliding_window_view(x, (3, 3), axis=(2, 3))
        return (windows[:, None] * w[None, :, :, None, None]).max(axis=(2, 5, 6))

    taken = (loops, loops_over_everything, taps, taps_by_matmul, columns, columns_first, multiplied, by_tensordot, indexed,
             strided, padded, stepped, flipped, library, stacked)  # fmt: skip
    return group(IMAGE, taken, (one_pad, by_position, largest), ("conv_bn_activation",))


def _pool() -> Group:
    def tiles(x):
        return x.reshape(2, 3, 4, 2, 4, 2).max(axis=(3, 5))

    def tiles_in_turn(x):
        return x.reshape(2, 3, 4, 2, 8).max(axis=3).reshape(2, 3, 4, 4, 2).max(axis=4)

    def views(x):
        return sliding_window_view(x, (2, 2), axis=(2, 3))[..., ::2, ::2, :, :].max(axis=(-1, -2))

    def corners(x):
        a, b, c, d = (x[:, :, i::2, j::2] for i in (0, 1) for j in (0, 1))
        return np.maximum(np.maximum(a, b), np.maximum(c, d))

    def chained(x):
        out = x[:, :, 0:6, 0:6]
        for i in range(3):
            for j in range(3):
                out = np.maximum(out, x[:, :, i : i + 6, j : j + 6])
        return out

    def stacked(x):
        return np.stack([x[:, :, i : i + 7, j : j + 7] for i in range(2) for j in range(2)]).max(axis=0)

    def average(x):
        return x.reshape(2, 3, 4, 2, 4, 2).mean(axis=(3, 5))

    def average_by_sum(x):
        return (x[:, :, ::2, ::2] + x[:, :, 1::2, ::2] + x[:, :, ::2, 1::2] + x[:, :, 1::2, 1::2]) * 0.25

    def smallest(x):
        return -(sliding_window_view(-x, (3, 3), axis=(2, 3)).max(axis=(-1, -2)))

    def padded(x):
        y = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=-np.inf)
        return sliding_window_view(y, (3, 3), axis=(2, 3))[:, :, ::2, ::2].max(axis=(-1, -2))

    def library(x):
        return nn.max_pool(x, 2)

    def average_of_elements(x):
        def total(image):
            y = np.pad(image, ((0, 0), (0, 0), (1, 1), (1, 1)))
            return sliding_window_view(y, (3, 3), axis=(2, 3)).sum(axis=(-1, -2))

        return total(x) / total(np.ones_like(x))

    def average_by_counts(x):
        rows = np.float32([2, 3, 3, 3])
        y = np.pad(x, ((0, 0), (0, 0), (1, 0), (1, 0)))
        total = sliding_window_view(y, (3, 3), axis=(2, 3))[:, :, ::2, ::2].sum(axis=(-1, -2))
        return total / (rows[:, None] * rows)

    def weighted(x):
        return x[:, :, ::2, ::2] * 0.4 + x[:, :, 1::2, 1::2] * 0.6

    def zero_padded(x):
        y = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        return sliding_window_view(y, (3, 3), axis=(2, 3)).max(axis=(-1, -2))

    def uneven(x):
        return np.maximum(np.maximum(x[..., 0:4], x[..., 1:5]), x[..., 4:8])

    taken = (tiles, tiles_in_turn, views, corners, chained, stacked, average, average_by_sum, smallest, padded, zero_padded,
             library, average_of_elements, average_by_counts)  # fmt: skip
    return group({"x": "f32[2,3,8,8]"}, taken, (weighted, uneven))


def _batch_norm() -> Group:
    def textbook(x, g, b):
        m = x.mean(axis=(0, 2, 3), keepdims=True)
        v = ((x - m) ** 2).mean(axis=(0, 2, 3), keepdims=True)
        return g[None, :, None, None] * (x - m) / np.sqrt(v + 1e-5) + b[None, :, None, None]

    def with_var(x, g, b):
        m, v = x.mean((0, 2, 3)), x.var((0, 2, 3))
        scale = g / np.sqrt(v + 1e-5)
        return x * scale[:, None, None] + (b - m * scale)[:, None, None]

    def channels_last(x, g, b):
        y = x.transpose(0, 2, 3, 1)
        n = (y - y.mean((0, 1, 2))) / np.sqrt(y.var((0, 1, 2)) + 1e-5)
        return (n * g + b).transpose(0, 3, 1, 2)

    def rows(x, g, b):
        y = x.transpose(1, 0, 2, 3).reshape(4, -1)
        n = (y - y.mean(1, keepdims=True)) * (y.var(1, keepdims=True) + 1e-5) ** -0.5
        y = n * g[:, None] + b[:, None]
        return y.reshape(4, 6, 5, 5).transpose(1, 0, 2, 3)

    def sums(x, g, b):
        count = 6 * 5 * 5
        m = x.sum((0, 2, 3), keepdims=True) / count
        d = x - m
        v = (d * d).sum((0, 2, 3), keepdims=True) * (1 / count)
        return d / np.sqrt(v + 1e-5) * g.reshape(1, 4, 1, 1) + b.reshape(1, 4, 1, 1)

    def with_std(x, g, b):
        m = np.mean(x, (0, 2, 3), keepdims=True)
        r = np.reciprocal(np.sqrt(np.mean(np.square(x - m), (0, 2, 3), keepdims=True) + 1e-5))
        return (x - m) * (r * g.reshape(1, 4, 1, 1)) + b.reshape(1, 4, 1, 1)

    def plain(x, g, b):
        return (x - x.mean((0, 2, 3), keepdims=True)) / np.sqrt(x.var((0, 2, 3), keepdims=True) + 1e-3)

    def with_einsum(x, g, b):
        m = np.einsum("nchw->c", x) / 150
        d = x - m[:, None, None]
        v = np.einsum("nchw,nchw->c", d, d) / 150
        return d * (g / np.sqrt(v + 1e-5))[:, None, None] + b[:, None, None]

    def outside(x, g, b):
        return (x - x.mean((0, 2, 3), keepdims=True)) / (x.std((0, 2, 3), keepdims=True) + 1e-5) * g.reshape(1, 4, 1, 1)

    def sample(x, g, b):
        v = x.var((0, 2, 3), keepdims=True, ddof=1)
        return (x - x.mean((0, 2, 3), keepdims=True)) / np.sqrt(v + 1e-5)

    def one_pass(x, g, b):
        m = x.mean((0, 2, 3), keepdims=True)
        return (x - m) / np.sqrt((x * x).mean((0, 2, 3), keepdims=True) - m * m + 1e-5)

    specs = {"x": "f32[6,4,5,5]", "g": "f32[4]", "b": "f32[4]"}
    taken = (textbook, with_var, channels_last, rows, sums, with_std, plain, with_einsum)
    return group(specs, taken, (outside, sample, one_pass))


def _layer_norm() -> Group:
    def textbook(x, g, b):
        m = x.mean(-1, keepdims=True)
        return g * (x - m) / np.sqrt(((x - m) ** 2).mean(-1, keepdims=True) + 1e-5) + b

    def with_var(x, g, b):
        return (x - x.mean(2)[..., None]) / np.sqrt(x.var(2) + 1e-5)[..., None] * g + b

    def power(x, g, b):
        d = x - np.mean(x, axis=-1, keepdims=True)
        return b + d * np.power(np.mean(d * d, axis=-1, keepdims=True) + 1e-5, -0.5) * g

    def flattened(x, g, b):
        y = x.reshape(-1, 16)
        d = y - y.sum(1, keepdims=True) / 16
        return (d / np.sqrt((d**2).sum(1, keepdims=True) / 16 + 1e-5) * g + b).reshape(4, 5, 16)

    def features_first(x, g, b):
        y = x.transpose(2, 0, 1)
        n = (y - y.mean(0)) / np.sqrt(y.var(0) + 1e-5)
        return (n * g[:, None, None] + b[:, None, None]).transpose(1, 2, 0)

    def folded(x, g, b):
        k = g / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
        return x * k + (b - x.mean(-1, keepdims=True) * k)

    def by_product(x, g, b):
        ones = np.full((16, 1), 1 / 16, np.float32)
        d = x - x @ ones
        return d / np.sqrt((d * d) @ ones + 1e-5) * g + b

    def with_einsum(x, g, b):
        d = x - np.einsum("bti->bt", x)[..., None] / 16
        v = np.einsum("bti,bti->bt", d, d) / 16
        return np.einsum("bti,bt,i->bti", d, 1 / np.sqrt(v + 1e-5), g) + b

    def scale_only(x, g, b):
        d = x - x.mean(-1, keepdims=True)
        return d * (1 / np.sqrt((d * d).mean(-1, keepdims=True) + 1e-6)) * g

    def library(x, g, b):
        return nn.layer_norm(x, g, b)

    def outside(x, g, b):
        return (x - x.mean(-1, keepdims=True)) / (x.std(-1, keepdims=True) + 1e-5) * g + b

    def sample(x, g, b):
        return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True, ddof=1) + 1e-5) * g + b

    def absolute(x, g, b):
        d = x - x.mean(-1, keepdims=True)
        return d / (np.abs(d).mean(-1, keepdims=True) + 1e-5) * g + b

    specs = {"x": "f32[4,5,16]", "g": "f32[16]", "b": "f32[16]"}
    taken = (textbook, with_var, power, flattened, features_first, folded, by_product, with_einsum, scale_only, library)
    return group(specs, taken, (outside, sample, absolute))


def _gelu() -> Group:
    c = math.sqrt(2 / math.pi)

    def by_erf(x):
        return x * (1 + erf(x / np.sqrt(np.float32(2)))) / 2

    def by_erf_half(x):
        return 0.5 * x * (erf(x * 0.7071067811865476) + 1.0)

    def phi(x):
        cdf = 0.5 * (1.0 + erf(x / math.sqrt(2.0)))
        return x * cdf

    def by_tanh(x):
        return 0.5 * x * (1 + np.tanh(c * (x + 0.044715 * x**3)))

    def by_tanh_products(x):
        return 0.5 * x * (1 + np.tanh(x * 0.7978845608 * (1 + 0.044715 * x * x)))

    def by_tanh_cdf(x):
        cdf = 0.5 * (1.0 + np.tanh(c * (x + 0.044715 * np.power(x, 3))))
        return cdf * x

    def by_sigmoid(x):
        return x / (1 + np.exp(-1.702 * x))

    def by_sigmoid_product(x):
        return x * (1 / (1 + np.exp(-(1.702 * x))))

    def library(x):
        return nn.gelu(x)

    def library_tanh(x):
        return nn.gelu(x, approximate="tanh")

    def without_cube(x):
        return 0.5 * x * (1 + np.tanh(c * x))

    def coarse(x):
        return 0.5 * x * (1 + np.tanh(0.8 * (x + 0.044715 * x**3)))

    def of_another(x):
        return 0.5 * x * (1 + erf(x / 2.0))

    taken = (by_erf, by_erf_half, phi, by_tanh, by_tanh_products, by_tanh_cdf, by_sigmoid, by_sigmoid_product, library,
             library_tanh)  # fmt: skip
    return group({"x": "f32[5,7]"}, taken, (without_cube, coarse, of_another))


def _softmax() -> Group:
    def textbook(x):
        e = np.exp(x - np.max(x, axis=-1, keepdims=True))
        return e / np.sum(e, axis=-1, keepdims=True)

    def indexed(x):
        e = np.exp(x - x.max(2)[:, :, None])
        return e / e.sum(2)[:, :, None]

    def middle(x):
        e = np.exp(x - x.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)

    def unshifted(x):
        e = np.exp(x)
        return e / e.sum(-1, keepdims=True)

    def reciprocal(x):
        e = np.exp(x - x.max(-1, keepdims=True))
        return e * (1.0 / e.sum(-1, keepdims=True))

    def moved(x):
        y = np.moveaxis(x, -1, 0)
        e = np.exp(y - y.max(0))
        return np.moveaxis(e / e.sum(0), 0, -1)

    def flattened(x):
        y = x.reshape(-1, 6)
        e = np.exp(y - y.max(1).reshape(-1, 1))
        return (e / e.sum(1).reshape(-1, 1)).reshape(4, 5, 6)

    def tempered(x):
        y = x / 0.7
        e = np.exp(y - y.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)

    def by_logarithm(x):
        y = x - x.max(-1, keepdims=True)
        return np.exp(y - np.log(np.exp(y).sum(-1, keepdims=True)))

    def library(x):
        return nn.softmax(x)

    def smoothed(x):
        e = np.exp(x - x.max(-1, keepdims=True))
        return e / (e.sum(-1, keepdims=True) + 1e-6)

    def shifted_elsewhere(x):  # whatever is subtracted from all of x cancels
        e = np.exp(x - x.max(keepdims=True))
        return e / e.sum(1, keepdims=True)

    def one_more(x):
        e = np.exp(x - x.max(-1, keepdims=True))
        return e / (1 + e.sum(-1, keepdims=True))

    def base_two(x):
        e = 2.0 ** (x - x.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)

    taken = (textbook, indexed, middle, unshifted, reciprocal, moved, flattened, tempered, shifted_elsewhere, by_logarithm,
             library)  # fmt: skip
    return group({"x": "f32[4,5,6]"}, taken, (smoothed, one_more, base_two))


def _attention() -> Group:
    def softmax(s):
        e = np.exp(s - s.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)

    def textbook(q, k, v):
        return softmax(q @ k.transpose(0, 1, 3, 2) / math.sqrt(8)) @ v

    def scaled_query(q, k, v):
        return softmax((q * 8**-0.5) @ np.swapaxes(k, 2, 3)) @ v

    def scaled_both(q, k, v):
        return softmax((q * 8**-0.25) @ (k * 8**-0.25).swapaxes(-1, -2)) @ v

    def with_einsum(q, k, v):
        return np.einsum("bhqk,bhkd->bhqd", softmax(np.einsum("bhqd,bhkd->bhqk", q, k) * 8**-0.5), v)

    def causal(q, k, v):
        s = np.where(np.tril(np.ones((5, 5), bool)), q @ k.swapaxes(-1, -2) * 8**-0.5, -np.inf)
        return softmax(s) @ v

    def causal_added(q, k, v):
        mask = np.triu(np.full((5, 5), -1e9, np.float32), 1)
        return softmax(q @ k.swapaxes(-1, -2) * 8**-0.5 + mask) @ v

    def late(q, k, v):
        s = q @ k.swapaxes(-1, -2) * 8**-0.5
        e = np.exp(s - s.max(-1, keepdims=True))
        return (e @ v) / e.sum(-1, keepdims=True)

    def unscaled(q, k, v):
        return softmax(q @ k.swapaxes(-1, -2)) @ v

    def flattened(q, k, v):
        a, b, c = (t.reshape(6, 5, 8) for t in (q, k, v))
        return (softmax(a @ b.transpose(0, 2, 1) * 8**-0.5) @ c).reshape(2, 3, 5, 8)

    def library(q, k, v):
        return nn.attention(q, k, v)

    def library_causal(q, k, v):
        return nn.attention(q, k, v, causal=True)

    def other_axis(q, k, v):
        s = q @ k.swapaxes(-1, -2) * 8**-0.5
        e = np.exp(s - s.max(-2, keepdims=True))
        return e / e.sum(-2, keepdims=True) @ v

    def multiplied_mask(q, k, v):
        return softmax(q @ k.swapaxes(-1, -2) * np.tri(5, dtype=np.float32)) @ v

    def linear(q, k, v):
        return (np.exp(q) @ np.exp(k).swapaxes(-1, -2)) @ v

    taken = (textbook, scaled_query, scaled_both, with_einsum, causal, causal_added, late, unscaled, flattened, library,
             library_causal)  # fmt: skip
    specs = dict.fromkeys("qkv", "f32[2,3,5,8]")
    return group(specs, taken, (other_axis, multiplied_mask, linear))


def _linear() -> Group:
    def product(x, w, b):
        return x @ w + b

    def transposed(x, w, b):
        return x @ w.T.T + b

    def dotted(x, w, b):
        return np.dot(x, w) + b

    def with_einsum(x, w, b):
        return np.einsum("bti,io->bto", x, w) + b

    def by_tensordot(x, w, b):
        return np.tensordot(x, w, axes=([2], [0])) + b

    def flattened(x, w, b):
        return (x.reshape(-1, 8) @ w + b).reshape(4, 5, 6)

    def multiplied(x, w, b):
        return (x[..., None] * w).sum(-2) + b

    def features_first(x, w, b):
        return (w.T @ x.reshape(20, 8).T).T.reshape(4, 5, 6) + b

    def bias_first(x, w, b):
        return b + np.matmul(x, w)

    def plain(x, w, b):
        return x @ w

    def library(x, w, b):
        return nn.linear(x, w.T, b)

    def summed(x, w, b):
        return x.sum(-1, keepdims=True) * w.sum(0) + b

    def gated(x, w, b):
        return (x[..., None] * w).max(-2) + b

    taken = (product, transposed, dotted, with_einsum, by_tensordot, flattened, multiplied, features_first, bias_first,
             plain, library)  # fmt: skip
    specs = {"x": "f32[4,5,8]", "w": "f32[8,6]", "b": "f32[6]"}
    return group(specs, taken, (summed, gated), ("linear_bias_activation", "matmul"))


def _depthwise_pointwise() -> Group:
    def framework(x, d, p):
        return nn.conv2d(nn.conv2d(x, d, padding=1, groups=4), p)

    def relu_between(x, d, p):
        return nn.conv2d(nn.relu(nn.conv2d(x, d, padding=1, groups=4)), p)

    def windows(x, d, p):
        padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        y = np.einsum("nchwij,cij->nchw", sliding_window_view(padded, (3, 3), axis=(2, 3)), d[:, 0])
        return np.einsum("nchw,oc->nohw", y, p[:, :, 0, 0])

    def shifted(x, d, p):
        padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        y = 0
        for i in range(3):
            for j in range(3):
                y = y + padded[:, :, i : i + 6, j : j + 6] * d[None, :, 0, i, j, None, None]
        return np.einsum("oc,ncs->nos", p.reshape(5, 4), y.reshape(2, 4, 36)).reshape(2, 5, 6, 6)

    def strided_windows(x, d, p):
        padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        y = (sliding_window_view(padded, (3, 3), axis=(2, 3))[:, :, ::2, ::2] * d[None, :, 0, None, None]).sum((4, 5))
        return np.tensordot(p[:, :, 0, 0], y, axes=(1, 1)).transpose(1, 0, 2, 3)

    def mixed_first(x, d, p):
        return nn.conv2d(nn.conv2d(x, p[:4]), d, padding=1, groups=4)

    def ordinary(x, d, p):
        return nn.conv2d(nn.conv2d(x, np.tile(d, (1, 4, 1, 1)), padding=1), p)

    def skip_between(x, d, p):
        return nn.conv2d(nn.conv2d(x, d, padding=1, groups=4) + x, p)

    specs = {"x": "f32[2,4,6,6]", "d": "f32[4,1,3,3]", "p": "f32[5,4,1,1]"}
    return group(
        specs, (framework, relu_between, windows, shifted, strided_windows), (mixed_first, ordinary, skip_between)
    )


def _layer_norm_linear() -> Group:
    def framework(x, g, b, w):
        return nn.layer_norm(x, g, b) @ w

    def textbook(x, g, b, w):
        mean = x.mean(-1, keepdims=True)
        variance = ((x - mean) ** 2).mean(-1, keepdims=True)
        return ((x - mean) / np.sqrt(variance + 1e-5) * g + b) @ w

    def tokens(x, g, b, w):
        return (nn.layer_norm(x, g, b).reshape(10, 6) @ w).reshape(2, 5, 7)

    def einsum(x, g, b, w):
        return np.einsum("bti,io->bto", nn.layer_norm(x, g, b), w)

    def squashed(x, g, b, w):
        return np.tanh(nn.layer_norm(x, g, b) @ w)

    def root_mean_square(x, g, b, w):
        return (x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * g) @ w

    def over_tokens(x, g, b, w):
        return np.einsum("bti,to->bio", nn.layer_norm(x, g, b), w[:5])

    def cut(x, g, b, w):
        return nn.layer_norm(x, g, b)[..., :4] @ w[:4]

    specs = {"x": "f32[2,5,6]", "g": "f32[6]", "b": "f32[6]", "w": "f32[6,7]"}
    taken = (framework, textbook, tokens, einsum, squashed)
    return group(specs, taken, (root_mean_square, over_tokens, cut))


def _matmul() -> Group:
    def matmul(a, b):
        return a @ b

    def einsum(a, b):
        return np.einsum("bij,bjk->bik", a, b)

    def columns_first(a, b):
        return np.einsum("bij,bjk->bki", a, b)

    def operands_turned(a, b):
        return np.einsum("bjk,bij->bik", b, a)

    def multiplied_and_added(a, b):
        return (a[:, :, :, None] * b[:, None]).sum(2)

    def commuted(a, b):
        return (b[:, None] * a[..., None]).sum(axis=-2)

    def both_transposed(a, b):
        return (b.transpose(0, 2, 1) @ a.transpose(0, 2, 1)).transpose(0, 2, 1)

    def with_a_batch_of_one(a, b):
        return (a[None] @ b[None])[0]

    def outer(a, b):
        return a[:, :, :, None] * b[:, None]

    def one_of_them(a, b):
        return a @ b[0]

    taken = (
        matmul, einsum, columns_first, operands_turned, multiplied_and_added, commuted, both_transposed, with_a_batch_of_one,
    )  # fmt: skip
    return group({"a": "f32[3,4,5]", "b": "f32[3,5,6]"}, taken, (outer, one_of_them))


def _elementwise_chain() -> Group:
    def in_a_row(x):
        return np.sqrt(np.abs(x) + 1)

    def a_diamond(x):
        y = x * 2
        return (y + 1) / (y * y + 1)

    def with_a_row(x):
        return (x + x[0]) * 0.5

    def with_a_column(x):
        return np.tanh(x * 2) - x[:, :1]

    def by_functions(x):
        return np.add(np.multiply(x, 3), np.negative(np.square(x)))

    def in_place(x):
        y = x * 2
        y += 1
        y *= x
        return y

    def in_another_order(x):
        return x.T * 2 + 1

    def axes_of_one(x):
        return np.tanh(x[:, None] * 2)[:, 0] + 1

    def one_op(x):
        return np.tanh(x)

    def moved_between(x):
        return np.tanh(x)[:, ::-1] * 2

    taken = (in_a_row, a_diamond, with_a_row, with_a_column, by_functions, in_place, in_another_order, axes_of_one)
    return group({"x": "f32[4,6]"}, taken, (one_op, moved_between))


def _elementwise_reduction() -> Group:
    def of_an_exponential(x):
        return np.exp(x).sum(-1)

    def of_a_magnitude(x):
        return np.max(abs(x), axis=1)

    def a_count(x):
        return (x > 0.5).sum(axis=0)

    def with_keepdims(x):
        return np.sum(np.tanh(x) + 1, axis=0, keepdims=True)[0]

    def all_at_once(x):
        return np.minimum(x, 0).sum()

    def a_product(x):
        return (1 + np.abs(x)).prod(-1)

    def over_an_axis_of_one_too(x):
        return np.exp(x)[:, None, :].sum((1, 2))

    def by_reduce(x):
        return np.maximum.reduce(np.tanh(x) * 2, axis=1)

    def bare(x):
        return x.sum(-1)

    def in_turn(x):
        return np.cumsum(np.exp(x), axis=1)

    taken = (
        of_an_exponential, of_a_magnitude, a_count, with_keepdims, all_at_once, a_product, over_an_axis_of_one_too, by_reduce,
    )  # fmt: skip
    return group({"x": "f32[4,6]"}, taken, (bare, in_turn))


def _reduction_elementwise() -> Group:
    def below_the_largest(x):
        return x.max(-1, keepdims=True) - x

    def with_an_axis_added(x):
        return x.max(-1)[:, None] - x

    def along_columns(x):
        return np.abs(x - x.max(0))

    def length(x):
        return np.sqrt((x * x).sum(-1)) + 1

    def of_length_one(x):
        return x / np.sqrt((x * x).sum(-1, keepdims=True))

    def of_everything(x):
        return x - x.max()

    def of_exponentials(x):
        return np.sqrt(np.exp(x).sum(0)) * 2

    def halved(x):
        return (x.min(1) + 1) / 2

    def bare(x):
        return x.max(-1)

    def read_twice(x):
        top = x.max(-1, keepdims=True)
        return top - x, top

    taken = (
        below_the_largest, with_an_axis_added, along_columns, length, of_length_one, of_everything, of_exponentials, halved,
    )  # fmt: skip
    return group({"x": "f32[4,6]"}, taken, (bare, read_twice))


def group(specs: Mapping[str, str], taken: Any, other: Any, also: tuple[str, ...] = ()) -> Group:
    return Group(specs, {f.__name__: f for f in taken}, {f.__name__: f for f in other}, also)


def groups() -> dict[str, Group]:
    """Gives the spellings by the identifier of their pattern."""
    return {
        "convolution": _convolution(), "window_reduce": _pool(), "batch_norm_training": _batch_norm(),
        "layer_norm": _layer_norm(), "gelu": _gelu(), "softmax": _softmax(), "attention": _attention(),
        "linear": _linear(), "depthwise_pointwise": _depthwise_pointwise(), "layer_norm_linear": _layer_norm_linear(),
        "matmul": _matmul(), "elementwise_chain": _elementwise_chain(),
        "elementwise_reduction": _elementwise_reduction(), "reduction_elementwise": _reduction_elementwise(),
    }  # fmt: skip
