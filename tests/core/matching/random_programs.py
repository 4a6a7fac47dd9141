"""Random programs of every op that windows are made of: nothing in them is meant to be a convolution."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

SPECS = {"a": "f32[2,3,4]", "b": "f32[4,3]", "c": "f32[1,1,5]", "d": "f32[0,2]", "e": "f32[]", "f": "f32[6,6]"}


def random_program(seed: int) -> Callable[..., Any]:
    """A function of the arrays in `SPECS`: 4 to 24 random ops, small extents, zeros and ones among them."""

    def function(**arrays: Any) -> Any:
        rng = np.random.default_rng(seed)
        values = list(arrays.values())
        for _ in range(int(rng.integers(4, 25))):
            made = _step(values, rng)
            if made is not None and np.prod(made.shape) <= 600 and len(made.shape) <= 6:
                values.append(made)
        last = values[-3:]
        return [value * 1.0 for value in last]

    return function


def _step(values: list[Any], rng: np.random.Generator) -> Any:
    pick = lambda *c: int(rng.choice(c))  # noqa: E731
    x = values[int(len(values) - 1 - min(rng.geometric(0.4) - 1, len(values) - 1))]
    shape = tuple(x.shape)
    rank = len(shape)
    axis = int(rng.integers(rank)) if rank else 0
    kind = pick(*range(12))
    if rank == 0:
        return np.broadcast_to(x, (pick(1, 2, 3),)) if kind < 6 else np.tanh(x)
    if kind == 0:
        return x.transpose(rng.permutation(rank).tolist())
    if kind == 1:
        size = int(np.prod(shape))
        divisors = [k for k in range(1, size + 1) if size % k == 0] or [0]
        inner = int(rng.choice(divisors))
        return x.reshape((size // inner, inner)) if inner else x.reshape((0, 3))
    if kind == 2:
        start, step = int(rng.integers(0, shape[axis] + 1)), pick(1, 2, -1)
        return x[(slice(None),) * axis + (slice(start, None, step) if pick(0, 1) else slice(None, start),)]
    if kind == 3:
        widths = [(pick(0, 0, 1), pick(0, 0, 2)) for _ in shape]
        return np.pad(x, widths, constant_values=pick(0, 0, 1))
    if kind == 4 and shape[axis] > 0:
        return np.lib.stride_tricks.sliding_window_view(x, int(rng.integers(1, shape[axis] + 1)), axis=axis)
    if kind == 5:
        return (x.sum, x.max, x.mean)[pick(0, 0, 1, 2) if 0 not in shape else 0](axis=axis)
    if kind == 6:
        mates = [v for v in values if tuple(v.shape) == shape]
        other = mates[int(rng.integers(len(mates)))]
        return (np.add, np.multiply, np.maximum, np.subtract)[pick(0, 0, 1, 1, 2, 3)](x, other)
    if kind == 7 and rank >= 2:
        mates = [v for v in values if len(v.shape) == 2 and v.shape[0] == shape[-1]]
        return x @ mates[int(rng.integers(len(mates)))] if mates else None
    if kind == 8:
        return np.stack([x, x, np.flip(x, axis)][: pick(2, 3)], axis=pick(0, rank))
    if kind == 9:
        return np.concatenate([x, np.zeros_like(x)] if pick(0, 1) else [x[:1], x], axis=0)
    if kind == 10 and shape[axis]:
        return np.take(x, rng.integers(0, shape[axis], pick(1, 2, 3)), axis=axis)
    if kind == 11 and shape[axis] > 1:
        cut = (slice(None),) * axis
        return x[(*cut, slice(None, -1))] + x[(*cut, slice(1, None))]
    return np.maximum(x, 0) if pick(0, 1) else x * 0.5 + 1.0
