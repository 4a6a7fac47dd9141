"""Sums, products and maxima of field elements over leading axes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from topos_core.matching.field import BAD, FINITE, HIGH, LOW, Element, P, Q, power_of


def total(a: Element, extents: Sequence[int], depth: int) -> Element:
    """Sums over the axes in front of `depth` others, `extents` from the innermost outwards."""
    p, q = (_summed(lane, extents, depth, modulus) for lane, modulus in ((a.p, P), (a.q, Q)))
    if a.state is None:
        return Element(p, q)
    axes = _leading(a.state, depth)
    bad, high, low = ((a.state == kind).any(axes) for kind in (BAD, HIGH, LOW))
    state = np.where(bad | (high & low), BAD, np.where(high, HIGH, np.where(low, LOW, FINITE)))
    return Element(p, q, state)


def product(a: Element, extents: Sequence[int], depth: int) -> Element:
    """Multiplies over the leading axes; infinities are BAD."""
    p, q = (_multiplied(lane, extents, depth, modulus) for lane, modulus in ((a.p, P), (a.q, Q)))
    if a.state is None:
        return Element(p, q)
    return Element(p, q, np.where((a.state != FINITE).any(_leading(a.state, depth)), BAD, FINITE))


def greatest(a: Element, ranks: np.ndarray, extents: Sequence[int], depth: int) -> Element:
    """Gives the element of the highest rank over the leading axes; BAD where any is BAD."""
    count = max(ranks.ndim - depth, 0)
    if count == 0:
        return a
    inner = ranks.shape[count:]
    best = ranks.reshape(-1, *inner).argmax(0)[None]

    def picked(lane: np.ndarray | None) -> np.ndarray | None:
        if lane is None:
            return None
        spread = np.broadcast_to(lane, ranks.shape).reshape(-1, *inner)
        return np.asarray(np.take_along_axis(spread, best, 0)[0])

    state = picked(a.state)
    if a.state is not None and state is not None:
        bad = np.broadcast_to(a.state == BAD, ranks.shape).reshape(-1, *inner).any(0)
        state = np.where(bad, BAD, state)
    return Element(picked(a.p), picked(a.q), state)


def _summed(lane: np.ndarray | None, extents: Sequence[int], depth: int, modulus: int) -> np.ndarray | None:
    if lane is None:
        return None
    return np.asarray(lane.sum(_leading(lane, depth)) % modulus * (_repeats(lane, extents, depth) % modulus) % modulus)


def _multiplied(lane: np.ndarray | None, extents: Sequence[int], depth: int, modulus: int) -> np.ndarray | None:
    if lane is None:
        return None
    count = len(_leading(lane, depth))
    flat = lane.reshape(-1, *lane.shape[count:])
    result = flat[0]
    for row in flat[1:]:
        result = result * row % modulus
    return power_of(result, _repeats(lane, extents, depth), modulus)


def _leading(lane: np.ndarray, depth: int) -> tuple[int, ...]:
    return tuple(range(max(lane.ndim - depth, 0)))


def _repeats(lane: np.ndarray, extents: Sequence[int], depth: int) -> int:
    """Counts how often an element stands in the sum because its array does not show a reduced axis."""
    shown = lane.shape[: max(lane.ndim - depth, 0)][::-1]
    return math.prod(extent for k, extent in enumerate(extents) if k >= len(shown) or (shown[k] == 1 and extent != 1))
