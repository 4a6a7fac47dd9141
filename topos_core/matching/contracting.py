"""Products of matrices of field elements, by matrix products of doubles that are exact."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from topos_core.matching.field import Element, P, Q

LONGEST: Final = 1 << 20
"""Terms of a sum whose halves, products below 2^32, stay exact in a double."""
_HALF: Final = 16


def contracted(left: Element, right: Element, inner: int, depth: int) -> Element:
    """Gives the sum over the axis in front of `depth` others of products; elements are finite, `inner` at most `LONGEST`."""
    p, q = (
        None if a is None or b is None else _contracted(a, b, inner, depth, modulus)
        for a, b, modulus in ((left.p, right.p, P), (left.q, right.q, Q))
    )
    return Element(p, q)


def work_of(left: tuple[int, ...], right: tuple[int, ...], inner: int) -> int:
    """Counts the products of two shapes of lanes."""
    shape = np.broadcast_shapes(left, right)
    return max(math.prod(shape), inner)


def _contracted(a: np.ndarray, b: np.ndarray, inner: int, depth: int, modulus: int) -> np.ndarray:
    a, b = (lane.reshape((1,) * (depth + 1 - lane.ndim) + lane.shape) for lane in (a, b))
    a, b = (np.broadcast_to(lane, (inner, *lane.shape[1:])) for lane in (a, b))
    axes = range(1, depth + 1)
    shared = [k for k in axes if a.shape[k] > 1 and b.shape[k] > 1]
    rows = [k for k in axes if a.shape[k] > 1 and b.shape[k] == 1]
    columns = [k for k in axes if a.shape[k] == 1 and b.shape[k] > 1]
    neither = [k for k in axes if a.shape[k] == b.shape[k] == 1]
    batch, height, width = (math.prod(max(a.shape[k], b.shape[k]) for k in some) for some in (shared, rows, columns))
    left = a.transpose(*shared, *rows, 0, *columns, *neither).reshape(batch, height, inner)
    right = b.transpose(*shared, 0, *columns, *rows, *neither).reshape(batch, inner, width)
    order = [*shared, *rows, *columns, *neither]
    shape = [max(a.shape[k], b.shape[k]) for k in order]
    back = [order.index(k) for k in axes]
    return _product(left, right, modulus).reshape(shape).transpose(back)


def _product(a: np.ndarray, b: np.ndarray, modulus: int) -> np.ndarray:
    """Multiplies matrices of residues by their upper and lower halves."""
    mask = (1 << _HALF) - 1
    high_a, low_a, high_b, low_b = (half.astype(np.float64) for lane in (a, b) for half in (lane >> _HALF, lane & mask))
    result = np.zeros((), np.int64)
    for x, y, place in ((high_a, high_b, 2), (high_a, low_b, 1), (low_a, high_b, 1), (low_a, low_b, 0)):
        part = (x @ y).astype(np.int64) % modulus
        result = (result + part * (pow(2, _HALF * place, modulus))) % modulus
    return np.asarray(result)
