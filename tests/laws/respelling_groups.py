"""Random spellings of what is made of several layers, and of what nothing else names; as `respelling`, with changed meanings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from tests.laws.respelling import EPSILON, Choice, Program
from topos_core import nn


def _spec(*shape: int) -> str:
    return f"f64[{','.join(map(str, shape))}]"


def _written(r: Choice, specs: dict[str, str], program: Callable[..., Any]) -> Program:
    """Makes a program that draws the same spelling whenever it is traced."""
    state = r.getstate()

    def function(*values: Any) -> Any:
        r.setstate(state)
        return program(*values)

    names = ", ".join(specs)
    return Program(eval(f"lambda {names}: function({names})", {"function": function}), specs)


def depthwise_pointwise(kind: str, seed: int, change: str | None = None) -> Program:
    r = Choice(seed)
    n, c, o, h, w, size = r.choice([1, 2]), r.choice([2, 4]), r.choice([3, 5]), 6, r.choice([5, 6]), r.choice([2, 3])
    pad, between = r.choice([0, 1]) if size == 3 else 0, r.choice(["bias", "relu", "bias and relu", "bounded"])
    if change == "skip":
        size, pad = 3, 1
    specs = {"x": _spec(n, c, h, w), "d": _spec(c, 1, size, size), "b": _spec(c), "p": _spec(o, c, 1, 1)}

    def program(x: Any, d: Any, b: Any, p: Any) -> Any:
        around = ((0, 0), (0, 0), (pad, pad), (pad, pad))
        padded = np.pad(x, around) if pad else x
        windows = lambda: sliding_window_view(padded, (size, size), axis=(2, 3))  # noqa: E731

        def shifted() -> Any:
            rows, columns = h + 2 * pad - size + 1, w + 2 * pad - size + 1
            taps = [(i, j) for i in range(size) for j in range(size)]
            r.shuffle(taps)
            terms = [padded[:, :, i : i + rows, j : j + columns] * d[:, 0, i, j].reshape(1, c, 1, 1) for i, j in taps]
            return sum(terms[1:], terms[0])

        y = r.one(
            lambda: nn.conv2d(x, d, padding=pad, groups=c),
            lambda: np.einsum("nchwij,cij->nchw", windows(), d[:, 0]),
            lambda: (windows() * d.reshape(1, c, 1, 1, size, size)).sum((-2, -1)),
            shifted,
        )
        if "bias" in between:
            y = r.one(lambda: y + b[:, None, None], lambda: b.reshape(1, c, 1, 1) + y)
        if "relu" in between:
            y = r.one(lambda: np.maximum(y, 0), lambda: np.where(y <= 0, 0, y), lambda: nn.relu(y))
        if between == "bounded":
            y = np.clip(y, 0, 6)
        if change == "skip":
            y = y + x
        if change == "groups":
            return nn.conv2d(y, np.concatenate([p, p])[:c, :1], groups=c)
        if change == "window":
            return nn.conv2d(y, np.tile(p, (1, 1, 2, 2)))
        return r.one(
            lambda: nn.conv2d(y, p),
            lambda: np.einsum("nchw,oc->nohw", y, p[:, :, 0, 0]),
            lambda: np.einsum("oc,nchw->nohw", p.reshape(o, c), y),
            lambda: np.tensordot(p[:, :, 0, 0], y, axes=(1, 1)).transpose(1, 0, 2, 3),
        )

    return _written(r, specs, program)


def layer_norm_linear(kind: str, seed: int, change: str | None = None) -> Program:
    r = Choice(seed)
    rows = [r.choice([2, 3, 5]) for _ in range(r.randint(1, 2))]
    width, out = 4, r.choice([3, 7])
    if change == "moved":
        rows = [r.choice([2, 3]), width]
    specs = {"x": _spec(*rows, width), "g": _spec(width), "b": _spec(width), "w": _spec(width, out), "c": _spec(out)}

    def program(x: Any, g: Any, b: Any, w: Any, c: Any) -> Any:
        mean = r.one(lambda: x.mean(-1, keepdims=True), lambda: x.sum(-1, keepdims=True) / width)
        d = x - mean
        squares = r.one(lambda: d * d, lambda: d**2, lambda: np.square(d))
        divisor = width - 1 if change == "divisor" else width
        variance = r.one(
            lambda: squares.sum(-1, keepdims=True) / divisor, lambda: squares.sum(-1, keepdims=True) * (1 / divisor)
        )
        if change == "epsilon":
            inverse = 1 / (np.sqrt(variance) + EPSILON)
        else:
            inverse = r.one(lambda: 1 / np.sqrt(variance + EPSILON), lambda: (EPSILON + variance) ** -0.5)
        y = r.one(lambda: d * inverse * g + b, lambda: b + g * (d * inverse), lambda: (g * d) * inverse + b)
        if change == "moved":
            y = y.swapaxes(-1, -2)
        if change == "skip":
            y = y + x
        if len(rows) == 2 and change is None and r.random() < 0.3:
            y = y.reshape(-1, width)
        y = r.one(lambda: y @ w, lambda: np.dot(y, w), lambda: np.einsum("...i,io->...o", y, w))
        if r.random() < 0.5:
            y = r.one(lambda: y + c, lambda: c + y)
        return np.maximum(y, 0) if r.random() < 0.3 else y

    return _written(r, specs, program)


def matmul(kind: str, seed: int, change: str | None = None) -> Program:
    r = Choice(seed)
    n, i, j, k = (r.choice([2, 3, 5]) for _ in range(4))
    specs = {"a": _spec(n, i, j), "b": _spec(n, j, k)}

    def program(a: Any, b: Any) -> Any:
        if change == "largest":
            return (a[:, :, :, None] * b[:, None]).max(2)
        if change == "outer":
            return a[:, :, :, None] * b[:, None]
        if change == "one":
            return a @ b[0]
        back = lambda y: np.swapaxes(y, 1, 2)  # noqa: E731
        return r.one(
            lambda: a @ b, lambda: np.matmul(a, b), lambda: np.einsum("nij,njk->nik", a, b),
            lambda: back(back(b) @ back(a)), lambda: np.einsum("njk,nij->nki", b, a).transpose(0, 2, 1),
            lambda: (a[:, :, :, None] * b[:, None]).sum(2), lambda: (b[:, None] * a[..., None]).sum(axis=-2),
            lambda: (a[None] @ b[None])[0], lambda: np.einsum("nij,nkj->nik", a, back(b)),
        )  # fmt: skip

    return _written(r, specs, program)


def _steps(r: Choice, x: Any, y: Any) -> Any:
    """Writes two to five elementwise ops, each in one of its spellings."""
    value = r.one(lambda: np.abs(x) + 1, lambda: 1 + abs(x), lambda: np.add(np.absolute(x), 1))
    for _ in range(r.randint(1, 4)):
        value = _step(r, value, x, y)
    return value


def _step(r: Choice, value: Any, x: Any, y: Any) -> Any:
    return r.one(
        lambda: value * y, lambda: np.multiply(y, value), lambda: value - x, lambda: np.tanh(value),
        lambda: np.negative(value) * 0.5, lambda: np.minimum(value, y), lambda: value + y[:1],
        lambda: np.where(x > y, value, 0.5),
    )  # fmt: skip


def elementwise_chain(kind: str, seed: int, change: str | None = None) -> Program:
    r = Choice(seed)
    shape = (r.choice([2, 4]), r.choice([3, 6]))
    specs = {"x": _spec(*shape), "y": _spec(*shape)}

    def program(x: Any, y: Any) -> Any:
        if change == "moved":
            return np.tanh(x)[:, ::-1] * 2
        if change == "summed":
            return np.abs(x).sum(0)
        if change == "one":
            return r.one(lambda: np.tanh(x), lambda: x * y, lambda: np.maximum(x, y))
        return r.one(
            lambda: _steps(r, x, y), lambda: _steps(r, x.T, y.T), lambda: _steps(r, x[:, None], y[:, None])[:, 0],
            lambda: _steps(r, x.reshape(shape), y),
        )  # fmt: skip

    return _written(r, specs, program)


def elementwise_reduction(kind: str, seed: int, change: str | None = None) -> Program:
    r = Choice(seed)
    shape = (r.choice([2, 4]), r.choice([3, 6]))
    specs = {"x": _spec(*shape), "y": _spec(*shape)}

    def program(x: Any, y: Any) -> Any:
        if change == "bare":
            return x.sum(-1)
        value = _steps(r, x, y)
        if change == "in turn":
            return np.cumsum(value, axis=1)
        axis = r.choice([0, 1, (0, 1)])
        return r.one(
            lambda: value.sum(axis), lambda: np.max(value, axis=axis), lambda: value.min(axis),
            lambda: np.sum(value, axis=axis, keepdims=True), lambda: np.add.reduce(value, axis=axis),
            lambda: np.prod(value, axis=axis),
        )  # fmt: skip

    return _written(r, specs, program)


def reduction_elementwise(kind: str, seed: int, change: str | None = None) -> Program:
    r = Choice(seed)
    n = r.choice([3, 5])
    specs = {"x": _spec(n, n)}

    def program(x: Any) -> Any:
        axis = r.choice([0, 1])
        top = x.max(axis, keepdims=True)
        if change == "bare":
            return r.one(lambda: x.max(axis), lambda: np.min(x, axis))
        if change == "read twice":
            return top - x, top
        if change == "other axis":
            return x.max(axis, keepdims=True).swapaxes(0, 1) - x
        return r.one(
            lambda: top - x, lambda: np.abs(x - x.max(axis, keepdims=True)), lambda: np.sqrt(np.exp(x).sum(axis)) * 2,
            lambda: (x.min(axis) + 1) / 2, lambda: x / (1 + np.abs(x).sum(axis, keepdims=True)),
            lambda: np.tanh(np.subtract(np.expand_dims(np.max(x, axis=axis), axis), x)), lambda: x - x.max(),
        )  # fmt: skip

    return _written(r, specs, program)


def sibling_matmul(kind: str, seed: int, change: str | None = None) -> Program:
    r = Choice(seed)
    rows, width, count = r.choice([2, 5]), 4, r.randint(2, 4)
    specs = {"x": _spec(rows, width)} | {f"w{k}": _spec(width, r.choice([3, 4, 6])) for k in range(count)}
    if change == "in turn":
        specs |= {"w0": _spec(width, width)}

    def program(x: Any, *weights: Any) -> Any:
        if change == "in turn":
            first = x @ weights[0]
            return first @ weights[1], first
        if change == "of two values":
            return (x + 1) @ weights[1], x @ weights[0]

        def product(w: Any) -> Any:
            return r.one(
                lambda: x @ w, lambda: np.dot(x, w), lambda: np.einsum("bi,io->bo", x, w), lambda: np.tensordot(x, w, 1),
                lambda: x.T.T @ w,
            )  # fmt: skip

        return tuple(reversed([product(w) for w in weights]))  # the last one made is the root

    return _written(r, specs, program)


def sibling_elementwise(kind: str, seed: int, change: str | None = None) -> Program:
    r = Choice(seed)
    shape = (r.choice([2, 4]), r.choice([3, 6]))
    specs = {"x": _spec(*shape), "y": _spec(*shape)}

    def program(x: Any, y: Any) -> Any:
        if change == "strangers":
            return np.exp(x), np.tanh(y)
        if change == "one inside":
            z = np.exp(x)
            return np.tanh(z).sum(-1), z.sum(0)

        def one() -> Any:
            return r.one(
                lambda: np.exp(x), lambda: x * y, lambda: np.abs(x) + 1, lambda: np.tanh(x) * 2, lambda: np.maximum(x, y),
                lambda: x > y,
            )  # fmt: skip

        made: list[Any] = []
        while len(made) < 2 or (len(made) < 4 and r.random() < 0.5):
            made.append(one())
        return tuple(reversed(made))

    return _written(r, specs, program)


WRITERS: dict[str, Callable[..., Program]] = {
    "depthwise_pointwise": depthwise_pointwise, "layer_norm_linear": layer_norm_linear, "matmul": matmul,
    "elementwise_chain": elementwise_chain, "elementwise_reduction": elementwise_reduction,
    "reduction_elementwise": reduction_elementwise, "sibling_matmul": sibling_matmul,
    "sibling_elementwise": sibling_elementwise,
}  # fmt: skip

CHANGES: dict[str, tuple[str, ...]] = {
    "depthwise_pointwise": ("skip", "groups", "window"),
    "layer_norm_linear": ("divisor", "epsilon", "moved", "skip"),
    "matmul": ("largest", "outer", "one"),
    "elementwise_chain": ("moved", "summed", "one"),
    "elementwise_reduction": ("bare", "in turn"),
    "reduction_elementwise": ("bare", "read twice", "other axis"),
    "sibling_matmul": ("in turn", "of two values"),
    "sibling_elementwise": ("strangers", "one inside"),
}
