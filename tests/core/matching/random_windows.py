"""Random convolutions and pools in several spellings: ranks 1 to 3, groups, unit extents, odd pads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view


class Case(NamedTuple):
    name: str
    pattern: str
    function: Callable[..., Any]
    specs: dict[str, str]
    slides: bool  # whether any window, stride or pad is left in it


def windows(x, first, k, s, d):
    """[..., n, ...] -> [..., positions, ..., taps] for consecutive axes from `first`."""
    rank = len(k)
    y = sliding_window_view(
        x, [dd * (kk - 1) + 1 for kk, dd in zip(k, d, strict=True)], axis=tuple(range(first, first + rank))
    )
    at = [slice(None)] * y.ndim
    for i in range(rank):
        at[first + i] = slice(None, None, s[i])
        at[y.ndim - rank + i] = slice(None, None, d[i])
    return y[tuple(at)]


def random_case(seed: int) -> Case:
    rng = np.random.default_rng(seed)
    pick = lambda *a: int(rng.choice(a))  # noqa: E731
    rank = pick(1, 2, 2, 2, 3)
    b, g, c, o = pick(1, 2, 3), pick(1, 1, 2, 3), pick(1, 2, 4), pick(1, 2, 3)
    k = [pick(1, 2, 3) for _ in range(rank)]
    s = [pick(1, 1, 2, 3) for _ in range(rank)]
    d = [pick(1, 1, 2) for _ in range(rank)]
    pads = [(pick(0, 1, 2), pick(0, 0, 1, 3)) for _ in range(rank)]
    n = [max(1, d[i] * (k[i] - 1) + 1 - sum(pads[i]) + pick(0, 1, 4, 5)) for i in range(rank)]
    spatial = [n[i] + sum(pads[i]) for i in range(rank)]
    counts = [(spatial[i] - d[i] * (k[i] - 1) - 1) // s[i] + 1 for i in range(rank)]
    letters, taps = "hwd"[:rank], "ijk"[:rank]
    kind = pick(0, 1, 2, 3, 4, 5)

    def padded(x, first=2, fill=0.0):
        widths = [(0, 0)] * x.ndim
        widths[first : first + rank] = pads
        return np.pad(x, widths, constant_values=fill) if any(p != (0, 0) for p in pads) else x

    if kind == 0:  # im2col, grouped where there are groups

        def function(x, w):
            u = windows(padded(x), 2, k, s, d)
            u = u.reshape(b, g, c, *u.shape[2:])
            u = u.transpose(1, 0, *range(3, 3 + rank), 2, *range(3 + rank, 3 + 2 * rank))
            u = u.reshape(g, b * int(np.prod(counts)), -1)
            y = (u @ w.reshape(g, o, -1).transpose(0, 2, 1)).reshape(g, b, *counts, o)
            return y.transpose(1, 0, rank + 2, *range(2, rank + 2)).reshape(b, g * o, *counts)

    elif kind == 1:  # channels last, einsum
        g = 1

        def function(x, w):
            u = windows(padded(np.moveaxis(x, 1, -1), 1), 1, k, s, d)
            return np.einsum(f"b{letters}c{taps},oc{taps}->b{letters}o", u, w)

    elif kind == 2:  # product and sum, grouped

        def function(x, w):
            u = windows(padded(x).reshape(b, g, 1, c, *spatial), 4, k, s, d)
            return (u * w.reshape(1, g, o, c, *[1] * rank, *k)).sum(axis=(3, *range(4 + rank, 4 + 2 * rank)))

    elif kind == 3:  # shifted slices summed
        g = 1

        def function(x, w):
            y = padded(x)
            total = 0
            for at in np.ndindex(*k):
                cut = tuple(
                    slice(t * dd, t * dd + (m - 1) * ss + 1, ss) for t, dd, ss, m in zip(at, d, s, counts, strict=True)
                )
                total = total + np.einsum(
                    f"bc{letters},oc->bo{letters}",
                    y[(slice(None), slice(None), *cut)],
                    w[(slice(None), slice(None), *at)],
                )
            return total

    else:
        op, fold, fill = ((np.max, np.maximum, -np.inf), (np.min, np.minimum, np.inf), (np.sum, np.add, 0.0))[
            pick(0, 1, 2)
        ]
        average = op is np.sum and pick(0, 1) == 1

        def function(x):
            y = padded(x, 2, fill)
            if kind == 4:
                total = op(windows(y, 2, k, s, d), axis=tuple(range(2 + rank, 2 + 2 * rank)))
            else:
                parts = []
                for at in np.ndindex(*k):
                    cut = tuple(
                        slice(t * dd, t * dd + (m - 1) * ss + 1, ss)
                        for t, dd, ss, m in zip(at, d, s, counts, strict=True)
                    )
                    parts.append(y[(slice(None), slice(None), *cut)])
                rng.shuffle(order := list(range(len(parts))))
                total = parts[order[0]]
                for q in order[1:]:
                    total = fold(total, parts[q])
            return total / float(np.prod(k)) if average else total

        slides = any(kk > 1 and m > 1 for kk, m in zip(k, counts, strict=True))
        return Case(
            f"{seed}: pool {kind} n{n} k{k} s{s} d{d} p{pads}",
            "window_reduce",
            function,
            {"x": spec(b, g * c, *n)},
            slides,
        )
    slides = any((kk > 1 and m > 1) or (ss > 1 and m > 1) for kk, m, ss in zip(k, counts, s, strict=True))
    slides = slides or any(p != (0, 0) for p in pads)
    name = f"{seed}: kind {kind} b{b} g{g} c{c} o{o} n{n} k{k} s{s} d{d} p{pads}"
    return Case(name, "convolution", function, {"x": spec(b, g * c, *n), "w": spec(g * o, c, *k)}, slides)


def random_layout(seed: int) -> Case:
    """An einsum over windows with every operand's axes in random order, and batch, channels or outputs left out."""
    rng = np.random.default_rng(seed)
    pick = lambda *a: int(rng.choice(a))  # noqa: E731
    rank = pick(1, 2, 2, 3)
    extents = {"b": pick(1, 2, 3), "c": pick(1, 2, 4), "o": pick(1, 2, 3), "g": pick(2, 3)}
    letters, taps = "hwd"[:rank], "ijk"[:rank]
    k = dict(zip(letters, (pick(1, 2, 3) for _ in range(rank)), strict=True))
    s = dict(zip(letters, (pick(1, 1, 2) for _ in range(rank)), strict=True))
    pads = dict(zip(letters, ((pick(0, 1), pick(0, 0, 2)) for _ in range(rank)), strict=True))
    n = {a: k[a] + pick(0, 1, 3) for a in letters}
    image = [a for a in "bc" if pick(0, 1, 1, 1)] + list(letters)
    kernel = [a for a in "oc" if (a in image if a == "c" else pick(0, 1, 1, 1))] + list(taps)
    result = [a for a in "bo" if a in image or a in kernel] + list(letters)
    if pick(0, 0, 1) and "c" in image:  # groups on an axis of their own, above the channels
        image.insert(image.index("c"), "g")
        kernel.insert(0, "g")
        result.insert(0, "g")
    fixed = "gc" if "g" in image else ""
    rows = [_shuffled(row, rng, fixed) for row in (image, kernel, result)]

    def function(x, w):
        names = list(rows[0])
        widths = [pads.get(a, (0, 0)) for a in names]
        x = np.pad(x, widths) if any(p != (0, 0) for p in widths) else x
        axes = [names.index(a) for a in letters]
        u = sliding_window_view(x, [k[a] for a in letters], axis=tuple(axes))
        u = u[tuple(slice(None, None, s.get(a, 1)) for a in names)]
        return np.einsum(f"{''.join(names)}{taps},{''.join(rows[1])}->{''.join(rows[2])}", u, w)

    sizes = extents | n | {t: k[a] for a, t in zip(letters, taps, strict=True)}
    counts = {a: (n[a] + sum(pads[a]) - k[a]) // s[a] + 1 for a in letters}
    slides = any(counts[a] > 1 and k[a] > 1 for a in letters)
    name = f"{seed}: {''.join(rows[0])},{''.join(rows[1])}->{''.join(rows[2])} {sizes} s{s} p{pads}"
    specs = {"x": spec(*(sizes[a] for a in rows[0])), "w": spec(*(sizes[a] for a in rows[1]))}
    return Case(name, "convolution", function, specs, slides)


def _shuffled(row: list[str], rng: np.random.Generator, together: str) -> list[str]:
    """Shuffles axes; groups stay right above their channels, else no layout could name them as one number."""
    units = [together if together and a == together[0] and together[1] in row else a for a in row]
    units = [u for u in units if not (together and u == together[1])]
    rng.shuffle(units)
    return list("".join(units))


def spec(*shape: int) -> str:
    return f"f32[{','.join(map(str, shape))}]"
