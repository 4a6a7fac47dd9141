"""Reducers of more than one op, told by what they compute: their bodies are evaluated on corner values of every kind.

A body that picks the pair with the greatest value, then the lowest index, is the same on all pairs of a few values of every
kind (infinities, NaN, zeros, equal ones) exactly where it is on all values, since such a body compares and selects only.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

import numpy as np

from topos_core.importers.jax_jaxpr.equation import Unsupported

_COMPARE: Final[Mapping[str, Callable[..., Any]]] = {
    "EQ": np.equal, "NE": np.not_equal, "LT": np.less, "LE": np.less_equal, "GT": np.greater, "GE": np.greater_equal,
}  # fmt: skip
_PLAIN: Final[Mapping[str, Callable[..., Any]]] = {
    "and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor, "not": np.logical_not, "maximum": np.maximum,
    "minimum": np.minimum, "select": np.where,
}  # fmt: skip


def picked(operation: Any, dtype: np.dtype) -> Literal["argmax", "argmin"]:
    """Says which element a reducer of (value, index) pairs picks.

    Raises:
        Unsupported: It picks neither the greatest nor the smallest, NaN above all and the first of equals.
    """
    values, places = _corners(dtype), np.arange(3)
    left, left_at, right, right_at = (
        np.array(each) for each in zip(*itertools.product(values, places, values, places), strict=True)
    )
    earlier = left_at < right_at  # a reduction keeps the order of its elements, however it groups them
    left, left_at, right, right_at = (each[earlier] for each in (left, left_at, right, right_at))
    with np.errstate(all="ignore"):
        found = _evaluated(operation.regions[0].blocks[0], (left, left_at, right, right_at))
    for name, better in (("argmax", np.greater), ("argmin", np.less)):
        wins = better(left, right) | (_nan(left) & ~_nan(right))
        ties = (left == right) | (_nan(left) & _nan(right))
        takes = wins | (ties & (left_at < right_at))
        expected = np.where(takes, left, right), np.where(takes, left_at, right_at)
        if all(np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in zip(found, expected, strict=True)):
            return name  # type: ignore[return-value]  # one of the two above
    raise Unsupported("its reducer picks neither the first greatest nor the first smallest element")


def _corners(dtype: np.dtype) -> np.ndarray:
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind in "iu":
        return np.array([np.iinfo(dtype).min, 0, 1, np.iinfo(dtype).max], dtype)
    return np.array([-np.inf, -1.0, 0.0, 2.0, np.inf, np.nan], np.float64)


def _nan(array: np.ndarray) -> np.ndarray:
    return np.isnan(array) if array.dtype.kind == "f" else np.zeros(array.shape, bool)


def _evaluated(block: Any, arguments: tuple[np.ndarray, ...]) -> list[np.ndarray]:
    held: dict[Any, np.ndarray] = dict(zip(block.arguments, arguments, strict=True))
    for each in block.operations:
        operation = each.operation
        operands = [held[operand] for operand in operation.operands]
        name = operation.name.removeprefix("stablehlo.")
        if name == "return":
            return operands
        if name == "compare" and "TOTALORDER" not in str(operation.attributes):
            direction = str(operation.attributes["comparison_direction"]).rpartition(" ")[2].rstrip(">")
            held[operation.results[0]] = _COMPARE[direction](*operands)
        elif name in _PLAIN:
            held[operation.results[0]] = _PLAIN[name](*operands)
        else:
            raise Unsupported(f"its reducer has a {operation.name}")
    raise Unsupported("its reducer returns nothing")
