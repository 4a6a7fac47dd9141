"""Spellings of smaller parts: norms, losses, gates, positions, and what stands side by side; and programs that look alike."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.conformance.spellings import Group, group
from topos_core import nn
from topos_core.recording.elementary import logsumexp


def _log_softmax() -> Group:
    def textbook(x):
        s = x - x.max(-1, keepdims=True)
        return s - np.log(np.exp(s).sum(-1, keepdims=True))

    def largest_last(x):
        m = np.max(x, axis=1, keepdims=True)
        return x - (m + np.log(np.sum(np.exp(x - m), axis=1, keepdims=True)))

    def logarithm(x):
        e = np.exp(x - x.max(-1, keepdims=True))
        return np.log(e / e.sum(-1, keepdims=True))

    def unshifted(x):
        return x - np.log(np.exp(x).sum(axis=-1, keepdims=True))

    def logarithm_unshifted(x):
        e = np.exp(x)
        return np.log(e / np.sum(e, axis=1)[:, None])

    def new_axes(x):
        s = x - x.max(1)[:, None]
        return s - np.log(np.exp(s).sum(1))[:, None]

    def by_columns(x):
        y = x.T
        s = y - y.max(0)
        return (s - np.log(np.exp(s).sum(0))).T

    def negated(x):
        s = x - x.max(-1, keepdims=True)
        return -(np.log(np.exp(s).sum(-1, keepdims=True)) - s)

    def library(x):
        return nn.log_softmax(x)

    def by_logsumexp(x):
        return x - logsumexp(x, -1, keepdims=True)

    def base_two(x):
        s = x - x.max(-1, keepdims=True)
        return s - np.log(np.exp2(s).sum(-1, keepdims=True))

    def guarded(x):
        s = x - x.max(-1, keepdims=True)
        return s - np.log(np.exp(s).sum(-1, keepdims=True) + 1e-6)

    def guarded_quotient(x):
        e = np.exp(x)
        return np.log(e / e.sum(-1, keepdims=True) + 1e-6)

    taken = (
        textbook, largest_last, logarithm, unshifted, logarithm_unshifted, new_axes, by_columns, negated, library, by_logsumexp,
    )  # fmt: skip
    return group({"x": "f32[5,7]"}, taken, (base_two, guarded, guarded_quotient))


def _cross_entropy() -> Group:
    def logs(x: Any) -> Any:
        s = x - x.max(-1, keepdims=True)
        return s - np.log(np.exp(s).sum(-1, keepdims=True))

    def looked_up(x, t):
        return -logs(x)[np.arange(5), t].mean()

    def along_axis(x, t):
        return -np.take_along_axis(logs(x), t[:, None], axis=1).mean()

    def compared(x, t):
        return -np.where(t[:, None] == np.arange(7), logs(x), 0.0).sum(-1).mean()

    def one_hot(x, t):
        hot = (t[:, None] == np.arange(7)).astype(np.float32)
        return -(hot * logs(x)).sum() / 5

    def each(x, t):
        return -logs(x)[np.arange(5), t]

    def added(x, t):
        return -np.sum(np.take_along_axis(logs(x), t[:, None], -1))

    def library(x, t):
        return nn.cross_entropy(x, t)

    def by_logsumexp(x, t):
        return np.mean(-(x - logsumexp(x, -1, keepdims=True))[np.arange(5), t])

    def difference(x, t):
        return (logsumexp(x, -1) - x[np.arange(5), t]).mean()

    def difference_kept(x, t):
        m = x.max(-1, keepdims=True)
        total = np.log(np.exp(x - m).sum(-1, keepdims=True)) + m
        return (total - np.take_along_axis(x, t[:, None], -1)).mean()

    def difference_shifted(x, t):
        x = x - x.max(-1, keepdims=True)
        own = np.take_along_axis(x, np.expand_dims(t, -1), -1).squeeze(-1)
        return np.log(np.sum(np.exp(x), -1)) - own

    def difference_unshifted(x, t):
        return -(x[np.arange(5), t] - np.log(np.exp(x).sum(1)))

    def difference_compared(x, t):
        own = np.where(t[:, None] == np.arange(7), x, 0.0).sum(-1)
        return np.sum(logsumexp(x, -1) - own) / 5

    def difference_one_hot(x, t):
        hot = (np.arange(7)[None] == t[:, None]).astype(np.float32)
        return logsumexp(x, -1) - np.einsum("ij,ij->i", hot, x)

    def difference_of_another_row(x, t):
        return logsumexp(x, -1) - x[np.arange(5)[::-1], t]

    def difference_unlike(x, t):
        m = x.max(-1, keepdims=True)
        return np.log(np.exp(x - m).sum(-1)) - x[np.arange(5), t]

    def weighted(x, t):
        return -(logs(x)[np.arange(5), t] * np.arange(1.0, 6.0, dtype=np.float32)).mean()

    def of_probabilities(x, t):
        return -np.log(x)[np.arange(5), t].mean()

    taken = (
        looked_up, along_axis, compared, one_hot, each, added, library, by_logsumexp, difference, difference_kept,
        difference_shifted, difference_unshifted, difference_compared, difference_one_hot,
    )  # fmt: skip
    other = (weighted, of_probabilities, difference_of_another_row, difference_unlike)
    return group({"x": "f32[5,7]", "t": "i64[5]<7"}, taken, other)


def _mse_loss() -> Group:
    def textbook(x, y):
        return ((x - y) ** 2).mean()

    def squared(x, y):
        return np.square(y - x).mean()

    def multiplied(x, y):
        d = x - y
        return (d * d).sum() / 35

    def by_rows(x, y):
        return ((x - y) ** 2).mean(-1).mean()

    def flat(x, y):
        d = (x - y).reshape(-1)
        return d @ d / d.size

    def scaled(x, y):
        return np.mean(np.power(x - y, 2))

    def added(x, y):
        return np.sum((x - y) ** 2)

    def library(x, y):
        return nn.mse_loss(x, y)

    def absolute(x, y):
        return np.abs(x - y).mean()

    def cubed(x, y):
        return ((x - y) ** 3).mean()

    taken = (textbook, squared, multiplied, by_rows, flat, scaled, added, library)
    return group(dict.fromkeys("xy", "f32[5,7]"), taken, (absolute, cubed))


def _rms_norm() -> Group:
    def textbook(x, g):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * g

    def reciprocal(x, g):
        return g * (x * (1 / np.sqrt(np.mean(x**2, axis=-1, keepdims=True) + 1e-6)))

    def powered(x, g):
        return x * (np.square(x).mean(-1, keepdims=True) + 1e-6) ** -0.5 * g

    def summed(x, g):
        return x * g / np.sqrt((x * x).sum(-1, keepdims=True) / 8 + 1e-6)

    def by_einsum(x, g):
        return x / np.sqrt(np.einsum("bi,bi->b", x, x)[:, None] / 8 + 1e-6) * g

    def new_axis(x, g):
        return x / np.sqrt((x * x).mean(-1) + 1e-6)[:, None] * g

    def scaled_first(x, g):
        return (x * g) * (1 / np.sqrt(1e-6 + (x * x).mean(1, keepdims=True)))

    def library(x, g):
        return nn.rms_norm(x, g, eps=1e-6)

    def outside(x, g):
        return x / (np.sqrt((x * x).mean(-1, keepdims=True)) + 1e-6) * g

    def one_less(x, g):
        return x / np.sqrt((x * x).sum(-1, keepdims=True) / 7 + 1e-6) * g

    taken = (textbook, reciprocal, powered, summed, by_einsum, new_axis, scaled_first, library)
    return group({"x": "f32[5,8]", "g": "f32[8]"}, taken, (outside, one_less))


def _normed(x: Any, axes: Any) -> Any:
    d = x - x.mean(axes, keepdims=True)
    return d / np.sqrt((d * d).mean(axes, keepdims=True) + 1e-5)


def _group_norm() -> Group:
    specs = {"x": "f32[2,6,4,4]", "g": "f32[6]", "b": "f32[6]"}

    def column(v: Any) -> Any:
        return v[:, None, None]

    def reshaped(x, g, b):
        return _normed(x.reshape(2, 3, 2, 4, 4), (2, 3, 4)).reshape(2, 6, 4, 4) * column(g) + column(b)

    def flattened(x, g, b):
        return _normed(x.reshape(2, 3, 32), -1).reshape(2, 6, 4, 4) * column(g) + column(b)

    def rows(x, g, b):
        return column(b) + column(g) * _normed(x.reshape(6, 32), 1).reshape(2, 6, 4, 4)

    def by_variance(x, g, b):
        y = x.reshape(2, 3, -1)
        y = (y - y.mean(-1, keepdims=True)) / np.sqrt(y.var(-1, keepdims=True) + 1e-5)
        return y.reshape(x.shape) * g.reshape(1, 6, 1, 1) + b.reshape(1, 6, 1, 1)

    def scaled_in_groups(x, g, b):
        y = _normed(x.reshape(2, 3, 2, 4, 4), (2, 3, 4))
        return (y * g.reshape(3, 2, 1, 1) + b.reshape(3, 2, 1, 1)).reshape(2, 6, 4, 4)

    def powered(x, g, b):
        y = x.reshape(2, 3, 32)
        d = y - y.mean(2, keepdims=True)
        return (d * ((d**2).mean(2, keepdims=True) + 1e-5) ** -0.5).reshape(2, 6, 4, 4) * column(g) + column(b)

    def summed(x, g, b):
        y = x.reshape(2, 3, 32)
        d = y - y.sum(-1, keepdims=True) / 32
        return column(g) * (d / np.sqrt((d * d).sum(-1, keepdims=True) / 32 + 1e-5)).reshape(2, 6, 4, 4) + column(b)

    def library(x, g, b):
        return nn.group_norm(x, 3, g, b)

    def other_groups(x, g, b):
        y = x.reshape(2, 3, 32)
        d = y - y.mean(-1, keepdims=True)
        return (d / np.sqrt((d * d).mean(1, keepdims=True) + 1e-5)).reshape(2, 6, 4, 4) * column(g) + column(b)

    def outside(x, g, b):
        y = x.reshape(2, 3, 32)
        d = y - y.mean(-1, keepdims=True)
        return (d / (np.sqrt((d * d).mean(-1, keepdims=True)) + 1e-5)).reshape(2, 6, 4, 4) * column(g) + column(b)

    taken = (reshaped, flattened, rows, by_variance, scaled_in_groups, powered, summed, library)
    return group(specs, taken, (other_groups, outside))


def _instance_norm() -> Group:
    specs = {"x": "f32[2,3,4,5]", "g": "f32[3]", "b": "f32[3]"}

    def column(v: Any) -> Any:
        return v[:, None, None]

    def textbook(x, g, b):
        return _normed(x, (2, 3)) * column(g) + column(b)

    def flattened(x, g, b):
        return _normed(x.reshape(2, 3, 20), -1).reshape(2, 3, 4, 5) * column(g) + column(b)

    def by_variance(x, g, b):
        y = (x - x.mean((2, 3), keepdims=True)) / np.sqrt(np.var(x, axis=(2, 3), keepdims=True) + 1e-5)
        return y * g.reshape(1, 3, 1, 1) + b.reshape(1, 3, 1, 1)

    def commuted(x, g, b):
        return column(b) + _normed(x, (-1, -2)) * column(g)

    def powered(x, g, b):
        d = x - x.mean((2, 3), keepdims=True)
        return d * ((d * d).mean((2, 3), keepdims=True) + 1e-5) ** -0.5 * column(g) + column(b)

    def summed(x, g, b):
        d = x - x.sum((2, 3), keepdims=True) / 20
        return d / np.sqrt((d**2).sum((2, 3), keepdims=True) / 20 + 1e-5) * column(g) + column(b)

    def channels_last(x, g, b):
        return np.moveaxis(_normed(np.moveaxis(x, 1, -1), (1, 2)) * g + b, -1, 1)

    def library(x, g, b):
        return nn.instance_norm(x, g, b)

    def one_less(x, g, b):
        d = x - x.mean((2, 3), keepdims=True)
        return d / np.sqrt((d * d).sum((2, 3), keepdims=True) / 19 + 1e-5) * column(g) + column(b)

    def other_axes(x, g, b):
        d = x - x.mean((2, 3), keepdims=True)
        return d / np.sqrt((d * d).mean((1, 2), keepdims=True) + 1e-5) * column(g) + column(b)

    taken = (textbook, flattened, by_variance, commuted, powered, summed, channels_last, library)
    return group(specs, taken, (one_less, other_axes), ("group_norm",))


def _add_norm() -> Group:
    specs = {"x": "f32[2,5,8]", "r": "f32[2,5,8]", "g": "f32[8]", "b": "f32[8]"}

    def textbook(x, r, g, b):
        return _normed(x + r, -1) * g + b

    def commuted(x, r, g, b):
        return b + g * _normed(r + x, -1)

    def root_mean_square(x, r, g, b):
        s = x + r
        return s / np.sqrt((s * s).mean(-1, keepdims=True) + 1e-6) * g

    def library(x, r, g, b):
        return nn.layer_norm(np.add(x, r), g, b)

    def powered(x, r, g, b):
        s = x + r
        d = s - s.mean(-1, keepdims=True)
        return d * ((d * d).mean(-1, keepdims=True) + 1e-5) ** -0.5 * g + b

    def by_variance(x, r, g, b):
        s = r + x
        return (s - s.mean(-1, keepdims=True)) / np.sqrt(s.var(-1, keepdims=True) + 1e-5) * g + b

    def flattened(x, r, g, b):
        return (_normed((x + r).reshape(10, 8), -1) * g + b).reshape(2, 5, 8)

    def unscaled(x, r, g, b):
        return _normed(x + r, -1)

    def behind(x, r, g, b):
        return _normed(x, -1) * g + b + r

    def outside(x, r, g, b):
        s = x + r
        d = s - s.mean(-1, keepdims=True)
        return d / (np.sqrt((d * d).mean(-1, keepdims=True)) + 1e-5) * g + b

    taken = (textbook, commuted, root_mean_square, library, powered, by_variance, flattened, unscaled)
    return group(specs, taken, (behind, outside))


def _silu() -> Group:
    def quotient(x):
        return x / (1 + np.exp(-x))

    def product(x):
        return x * (1 / (1 + np.exp(-x)))

    def powered(x):
        return x * (np.exp(-x) + 1.0) ** -1

    def reciprocal(x):
        return np.reciprocal(1 + np.exp(-x)) * x

    def of_exp(x):
        e = np.exp(x)
        return x * e / (e + 1)

    def of_exp_product(x):
        e = np.exp(x)
        return x * (e / (1 + e))

    def by_tanh(x):
        return 0.5 * x * (1 + np.tanh(x / 2))

    def negated(x):
        return x / (1 + np.exp(-1.0 * x))

    def subtracted(x):
        return x / (1 + np.exp(0 - x))

    def library(x):
        return nn.silu(x)

    def by_sign(x):
        return x * np.where(x >= 0, 1 / (1 + np.exp(-x)), np.exp(x) / (1 + np.exp(x)))

    def by_sign_of_size(x):
        e = np.exp(-np.abs(x))
        return x * np.where(x < 0, e, 1.0) / (1.0 + e)

    def by_softplus(x):
        return x * np.exp(-nn.softplus(-x))

    def by_logaddexp(x):
        return x * np.exp(-np.logaddexp(0, -x))

    def steeper(x):
        return x / (1 + np.exp(-1.5 * x))

    def wrong_branches(x):
        return x * np.where(x >= 0, np.exp(x) / (1 + np.exp(x)), 1 / (1 + np.exp(-x)))

    def softplus(x):
        return np.log(1 + np.exp(x))

    taken = (quotient, product, powered, reciprocal, of_exp, of_exp_product, by_tanh, negated, subtracted, library,
             by_sign, by_sign_of_size, by_softplus, by_logaddexp)  # fmt: skip
    return group({"x": "f32[5,7]"}, taken, (steeper, softplus, wrong_branches))


def _rotary() -> Group:
    specs = {"x": "f32[2,5,8]", "cos": "f32[5,8]", "sin": "f32[5,8]"}

    def turned(x: Any) -> Any:
        return np.concatenate([-x[..., 4:], x[..., :4]], axis=-1)

    def llama(x, cos, sin):
        return x * cos + turned(x) * sin

    def commuted(x, cos, sin):
        return sin * turned(x) + cos * x

    def split(x, cos, sin):
        a, b = np.split(x, 2, axis=-1)
        return x * cos + np.concatenate([-b, a], -1) * sin

    def library(x, cos, sin):
        return nn.rotary_embedding(x, cos, sin)

    def multiplied(x, cos, sin):
        return np.multiply(x, cos) + np.multiply(np.concatenate((x[..., 4:] * -1, x[..., :4]), -1), sin)

    def heads(x, cos, sin):
        y = x[:, None]
        return (y * cos + np.concatenate([-y[..., 4:], y[..., :4]], -1) * sin)[:, 0]

    def ellipsis(x, cos, sin):
        half = x.shape[-1] // 2
        return cos * x + sin * np.concatenate([np.negative(x[:, :, half:]), x[:, :, :half]], axis=2)

    def stacked(x, cos, sin):
        y = x.reshape(2, 5, 2, 4)
        return x * cos + np.stack([-y[:, :, 1], y[:, :, 0]], axis=2).reshape(2, 5, 8) * sin

    def not_negated(x, cos, sin):
        return x * cos + np.concatenate([x[..., 4:], x[..., :4]], -1) * sin

    def reversed_halves(x, cos, sin):
        return x * cos + np.concatenate([-x[..., :4], x[..., 4:]], -1) * sin

    taken = (llama, commuted, split, library, multiplied, heads, ellipsis, stacked)
    return group(specs, taken, (not_negated, reversed_halves))


def _sibling_matmul() -> Group:
    specs = {"x": "f32[5,8]", "a": "f32[8,6]", "b": "f32[8,4]"}

    def two(x, a, b):
        return x @ a, x @ b

    def dotted(x, a, b):
        return np.dot(x, a), np.dot(x, b)

    def einsum(x, a, b):
        return np.einsum("bi,io->bo", x, a), np.einsum("bi,io->bo", x, b)

    def heads(x, a, b):
        return (x @ a).reshape(5, 2, 3), (x @ b).reshape(5, 2, 2)

    def mixed(x, a, b):
        return np.matmul(x, a), np.tensordot(x, b, 1)

    def turned(x, a, b):
        y = x.T
        return y.T @ a, y.T @ b

    def part_of_a_matrix(x, a, b):
        return x @ a[:, 1:4], x @ b

    def flattened(x, a, b):
        y = x.reshape(1, 5, 8)
        return (y @ a)[0], (y @ b)[0]

    def summed(x, a, b):
        return (x[:, :, None] * a).sum(1), (x[:, :, None] * b).sum(1)

    def in_turn(x, a, b):
        return x @ a, (x @ a) @ b[:6]

    def of_two_values(x, a, b):
        return x @ a, (x + 1) @ b

    taken = (two, dotted, einsum, heads, mixed, turned, part_of_a_matrix, flattened, summed)
    return group(specs, taken, (in_turn, of_two_values))


def _sibling_elementwise() -> Group:
    specs = {"x": "f32[4,6]", "y": "f32[4,6]"}

    def two(x, y):
        return np.exp(x), np.tanh(x)

    def with_others(x, y):
        return x * y, x + y

    def chains(x, y):
        return np.exp(x) * 2 + 1, np.sqrt(np.abs(x))

    def three(x, y):
        return np.sin(x), np.cos(x), x * 2

    def rows(x, y):
        return x * y[0], x + y[1]

    def compared(x, y):
        return x > y, x - y

    def by_functions(x, y):
        return np.maximum(x, y), np.minimum(x, y)

    def with_a_row(x, y):
        row = y[0]
        return x * row, x + row

    def casts(x, y):
        return x.astype(np.float64), np.negative(x)

    def strangers(x, y):
        return np.exp(x), np.tanh(y)

    def one_inside(x, y):
        z = np.exp(x)
        return np.tanh(z).sum(-1), z.sum(0)

    taken = (two, with_others, chains, three, rows, compared, by_functions, with_a_row, casts)
    return group(specs, taken, (strangers, one_inside))


def groups() -> dict[str, Group]:
    """Gives the spellings by the identifier of their pattern."""
    return {
        "log_softmax": _log_softmax(), "cross_entropy": _cross_entropy(), "mse_loss": _mse_loss(),
        "rms_norm": _rms_norm(), "group_norm": _group_norm(), "instance_norm": _instance_norm(), "add_norm": _add_norm(),
        "silu": _silu(), "rotary_embedding": _rotary(), "sibling_matmul": _sibling_matmul(),
        "sibling_elementwise": _sibling_elementwise(),
    }  # fmt: skip
