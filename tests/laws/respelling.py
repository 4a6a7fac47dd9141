"""Programs of one meaning in random spellings, and the same with one change of meaning."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from topos_core.recording.elementary import erf

EPSILON = 1e-5


class Choice(random.Random):
    def one(self, *options: Callable[[], Any]) -> Any:
        return self.choice(options)()


@dataclass
class Program:
    """A program as a function of named inputs, and the specs of those."""

    function: Callable[..., Any]
    specs: dict[str, str]


def norm(kind: str, seed: int, change: str | None = None) -> Program:
    r = Choice(seed)
    shape = [r.choice([2, 3, 4, 6]) for _ in range(r.randint(2, 4))]
    if change and "axis" in change:
        shape = [4] * len(shape)
    rank = len(shape)
    axis = 0 if kind == "batch_norm_training" else r.randrange(rank)
    axes: tuple[int, ...] = (axis,)
    if rank > 2 and r.random() < 0.3:
        axes = tuple(sorted({axis, (axis + 1) % rank}))
    if change is None:  # axes of one element that are not reduced
        shape = [1 if k not in axes and r.random() < 0.15 else e for k, e in enumerate(shape)]
    order = list(range(rank))
    if r.random() < 0.4 and kind != "batch_norm_training":
        r.shuffle(order)
    inner = [shape[order.index(k)] for k in range(rank)]
    vector = [shape[k] if (k in axes) == (kind != "batch_norm_training") else 1 for k in range(rank)]
    wide = shape if change == "scale axis" else vector
    specs = {
        "x": _spec(inner), "y": _spec(shape), "scale": _spec(wide), "shift": _spec(vector),
    }  # fmt: skip
    state = r.getstate()

    def program(x: Any, y: Any, scale: Any, shift: Any) -> Any:
        r.setstate(state)
        x = _body(r, x.transpose(order), y)
        result, more = _norm(r, kind, change, x, scale, shift, axes, shape)
        return (result, *more)

    return Program(program, specs)


def _spread(r: Choice, x: Any, mean: Any, inverse: Any, scale: Any, shift: Any) -> Any:
    """Writes an affine norm with its products multiplied out, each in an order of its own."""

    def product(*factors: Any) -> Any:
        left = list(factors)
        while len(left) > 1:
            r.shuffle(left)
            left.append(left.pop() * left.pop())
        return left[0]

    folded = scale * inverse
    slope = r.one(lambda: (folded,), lambda: (scale, inverse))
    return r.one(
        lambda: product(x, *slope) + (shift - product(mean, scale, inverse)),
        lambda: (product(x, scale, inverse) - product(mean, *slope)) + shift,
        lambda: shift - product(mean, scale, inverse) + product(x, *slope),
        lambda: (product(x, inverse) - product(mean, inverse)) * scale + shift,
    )


def _norm(
    r: Choice, kind: str, change: str | None, x: Any, scale: Any, shift: Any, axes: tuple[int, ...], shape: list[int]
) -> tuple[Any, list[Any]]:
    rank, count = len(shape), math.prod(shape[k] for k in axes)

    def kept(v: Any, over: tuple[int, ...]) -> Any:
        column = [1 if k in over else e for k, e in enumerate(shape)]
        return r.one(lambda: v, lambda: v.reshape(column), lambda: v.reshape(-1).reshape(column))

    def mean(v: Any, over: tuple[int, ...], n: int) -> Any:
        def total() -> Any:
            if len(over) > 1 and r.random() < 0.3:
                part = v
                for k in over:
                    part = part.sum(k, keepdims=True)
                return part
            return v.sum(over, keepdims=True)

        column = [1 if k in over else e for k, e in enumerate(shape)]
        return kept(
            r.one(
                lambda: total() / n,
                lambda: total() * (1 / n),
                lambda: (1 / n) * total(),
                lambda: (v / n).sum(over, keepdims=True),
                lambda: v.sum(over).reshape(column) / n,
                lambda: np.mean(v, axis=over, keepdims=True) if n == count else total() / n,
            ),
            over,
        )

    other = tuple(sorted((k + 1) % rank for k in axes))
    over = other if change == "variance axis" else axes
    if kind == "rms_norm":
        centred = lambda: x  # noqa: E731
        square = r.one(lambda: x * x, lambda: x**2, lambda: np.square(x))
    else:
        m = mean(x, axes, count)
        spelled = lambda: r.one(  # noqa: E731
            lambda: x - m, lambda: -(m - x), lambda: x + (-m), lambda: -1 * m + x
        )
        once = spelled()
        centred = (lambda: once) if r.random() < 0.6 else spelled
        square = r.one(lambda: centred() * centred(), lambda: centred() ** 2, lambda: (-centred()) ** 2)
    if change == "one pass":
        variance = mean(x * x, axes, count) - mean(x, axes, count) ** 2
    else:
        n = math.prod(shape[k] for k in over)
        variance = mean(square, over, n - 1 if change == "divisor" else n)
    if change == "cast":
        variance = variance.astype("f4").astype("f8")

    def inside() -> Any:
        return r.one(lambda: variance + EPSILON, lambda: EPSILON + variance)

    if change == "epsilon outside":
        inverse = r.one(lambda: 1 / (np.sqrt(variance) + EPSILON), lambda: (EPSILON + variance**0.5) ** -1)
    elif change == "exponent":
        inverse = inside() ** -0.499
    else:
        inverse = r.one(
            lambda: 1 / np.sqrt(inside()), lambda: inside() ** -0.5, lambda: np.sqrt(1 / inside()),
            lambda: np.sqrt(inside()) ** -1, lambda: 1 / inside() ** 0.5, lambda: np.reciprocal(np.sqrt(inside())),
        )  # fmt: skip
    normal = r.one(lambda: centred() * inverse, lambda: inverse * centred())
    more = [inverse + 1.0] if r.random() < 0.2 else []  # somebody else computes with 1 / std
    if kind != "rms_norm" and r.random() < 0.25:
        return _spread(r, x, m, inverse, scale, shift), more
    scaled = r.one(
        lambda: normal * scale, lambda: scale * normal, lambda: centred() * (inverse * scale),
        lambda: (scale * centred()) * inverse, lambda: inverse * (centred() * scale),
    )  # fmt: skip
    if kind == "rms_norm":
        return scaled, more
    return (
        r.one(lambda: scaled + shift, lambda: shift + scaled, lambda: scaled - (-shift), lambda: -(-scaled - shift)),
        more,
    )


def attention(kind: str, seed: int, change: str | None = None) -> Program:
    r = Choice(seed)
    layout = r.choice(["bhsd", "bshd", "hbsd"])
    sizes = {"b": 2, "h": 3, "s": 4, "d": 4}
    if change is None:
        sizes |= {"b": r.choice([1, 2]), "h": r.choice([1, 3])}
    shape = [sizes[c] for c in layout]
    specs = {name: _spec(shape) for name in ("q", "k", "v")} | {
        "mask": _spec([4, 4]),
        "y": _spec([sizes["b"], sizes["h"], 4, 4]),
    }
    order = [layout.index(c) for c in "bhsd"]
    state = r.getstate()

    def program(q: Any, k: Any, v: Any, mask: Any, y: Any) -> Any:
        r.setstate(state)
        q, k, v = (t.transpose(order) for t in (q, k, v))
        if r.random() < 0.3:
            q, v = _body(r, q, y), _body(r, v, y)
        if r.random() < 0.3:
            q, k, v = (t.reshape(sizes["b"] * sizes["h"], 4, 4) for t in (q, k, v))
        scale, place = 0.5, r.randrange(4)
        left, right = [(q * scale, k), (q, k * scale), (q * scale**0.5, k * scale**0.5), (q, k)][place]
        scores = r.one(lambda: left @ right.swapaxes(-1, -2), lambda: (right @ left.swapaxes(-1, -2)).swapaxes(-1, -2))
        if place == 3:
            scores = r.one(lambda: scores * scale, lambda: scores / 2.0, lambda: scale * scores)
        if r.random() < 0.5:
            scores = r.one(lambda: scores + mask, lambda: mask + scores)
        if change == "cast":
            scores = scores.astype("f4").astype("f8")
        last = scores.ndim - 1
        over = last - 1 if change == "axis" else last
        most = scores.max(over, keepdims=True)
        powers = np.exp(r.one(lambda: scores - most, lambda: -(most - scores)))
        total = powers.sum(last - 1 if change == "sum axis" else over, keepdims=True)
        if change == "epsilon":
            total = total + 1e-6
        weights = r.one(lambda: powers / total, lambda: powers * (1 / total), lambda: total**-1 * powers)
        return r.one(
            lambda: weights @ v,
            lambda: (v.swapaxes(-1, -2) @ weights.swapaxes(-1, -2)).swapaxes(-1, -2),
            lambda: (powers @ v) / total if over == last and change != "sum axis" else weights @ v,
        )

    return Program(program, specs)


def gelu(kind: str, seed: int, change: str | None = None) -> Program:
    r = Choice(seed)
    state = r.getstate()

    def program(x: Any, y: Any) -> Any:
        r.setstate(state)
        x = _body(r, x, y)
        slope, cubic = math.sqrt(2 / math.pi), 0.044715
        slope = 0.798 if change == "slope" else slope
        cubic = 0.0447 if change == "cubic" else cubic
        half = 0.51 if change == "half" else 0.5
        by_erf = r.random() < 0.4 and change not in ("slope", "cubic")
        if by_erf:
            inside = r.one(lambda: x / math.sqrt(2), lambda: x * math.sqrt(0.5), lambda: (1 / 2**0.5) * x)
        else:
            cube = r.one(lambda: x**3, lambda: x * x * x, lambda: x * (x * x), lambda: x**2 * x)
            inside = r.one(
                lambda: slope * (x + cubic * cube), lambda: (cube * cubic + x) * slope,
                lambda: x * (slope + slope * cubic * (x * x)), lambda: slope * x * (1 + cubic * x * x),
                lambda: slope * x + slope * cubic * cube,
            )  # fmt: skip
        if change == "cast":
            inside = inside.astype("f4").astype("f8")
        t = erf(inside) if by_erf else np.tanh(inside)
        return r.one(
            lambda: half * x * (1 + t), lambda: x * (half * (t + 1)), lambda: half * (x * (1 + t)),
            lambda: (x * half) * (t + 1), lambda: x * (half + half * t), lambda: (x + x * t) * half,
            lambda: x * (1 + t) / (1 / half),
        )  # fmt: skip

    return Program(program, {"x": _spec([3, 7]), "y": _spec([3, 7])})


def softmax(kind: str, seed: int, change: str | None = None) -> Program:
    r = Choice(seed)
    rank = r.randint(1, 4)
    shape = [4] * rank if change else [r.choice([2, 3, 5]) for _ in range(rank)]
    axes = tuple(sorted(r.sample(range(rank), r.randint(1, rank) if r.random() < 0.3 else 1)))
    state = r.getstate()

    def program(x: Any, y: Any) -> Any:
        r.setstate(state)
        x = _body(r, x, y)
        if r.random() < 0.3:
            x = x * r.choice([0.5, 3.0, -1.0])
        column = [1 if k in axes else e for k, e in enumerate(shape)]
        most = r.one(
            lambda: x.max(axes, keepdims=True),
            lambda: x.max(axes).reshape(column),
            lambda: -((-x).min(axes, keepdims=True)),
        )
        shifted = r.one(lambda: x - most, lambda: -(most - x), lambda: x + (-1.0 * most))
        plain = kind == "softmax" and r.random() < 0.2
        powers = np.exp(x if plain and change is None else shifted)
        total = r.one(lambda: powers.sum(axes, keepdims=True), lambda: powers.sum(axes).reshape(column))
        if change == "epsilon":
            total = total + 1e-6
        if change == "doubled":
            total = total * 2.0
        if kind == "softmax":
            return r.one(lambda: powers / total, lambda: powers * (1 / total), lambda: total**-1 * powers)
        return r.one(
            lambda: shifted - np.log(total),
            lambda: x - (most + np.log(total)) if change is None else shifted - np.log(total),
            lambda: -(np.log(total) - shifted),
        )

    return Program(program, {"x": _spec(shape), "y": _spec(shape)})


WRITERS: dict[str, Callable[..., Program]] = {
    "batch_norm_training": norm, "layer_norm": norm, "rms_norm": norm, "gelu": gelu, "softmax": softmax,
    "log_softmax": softmax, "attention": attention,
}  # fmt: skip

CHANGES: dict[str, tuple[str, ...]] = {
    "batch_norm_training": (
        "epsilon outside",
        "divisor",
        "variance axis",
        "one pass",
        "cast",
        "scale axis",
        "exponent",
    ),
    "layer_norm": ("epsilon outside", "divisor", "variance axis", "one pass", "cast", "scale axis", "exponent"),
    "rms_norm": ("epsilon outside", "divisor", "cast", "scale axis", "exponent"),
    "gelu": ("slope", "cubic", "cast", "half"),
    "softmax": ("epsilon", "doubled"),
    "log_softmax": ("epsilon", "doubled"),
    "attention": ("axis", "sum axis", "cast", "epsilon"),
}


def _spec(shape: list[int]) -> str:
    return f"f64[{','.join(map(str, shape))}]"


def _body(r: Choice, x: Any, y: Any) -> Any:
    """The x of a pattern is not always an input: residual sums, gated products, powers, scaled values, all shared."""
    k = r.randrange(10)
    if k < 4:
        return x
    if k == 4:
        return x + y
    if k == 5:
        return x * y
    if k == 6:
        return np.exp(x)
    if k == 7:
        return (x + y) * y
    return x - y + y if k == 8 else np.sqrt(x * x)
