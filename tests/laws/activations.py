"""Activations in many spellings, and programs that put one where a region can take it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from topos_core import nn
from topos_core.recording.elementary import erf, logsumexp

Function = Callable[[Any], Any]

SLOPE: Final = 0.7978845608


def by_size(x: Any, write: Function) -> Any:
    """Gives e ** -|x| to a spelling."""
    return write(np.exp(-np.abs(x)))


SPELLINGS: Final[Mapping[str, Function]] = {
    "maximum": lambda x: np.maximum(x, 0),
    "maximum, number first": lambda x: np.maximum(0.0, x),
    "maximum with -0": lambda x: np.maximum(x, -0.0),
    "clip at 0": lambda x: np.clip(x, 0, None),
    "x > 0": lambda x: np.where(x > 0, x, 0),
    "x >= 0": lambda x: np.where(x >= 0, x, 0),
    "x < 0": lambda x: np.where(x < 0, 0, x),
    "x <= 0": lambda x: np.where(x <= 0, 0, x),
    "0 < x": lambda x: np.where(x > 0, x, 0),
    "0 <= x": lambda x: np.where(x >= 0, x, 0),
    "0 > x": lambda x: np.where(x < 0, 0, x),
    "0 >= x": lambda x: np.where(x <= 0, 0, x),
    "not x < 0": lambda x: np.where(~(x < 0), x, 0),
    "not x > 0": lambda x: np.where(~(x > 0), 0, x),
    "x > -0": lambda x: np.where(x > -0.0, x, -0.0),
    "times a mask": lambda x: x * (x > 0),
    "half of x + |x|": lambda x: (x + np.abs(x)) / 2,
    "leaky": lambda x: np.where(x > 0, x, 0.01 * x),
    "leaky by maximum": lambda x: np.maximum(x, 0.01 * x),
    "absolute by choice": lambda x: np.where(x > 0, x, -x),
    "clip to 6": lambda x: np.clip(x, 0, 6),
    "minimum of maximum": lambda x: np.minimum(np.maximum(x, 0), 6),
    "maximum of minimum": lambda x: np.maximum(np.minimum(x, 6), 0),
    "clip to 6 by two choices": lambda x: np.where(x > 6, 6, np.where(x > 0, x, 0)),
    "6 unless less": lambda x: np.where(x < 6, np.maximum(x, 0), 6),
    "6 where greater": lambda x: np.maximum(np.where(x > 6, 6, x), 0),
    "minimum of a choice": lambda x: np.minimum(np.where(x > 0, x, 0), 6),
    "hardswish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "hardswish, ramp first": lambda x: x * (np.clip(x + 3, 0, 6) / 6),
    "hardswish by choice": lambda x: x * np.minimum(np.where(x + 3 > 0, x + 3, 0), 6) / 6,
    "hardswish and nothing": lambda x: 0 * x * x + x * np.clip(x + 3, 0, 6) / 6,
    "relu of a difference": lambda x: np.maximum(3 * x - 2 * x, 0),
    "tanh": lambda x: np.tanh(x),
    "tanh, odd": lambda x: -np.tanh(-x),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "sigmoid of exp": lambda x: np.exp(x) / (1 + np.exp(x)),
    "sigmoid by tanh": lambda x: 0.5 * (1 + np.tanh(x / 2)),
    "sigmoid by two branches": lambda x: np.where(x >= 0, 1 / (1 + np.exp(-x)), np.exp(x) / (1 + np.exp(x))),
    "sigmoid by two branches, positive": lambda x: np.where(x > 0, 1 / (1 + np.exp(-x)), np.exp(x) / (1 + np.exp(x))),
    "sigmoid by two branches, negative": lambda x: np.where(x < 0, np.exp(x) / (1 + np.exp(x)), 1 / (1 + np.exp(-x))),
    "sigmoid by two branches, not positive": lambda x: np.where(
        x <= 0, np.exp(x) / (1 + np.exp(x)), 1 / (1 + np.exp(-x))
    ),
    "sigmoid by two branches, not negative": lambda x: np.where(
        ~(x < 0), 1 / (1 + np.exp(-x)), np.exp(x) / (1 + np.exp(x))
    ),
    "sigmoid by |x|": lambda x: by_size(x, lambda e: np.where(x >= 0, 1 / (1 + e), e / (1 + e))),
    "sigmoid by |x|, drawn out": lambda x: by_size(x, lambda e: np.where(x < 0, e, 1) / (1 + e)),
    "sigmoid by softplus": lambda x: np.exp(-nn.softplus(-x)),
    "sigmoid by softplus, the smaller": lambda x: np.exp(np.minimum(0, x) - np.log1p(np.exp(-np.abs(x)))),
    "sigmoid by logaddexp": lambda x: np.exp(-np.logaddexp(0, -x)),
    "sigmoid by logaddexp, commuted": lambda x: np.exp(-np.logaddexp(-x, 0)),
    "sigmoid by two branches, exchanged": lambda x: np.where(x <= 0, 1 / (1 + np.exp(-x)), np.exp(x) / (1 + np.exp(x))),
    "sigmoid by two branches, from 1": lambda x: np.where(x >= 1, 1 / (1 + np.exp(-x)), np.exp(x) / (1 + np.exp(x))),
    "sigmoid by two branches, odd": lambda x: np.where(x >= 0, 1 / (1 + np.exp(-x)), np.exp(-x) / (1 + np.exp(-x))),
    "sigmoid by |x|, exchanged": lambda x: by_size(x, lambda e: np.where(x >= 0, e, 1) / (1 + e)),
    "sigmoid by softplus, of itself": lambda x: np.exp(-(np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))))),
    "sigmoid by softplus, growing": lambda x: np.exp(-(np.maximum(-x, 0) + np.log1p(np.exp(np.abs(x))))),
    "sigmoid by logaddexp with 1": lambda x: np.exp(-np.logaddexp(1, -x)),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "silu by two branches": lambda x: x * np.where(x >= 0, 1 / (1 + np.exp(-x)), np.exp(x) / (1 + np.exp(x))),
    "silu, whole in two branches": lambda x: np.where(x > 0, x / (1 + np.exp(-x)), x * np.exp(x) / (1 + np.exp(x))),
    "silu by |x|": lambda x: by_size(x, lambda e: x * np.where(x <= 0, e / (1 + e), 1 / (1 + e))),
    "silu by |x|, drawn out": lambda x: by_size(x, lambda e: x * (np.where(x > 0, 1, e) / (1 + e))),
    "silu by softplus": lambda x: x * np.exp(-nn.softplus(-x)),
    "silu by logaddexp": lambda x: x * np.exp(-np.logaddexp(0, -x)),
    "silu, times": lambda x: x * (1 / (1 + np.exp(-x))),
    "silu of exp": lambda x: x * np.exp(x) / (1 + np.exp(x)),
    "silu of exp, times": lambda x: x * (np.exp(x) / (1 + np.exp(x))),
    "silu by tanh": lambda x: x * 0.5 * (1 + np.tanh(x / 2)),
    "silu by tanh, distributed": lambda x: 0.5 * x + 0.5 * x * np.tanh(x / 2),
    "gelu": lambda x: 0.5 * x * (1 + erf(x / 2**0.5)),
    "gelu, distributed": lambda x: 0.5 * x + 0.5 * x * erf(x / 2**0.5),
    "gelu by the complement": lambda x: 0.5 * x * (1 - erf(-x / 2**0.5)),
    "gelu by tanh": lambda x: 0.5 * x * (1 + np.tanh(SLOPE * (x + 0.044715 * x**3))),
    "gelu by tanh, factored": lambda x: 0.5 * x * (1 + np.tanh(x * (SLOPE + SLOPE * 0.044715 * x * x))),
    "sigmoid by log1p": lambda x: np.exp(-np.log1p(np.exp(-x))),
    "silu by log1p": lambda x: x * np.exp(-np.log1p(np.exp(-x))),
    "gelu by tanh, as a sigmoid": lambda x: x / (1 + np.exp(-2 * SLOPE * (x + 0.044715 * x**3))),
    "gelu by sigmoid": lambda x: x / (1 + np.exp(-1.702 * x)),
    "gelu by sigmoid of exp": lambda x: x * np.exp(1.702 * x) / (1 + np.exp(1.702 * x)),
}

VALUES: Final = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 3.0, -3.0, 6.0, -6.0, 7.0, 100.0, -100.0, 1e30, -1e30)


class Placed(NamedTuple):
    """A program with an activation in one place, and inputs that bring `VALUES` there."""

    function: Callable[..., Any]
    specs: dict[str, str]
    inputs: list[np.ndarray]


def placed(activate: Function, dtype: str) -> Iterator[tuple[str, Placed]]:
    """Puts an activation by itself, and behind and before whatever can take it in."""
    n = len(VALUES)
    values, none, eye = np.array(VALUES), np.zeros, np.eye(n)
    rows = np.random.default_rng(0).standard_normal((3, 4))
    image = np.random.default_rng(1).standard_normal((1, n, 5, 5))
    linear = {"x": rows, "w": none((4, n)), "b": values}
    convolved = {"x": image[:, :2], "w": none((n, 2, 3, 3)), "b": values}

    def place(function: Callable[..., Any], arrays: Mapping[str, np.ndarray]) -> Placed:
        specs = {name: f"{dtype}[{','.join(map(str, array.shape))}]" for name, array in arrays.items()}
        return Placed(function, specs, [array.astype({"f32": "f4", "f64": "f8"}[dtype]) for array in arrays.values()])

    yield "alone", place(lambda x: activate(x), {"x": values})
    yield "linear", place(lambda x, w, b: activate(x @ w + b), linear)
    yield "normed", place(lambda x, w, b: activate(nn.layer_norm(x) @ w + b), linear)
    yield (
        "gated",
        place(lambda x, w, b, u, c: activate(x @ w + b) * (x @ u + c), {**linear, "u": none((4, n)), "c": np.ones(n)}),
    )
    yield "convolution", place(lambda x, w, b: activate(nn.conv2d(x, w, b)), convolved)
    yield (
        "residual",
        place(
            lambda x, w, b, r: activate(nn.conv2d(x, w) + b[:, None, None] + r), {**convolved, "r": none((1, n, 3, 3))}
        ),
    )
    yield (
        "separable",
        place(
            lambda x, w, b, p: nn.conv2d(activate(nn.conv2d(x, w, b, padding=1, groups=n)), p),
            {"x": image, "w": none((n, 1, 3, 3)), "b": values, "p": eye[:, :, None, None]},
        ),
    )


def powers(x: Any) -> Any:
    """Divides powers by their sum, without a shift."""
    e = np.exp(x)
    return e / e.sum(-1, keepdims=True)


def shifted(x: Any) -> Any:
    """Divides powers by their sum, the largest subtracted first."""
    return powers(x - x.max(-1, keepdims=True))


def logs(x: Any) -> Any:
    """Subtracts the logarithm of the sum of powers, without a shift."""
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def logs_of_sums(x: Any) -> Any:
    """Gives the logarithm of the sum of powers, shifted by the maximum where that is finite."""
    most = x.max(-1, keepdims=True)
    most = np.where(np.isfinite(most), most, np.zeros((), x.dtype))
    return np.log(np.exp(x - most).sum(-1, keepdims=True)) + most


SOFTMAXES: Final[Mapping[str, Function]] = {
    "softmax": shifted,
    "softmax, unshifted": powers,
    "softmax of columns": lambda x: powers(x.T).T,
    "logarithm of softmax": lambda x: np.log(shifted(x)),
    "log softmax": lambda x: logs(x - x.max(-1, keepdims=True)),
    "log softmax, unshifted": logs,
    "log softmax of columns": lambda x: logs(x.T).T,
    "powers of log softmax, unshifted": lambda x: np.exp(logs(x)),
    "by logsumexp": lambda x: x - logsumexp(x, -1, keepdims=True),
    "powers, by logsumexp": lambda x: np.exp(x - logsumexp(x, -1, keepdims=True)),
    "by logsumexp that shifts by hand": lambda x: x - logs_of_sums(x),
    "powers, by logsumexp that shifts by hand": lambda x: np.exp(x - logs_of_sums(x)),
    "columns by logsumexp": lambda x: (x.T - logsumexp(x.T, 0)).T,
    "loss by logsumexp": lambda x: -(x - logsumexp(x, -1, keepdims=True))[np.arange(len(x)), np.zeros(len(x), int)],
    "loss of a class": lambda x: -logs(x)[np.arange(len(x)), np.zeros(len(x), int)],
    "loss of another class": lambda x: -logs(x)[np.arange(len(x)), np.ones(len(x), int)],
    "attention": lambda x: shifted(x) @ np.ones((3, 2), np.float32),
}
INF: Final = np.inf
ROWS: Final = np.array(
    [
        [1, 2, 3], [INF, 1, 2], [1, INF, 2], [-INF, 1, 2], [np.nan, 1, 2], [-INF, -INF, -INF], [INF, -INF, 1], [INF, INF, 1],
        [-0.0, 0, 0],
    ]
)  # fmt: skip
OVERFLOWING: Final = np.array([[100, 1, 2], [-200, -300, -200], [-1e4, -1e4, -1e4]])
