"""Random chains of movement ops over one counted array, with NumPy's answer beside the tape."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.core.matching.tapes import Builder

KINDS = (
    "reshape", "permute", "broadcast", "pad", "slice", "reverse", "concat", "unfold", "strided", "gather",
    "stack", "zeros", "interior", "join",
)  # fmt: skip


def random_chain(seed: int, length: int) -> tuple[Builder, int, dict[int, np.ndarray]]:
    """Builds a tape of one input and up to `length` movement ops; gives the last value and what each step holds."""
    rng = np.random.default_rng(seed)
    pick = lambda *a: int(rng.choice(a))  # noqa: E731
    shape = tuple(pick(1, 2, 2, 3, 4, 6) for _ in range(pick(1, 2, 3, 4)))
    build = Builder()
    value = build.input("i64", shape)
    array = np.arange(1, array_size(shape) + 1).reshape(shape)
    arrays = {value: array}
    for _ in range(length):
        step = _random_step(build, value, array, rng)
        if step is None or step[1].size > 3000 or step[1].ndim > 7 or step[1].size == 0:
            continue
        value, array = step
        arrays[value] = array
    return build, value, arrays


def array_size(shape: tuple[int, ...]) -> int:
    return int(np.prod(shape, dtype=np.int64))


def _random_step(build: Builder, x: int, a: np.ndarray, rng: np.random.Generator) -> tuple[int, np.ndarray] | None:
    pick = lambda *c: int(rng.choice(c))  # noqa: E731
    kind = KINDS[int(rng.integers(len(KINDS)))]
    rank = a.ndim
    axis = int(rng.integers(rank)) if rank else 0
    if rank == 0 and kind not in ("reshape", "broadcast"):
        return None
    n = a.shape[axis] if rank else 1
    if kind == "reshape":
        shape = _factored(a.size, rng)
        return build.op("reshape", [x], shape=shape), a.reshape(shape)
    if kind == "permute":
        order = tuple(int(k) for k in rng.permutation(rank))
        return build.op("permute", [x], order=order), a.transpose(order)
    if kind == "broadcast":
        lead = tuple(pick(1, 2) for _ in range(pick(0, 0, 1)))
        shape = lead + tuple(pick(1, 2, 3) if e == 1 else e for e in a.shape)
        return build.op("broadcast", [x], shape=shape), np.broadcast_to(a, shape)
    if kind in ("pad", "interior"):
        low = [pick(-1, 0, 0, 1, 2) if e > 2 else pick(0, 1) for e in a.shape]
        high = [pick(-1, 0, 0, 1, 3) if e > 2 else pick(0, 0, 2) for e in a.shape]
        interior = [pick(0, 0, 1, 2) if kind == "interior" else 0 for _ in a.shape]
        fill = np.int64(pick(0, 0, -1, -7))
        y = build.op("pad", [x], fill=fill, low=tuple(low), high=tuple(high), interior=tuple(interior))
        return y, padded(a, low, high, interior, fill)
    if kind == "join":  # zeros between elements by padding a unit axis and folding it in
        factor = pick(2, 3)
        at = pick(0, factor - 1)
        y = build.op("reshape", [x], shape=(*a.shape[: axis + 1], 1, *a.shape[axis + 1 :]))
        low = [0] * (rank + 1)
        high = [0] * (rank + 1)
        low[axis + 1], high[axis + 1] = at, factor - 1 - at
        fill = np.int64(pick(0, 0, -1))
        y = build.op("pad", [y], fill=fill, low=tuple(low), high=tuple(high), interior=(0,) * (rank + 1))
        shape = (*a.shape[:axis], n * factor, *a.shape[axis + 1 :])
        b = padded(a.reshape((*a.shape[: axis + 1], 1, *a.shape[axis + 1 :])), low, high, [0] * (rank + 1), fill)
        return build.op("reshape", [y], shape=shape), b.reshape(shape)
    if kind == "slice":
        start = [int(rng.integers(e)) if pick(0, 1) else 0 for e in a.shape]
        step = [pick(1, 1, 2, 3) for _ in a.shape]
        stop = [int(rng.integers(s + 1, e + 1)) if pick(0, 1) else e for s, e in zip(start, a.shape, strict=True)]
        y = build.op("slice", [x], start=tuple(start), stop=tuple(stop), step=tuple(step))
        return y, a[tuple(map(slice, start, stop, step))]
    if kind == "reverse":
        axes = tuple(k for k in range(rank) if pick(0, 1))
        return build.op("reverse", [x], axes=axes), np.flip(a, axes)
    if kind in ("concat", "stack"):  # pieces of one value: a grid, a roll, a repetition
        count = pick(2, 2, 3, 4)
        if kind == "stack":
            width = int(rng.integers(1, n + 1))
            first = [int(rng.integers(0, n - width + 1))] * count
            if pick(0, 1) and n - width >= count - 1:
                first = list(range(count))
            cuts = [(f, f + width) for f in first]
        else:
            at = sorted(int(rng.integers(0, n + 1)) for _ in range(count - 1))
            cuts = [(s, t) for s, t in zip([0, *at], [*at, n], strict=True) if s < t]
            if pick(0, 0, 1):
                cuts = cuts[::-1]
        pieces, arrays = [], []
        for s, t in cuts:
            start = [0] * rank
            stop = list(a.shape)
            start[axis], stop[axis] = s, t
            pieces.append(build.op("slice", [x], start=tuple(start), stop=tuple(stop), step=(1,) * rank))
            arrays.append(a[tuple(map(slice, start, stop))])
        return build.op("concat", pieces, axis=axis), np.concatenate(arrays, axis)
    if kind == "zeros":
        shape = list(a.shape)
        shape[axis] = pick(1, 2)
        fill = np.int64(pick(0, -5))
        zeros = build.constant(fill, "i64", tuple(shape))
        block = np.full(shape, fill)
        if pick(0, 1):
            return build.op("concat", [zeros, x], axis=axis), np.concatenate([block, a], axis)
        return build.op("concat", [zeros, x, zeros], axis=axis), np.concatenate([block, a, block], axis)
    if kind == "unfold":
        window, stride, dilation = pick(1, 2, 3), pick(1, 2), pick(1, 1, 2)
        count = (n - dilation * (window - 1) - 1) // stride + 1
        if count < 1:
            return None
        table = np.arange(count)[:, None] * stride + np.arange(window) * dilation
        y = build.op("unfold", [x], axis=axis, size=window, step=stride, dilation=dilation)
        return y, np.moveaxis(np.take(a, table, axis), axis + 1, -1)
    if kind == "strided":
        rank_out = pick(1, 2, 3)
        shape = tuple(pick(1, 2, 3, 4) for _ in range(rank_out))
        choices = [0, 1, 2, -1, *(int(np.prod(a.shape[k:])) for k in range(rank))]
        strides = tuple(int(rng.choice(choices)) for _ in shape)
        low = sum(min(s * (e - 1), 0) for s, e in zip(strides, shape, strict=True))
        high = sum(max(s * (e - 1), 0) for s, e in zip(strides, shape, strict=True))
        if high - low >= a.size:
            return None
        offset = int(rng.integers(-low, a.size - high))
        flat = np.full(shape, offset)
        for k, (e, s) in enumerate(zip(shape, strides, strict=True)):
            flat = flat + (np.arange(e) * s).reshape([-1 if i == k else 1 for i in range(rank_out)])
        return build.op("strided", [x], shape=shape, strides=strides, offset=offset), a.reshape(-1)[flat]
    assert kind == "gather"
    style = pick(0, 1, 2)
    if style == 0:
        table = np.arange(0, n, pick(1, 2))
    elif style == 1:
        window = int(rng.integers(1, n + 1))
        table = np.arange(n - window + 1)[:, None] + np.arange(window)
    else:
        table = rng.integers(0, n, size=pick(1, 2, 4))
    indices = build.constant(np.ascontiguousarray(table), "i64", table.shape)
    return build.op("gather", [x, indices], axis=axis), np.take(a, table, axis)


def padded(a: np.ndarray, low: Any, high: Any, interior: Any, fill: Any) -> np.ndarray:
    """Pads by scattering into a large filled array, then cropping what is negative."""
    reach = [(e - 1) * (q + 1) + 1 for e, q in zip(a.shape, interior, strict=True)]
    whole = np.full([max(lo, 0) + r + max(h, 0) for lo, r, h in zip(low, reach, high, strict=True)], fill, a.dtype)
    at = tuple(slice(max(lo, 0), max(lo, 0) + r, q + 1) for lo, r, q in zip(low, reach, interior, strict=True))
    whole[at] = a
    crop = tuple(slice(max(-lo, 0), e - max(-h, 0)) for lo, h, e in zip(low, high, whole.shape, strict=True))
    return whole[crop]


def _factored(count: int, rng: np.random.Generator) -> tuple[int, ...]:
    shape: list[int] = []
    rest = count
    while rest > 1 and len(shape) < 5:
        divisors = [d for d in range(1, rest + 1) if rest % d == 0]
        shape.append(int(rng.choice(divisors)))
        rest //= shape[-1]
    return (*shape, rest)
