"""Random programs near the patterns, with signs turned, operands swapped and constants a little off.

Some compute what a pattern does and some something else; whatever is recognised has to be what the program computes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tests.laws.respelling import Choice, Program
from topos_core import nn
from topos_core.recording.elementary import erf

Writer = Callable[[Choice, Any, tuple[int, ...], dict[str, Any]], Any]


def swapped(kind: str, seed: int) -> Program:
    """Gives a program of one kind; the same seed gives the same program."""
    r = Choice(f"{kind} {seed}")
    shape = FIXED.get(kind) or _shape(r)
    rank = len(shape)
    axes = r.choice([(rank - 1,), (rank - 1,), (0,), tuple(range(1, rank)), (0, *range(2, rank))])
    vector = _vector(r, shape, axes)
    specs = {
        "x": _spec(shape), "y": _spec([extent if r.random() < 0.6 else 1 for extent in shape]), "like": _spec(shape),
        "w": _spec((shape[-1], shape[-1])), "scale": _spec(vector), "shift": _spec(vector), "mean": _spec(vector),
        "variance": _spec(vector), "gain": _spec(r.choice([(4, 1, 1), (1,), (2, 4, 1, 1), (3,), (3, 1)])),
        "key": _spec(shape), "value": _spec(shape),
    }  # fmt: skip
    state = r.getstate()

    def program(
        x: Any,
        y: Any,
        like: Any,
        w: Any,
        scale: Any,
        shift: Any,
        mean: Any,
        variance: Any,
        gain: Any,
        key: Any,
        value: Any,
    ) -> Any:
        given = {
            "x": x, "y": y, "like": like, "w": w, "scale": scale, "shift": shift, "mean": mean, "variance": variance,
            "gain": gain, "key": key, "value": value,
        }  # fmt: skip
        r.setstate(state)
        return WRITERS[kind](r, _operand(r, given), axes, given)

    return Program(program, specs)


def _shape(r: Choice) -> tuple[int, ...]:
    rank = r.choice([2, 2, 3, 4])
    return (4,) * rank if r.random() < 0.3 else tuple(r.choice([2, 3, 4, 5]) for _ in range(rank))


def _vector(r: Choice, shape: tuple[int, ...], axes: tuple[int, ...]) -> list[int]:
    """Gives the shape of scales and shifts: along what stays, what is reduced, everything, nothing or the last axis."""
    stays: Callable[[int], bool] = r.choice(
        [
            lambda k: k not in axes, lambda k: k in axes, lambda k: True, lambda k: False,
            lambda k: k == len(shape) - 1,
        ]
    )  # fmt: skip
    return [extent if stays(k) else 1 for k, extent in enumerate(shape)]


def _spec(shape: Any) -> str:
    return f"f64[{','.join(map(str, shape))}]"


def _operand(r: Choice, given: dict[str, Any]) -> Any:
    """Gives what is normalised: x itself, or x after a step that a pattern may claim or fold with a wrong sign."""
    x, y, w = given["x"], given["y"], given["w"]
    return r.one(
        lambda: x, lambda: x, lambda: -x, lambda: y - x, lambda: x - y, lambda: 2 * x, lambda: x * -0.5, lambda: 1 - x,
        lambda: x + y, lambda: x * y, lambda: y * x - x, lambda: x / -3, lambda: np.abs(x), lambda: x * x,
        lambda: -(x * y), lambda: (x - y) * -2, lambda: x + x, lambda: x - x * 0.5, lambda: np.maximum(x, 0),
        lambda: x @ w, lambda: -(x @ w), lambda: y - x @ w, lambda: -x[::-1],
    )  # fmt: skip


def _affine(r: Choice, x: Any, given: dict[str, Any]) -> Any:
    scale, shift = given["scale"], given["shift"]
    if r.random() < 0.6:
        x = r.one(
            lambda: x * scale, lambda: x * -scale, lambda: scale * x, lambda: x * (1 + scale), lambda: x * (1 - scale),
            lambda: -x * scale, lambda: x / scale,
        )  # fmt: skip
    if r.random() < 0.5:
        x = r.one(lambda: x + shift, lambda: x - shift, lambda: shift - x, lambda: shift + x)
    return x


def _norm(r: Choice, y: Any, axes: tuple[int, ...], given: dict[str, Any]) -> Any:
    mean = y.mean(axes, keepdims=True)
    count = math.prod(y.shape[axis] for axis in axes)
    variance = r.one(
        lambda: y.var(axes, keepdims=True), lambda: ((y - mean) ** 2).mean(axes, keepdims=True),
        lambda: ((mean - y) ** 2).mean(axes, keepdims=True), lambda: np.square(y - mean).mean(axes, keepdims=True),
        lambda: ((y - mean) * (mean - y)).mean(axes, keepdims=True),
        lambda: -((y - mean) * (mean - y)).mean(axes, keepdims=True),
        lambda: ((y - mean) ** 2).sum(axes, keepdims=True) / (count - r.choice([0, 0, 1])),
        lambda: (y * y).mean(axes, keepdims=True) - mean * mean,
    )  # fmt: skip
    epsilon = r.choice([1e-5, 1e-5, 0.1, -1e-5, 0])
    centred = r.one(
        lambda: y - mean, lambda: y - mean, lambda: mean - y, lambda: -(mean - y), lambda: (y - mean) * -1
    )  # fmt: skip
    result = r.one(
        lambda: centred / np.sqrt(variance + epsilon), lambda: centred * (variance + epsilon) ** -0.5,
        lambda: centred * (1 / np.sqrt(variance + epsilon)), lambda: centred / -np.sqrt(variance + epsilon),
        lambda: centred / (variance + epsilon) ** 0.5, lambda: centred / (variance + epsilon),
        lambda: centred / (np.sqrt(variance) + epsilon), lambda: centred / np.sqrt(epsilon - (-variance)),
        lambda: y / np.sqrt(variance + epsilon) - mean / np.sqrt(variance + epsilon),
    )  # fmt: skip
    return _affine(r, result, given)


def _root_mean_square(r: Choice, y: Any, axes: tuple[int, ...], given: dict[str, Any]) -> Any:
    square = r.one(
        lambda: (y * y).mean(axes, keepdims=True), lambda: (y**2).mean(axes, keepdims=True),
        lambda: -(-y * y).mean(axes, keepdims=True), lambda: (y * -y).mean(axes, keepdims=True) * -1,
        lambda: np.abs(y * y).mean(axes, keepdims=True), lambda: (y * y).sum(axes, keepdims=True),
    ) + 1e-6  # fmt: skip
    result = r.one(
        lambda: y / np.sqrt(square), lambda: -y / np.sqrt(square), lambda: y * square**-0.5, lambda: y / -np.sqrt(square)
    )  # fmt: skip
    return _affine(r, result, given)


def _softmax(r: Choice, y: Any, axes: tuple[int, ...], given: dict[str, Any]) -> Any:
    top, least = y.max(axes, keepdims=True), y.min(axes, keepdims=True)
    powers = np.exp(
        r.one(
            lambda: y - top, lambda: y, lambda: -y, lambda: least - y, lambda: y - least, lambda: -(y - top),
            lambda: 2 * y, lambda: y * -1.5,
        )
    )  # fmt: skip
    total = powers.sum(axes, keepdims=True)
    return r.one(
        lambda: powers / total, lambda: -powers / total, lambda: powers / -total, lambda: powers / (1 + total),
        lambda: powers * (1 / total), lambda: powers / powers.sum(r.choice([0, -1]), keepdims=True),
    )  # fmt: skip


def _log_softmax(r: Choice, y: Any, axes: tuple[int, ...], given: dict[str, Any]) -> Any:
    z = r.one(lambda: y, lambda: y - y.max(axes, keepdims=True), lambda: -y)

    def total(x: Any) -> Any:
        return np.exp(x).sum(axes, keepdims=True)

    return r.one(
        lambda: z - np.log(total(z)), lambda: np.log(total(z)) - z, lambda: -z - np.log(total(-z)),
        lambda: z + np.log(1 / total(z)), lambda: z - np.log(total(-z)), lambda: np.log(np.exp(z) / total(z)),
    )  # fmt: skip


def _silu(r: Choice, y: Any, axes: tuple[int, ...], given: dict[str, Any]) -> Any:
    return r.one(
        lambda: y / (1 + np.exp(-y)), lambda: y / (1 + np.exp(y)), lambda: -y / (1 + np.exp(y)),
        lambda: y * (1 / (1 + np.exp(-y))), lambda: y * nn.sigmoid(-y), lambda: y * nn.sigmoid(2 * y),
        lambda: y - y / (1 + np.exp(y)), lambda: y * np.exp(y) / (1 + np.exp(y)),
        lambda: y * (0.5 * np.tanh(0.5 * y) + 0.5), lambda: y * (0.5 - 0.5 * np.tanh(-0.5 * y)),
        lambda: y * (0.5 - 0.5 * np.tanh(0.5 * y)),
    )  # fmt: skip


def _gelu(r: Choice, y: Any, axes: tuple[int, ...], given: dict[str, Any]) -> Any:
    root, near = math.sqrt(2), math.sqrt(2 / math.pi)
    bent, straightened = near * (y + 0.044715 * y**3), near * (y - 0.044715 * y**3)
    return r.one(
        lambda: 0.5 * y * (1 + erf(y / root)), lambda: 0.5 * y * (1 - erf(y / root)),
        lambda: 0.5 * y * (1 - erf(-y / root)), lambda: y * 0.5 * (1 + erf(y * (1 / root))),
        lambda: -0.5 * y * (1 + erf(-y / root)), lambda: 0.5 * y * (1 + erf(y / 2)),
        lambda: 0.5 * (y + y * erf(y / root)), lambda: y * (1 + erf(y / -root)) / -2,
        lambda: 0.5 * y * (1 + np.tanh(bent)), lambda: 0.5 * y * (1 - np.tanh(-bent)),
        lambda: 0.5 * y * (1 + np.tanh(straightened)), lambda: 0.5 * y * (1 - np.tanh(bent)),
        lambda: y * nn.sigmoid(2 * bent), lambda: y * nn.sigmoid(1.702 * y),
        lambda: 0.5 * y * (1 + np.tanh(near * y * (1 + 0.044715 * y * y))),
    )  # fmt: skip


def _mean_squared_error(r: Choice, y: Any, axes: tuple[int, ...], given: dict[str, Any]) -> Any:
    t = given["like"]
    return r.one(
        lambda: ((y - t) ** 2).mean(), lambda: ((t - y) ** 2).mean(), lambda: ((y - t) * (t - y)).mean(),
        lambda: -((y - t) * (t - y)).mean(), lambda: ((y + t) ** 2).mean(), lambda: np.square(y - t).sum() / y.size,
        lambda: ((y - t) ** 2).mean(-1).mean(), lambda: ((-y - t) ** 2).mean(), lambda: (np.abs(y - t) ** 2).mean(),
    )  # fmt: skip


def _given_statistics(r: Choice, y: Any, axes: tuple[int, ...], given: dict[str, Any]) -> Any:
    mean, scale, shift = given["mean"], given["scale"], given["shift"]
    root = np.sqrt(given["variance"] + 1e-5)
    return r.one(
        lambda: (y - mean) / root * scale + shift, lambda: (mean - y) / root * scale + shift,
        lambda: shift - (y - mean) / root * scale, lambda: shift - (mean - y) / root * scale,
        lambda: y * (scale / root) + (shift - mean * scale / root),
        lambda: y * (scale / root) + (shift + mean * scale / root),
        lambda: y * (scale / root) - (mean * scale / root - shift), lambda: (y + mean) / root * scale + shift,
        lambda: (y - mean) / -root * scale - shift, lambda: (y - mean) / root * -scale + shift,
        lambda: (y - mean) * scale / np.sqrt(1e-5 - (-given["variance"])) + shift,
        lambda: (y - mean) / root * scale - shift,
    )  # fmt: skip


def _attention(r: Choice, y: Any, axes: tuple[int, ...], given: dict[str, Any]) -> Any:
    key, value = given["key"], given["value"]
    turned = key.swapaxes(1, 2)
    scores = r.one(
        lambda: y @ turned, lambda: -(y @ turned), lambda: y @ turned * 0.577, lambda: y @ turned * -0.577,
        lambda: y @ turned / math.sqrt(3), lambda: key @ y.swapaxes(1, 2),
    )  # fmt: skip
    axis = r.choice([-1, -1, 1])
    powers = np.exp(scores - scores.max(axis, keepdims=True))
    total = powers.sum(axis, keepdims=True)
    return r.one(
        lambda: powers / total @ value, lambda: -(powers / total) @ value, lambda: powers / total @ -value,
        lambda: powers / -total @ value, lambda: (powers @ value) / (total if axis == -1 else 1),
    )  # fmt: skip


def _group_norm(r: Choice, y: Any, axes: tuple[int, ...], given: dict[str, Any]) -> Any:
    gain, z = given["gain"], y.reshape(2, 2, 2, 3, 3)
    mean = z.mean((2, 3, 4), keepdims=True)
    root = np.sqrt(z.var(r.choice([(2, 3, 4), (2, 3, 4), (1, 2, 3)]), keepdims=True) + 1e-5)
    return r.one(
        lambda: ((z - mean) / root).reshape(y.shape) * gain, lambda: ((mean - z) / root).reshape(y.shape) * gain,
        lambda: gain - ((z - mean) / root).reshape(y.shape), lambda: -gain * ((z - mean) / root).reshape(y.shape),
    )  # fmt: skip


WRITERS: Final[dict[str, Writer]] = {
    "norm": _norm, "root mean square": _root_mean_square, "softmax": _softmax, "log softmax": _log_softmax,
    "silu": _silu, "gelu": _gelu, "mean squared error": _mean_squared_error, "given statistics": _given_statistics,
    "attention": _attention, "group norm": _group_norm,
}  # fmt: skip
FIXED: Final = {"attention": (2, 4, 3), "group norm": (2, 4, 3, 3)}
