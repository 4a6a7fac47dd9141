"""Pooling against loops over every window."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.core.nn.check import check, numbers
from topos_core import nn

POOLS: dict[str, Any] = {"max": nn.max_pool, "min": nn.min_pool, "sum": nn.sum_pool, "avg": nn.avg_pool}


def reference(kind, x, size, stride, pads, dilation, count_padding=True):
    """Looks at the elements of each window that exist."""
    rank = len(size)
    lead, spatial = x.shape[: x.ndim - rank], x.shape[x.ndim - rank :]
    positions = [
        (e + sum(p) - d * (k - 1) - 1) // s + 1
        for e, p, k, s, d in zip(spatial, pads, size, stride, dilation, strict=True)
    ]
    y = np.zeros((*lead, *positions))
    for place in np.ndindex(*positions):
        elements = []
        for tap in np.ndindex(*size):
            at = tuple(
                p * s + t * d - pad[0] for p, s, t, d, pad in zip(place, stride, tap, dilation, pads, strict=True)
            )
            if all(0 <= a < e for a, e in zip(at, spatial, strict=True)):
                elements.append(x[(..., *at)].astype("f8"))
        found = np.stack(elements)
        count = np.prod(size) if count_padding else len(elements)
        y[(..., *place)] = {"max": found.max(0), "min": found.min(0), "sum": found.sum(0), "avg": found.sum(0) / count}[
            kind
        ]
    return y


CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "overlapping": {"stride": 1},
    "padded": {"padding": 1},
    "asymmetric": {"padding": ((1, 0), (0, 1)), "stride": (2, 1)},
    "dilated": {"dilation": 2, "stride": 1},
}


@pytest.mark.parametrize("kind", POOLS)
@pytest.mark.parametrize("name", CASES)
def test_pools_over_two_axes(kind: str, name: str) -> None:
    options = dict(CASES[name])
    if kind == "avg":
        options.pop("dilation", None)
    x = numbers(2, 3, 6, 7)
    padding = options.get("padding", 0)
    pads = padding if isinstance(padding, tuple) else ((padding, padding),) * 2
    stride = options.get("stride", (2, 2))
    strides = stride if isinstance(stride, tuple) else (stride, stride)
    dilation = (options.get("dilation", 1),) * 2
    wanted = reference(kind, x, (2, 2), strides, pads, dilation)
    check(lambda x: POOLS[kind](x, 2, **options), {"x": x}, wanted)


def test_an_average_can_leave_padding_out() -> None:
    x = numbers(2, 3, 5, 6)
    wanted = reference("avg", x, (3, 2), (2, 2), ((1, 1), (1, 0)), (1, 1), count_padding=False)
    tape = check(lambda x: nn.avg_pool(x, (3, 2), 2, ((1, 1), (1, 0)), count_include_pad=False), {"x": x}, wanted)
    assert not tape.parameters
    assert [op.name for op in tape.ops].count("div") == 1


def test_pools_of_one_and_three_axes_and_of_integers() -> None:
    x = numbers(2, 3, 9)
    check(lambda x: nn.max_pool(x, 3, 2), {"x": x}, reference("max", x, (3,), (2,), ((0, 0),), (1,)))
    x = numbers(1, 2, 4, 5, 6)
    check(lambda x: nn.sum_pool(x, 2), {"x": x}, reference("sum", x, (2,) * 3, (2,) * 3, ((0, 0),) * 3, (1,) * 3))
    n = np.arange(-8, 8, dtype="i4").reshape(1, 1, 4, 4)
    check(lambda n: nn.max_pool(n, 2, 2, 1), {"n": n}, reference("max", n, (2, 2), (2, 2), ((1, 1),) * 2, (1, 1)))


def test_a_window_as_a_tuple_names_its_axes() -> None:
    x = numbers(5, 6)
    check(lambda x: nn.max_pool(x, (2, 3)), {"x": x}, reference("max", x, (2, 3), (2, 3), ((0, 0),) * 2, (1, 1)))
