"""Reductions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from topos_core.importers.onnx_model.node import Node, Translate, Unsupported
from topos_core.recording import elementwise, movement, reductions
from topos_core.recording.value import Value
from topos_core.tape.type import FLOATS

Reduce = Callable[[Value, tuple[int, ...]], Value]


def _over(reduce: Reduce) -> Translate:
    def translate(node: Node) -> Any:
        x = node.x()
        axes = node.numbers("axes", 1)
        if not axes and not node.attribute("noop_with_empty_axes", 0):
            axes = list(range(x.ndim))
        chosen = tuple(sorted({node.axis(each, x.ndim) for each in axes or ()}))
        result = reduce(x, chosen)
        if not node.attribute("keepdims", 1):
            return result
        return movement.reshape(result, tuple(1 if at in chosen else extent for at, extent in enumerate(x.shape)))

    return translate


def _sum(x: Value, axes: tuple[int, ...]) -> Any:
    return reductions.plain_sum(x, axes) if axes else x


def _mean(x: Value, axes: tuple[int, ...]) -> Any:
    if x.type.dtype in FLOATS:
        return x.mean(axis=axes) if axes else x
    count = math.prod(x.shape[at] for at in axes)
    total = _sum(x, axes)
    return total.recorder.record("div", (total, np.full_like(total, count)))


def _prod(x: Value, axes: tuple[int, ...]) -> Any:
    return elementwise.cast(x.prod(axis=axes), x.type.dtype) if axes else x


def _extreme(name: str) -> Reduce:
    def reduce(x: Value, axes: tuple[int, ...]) -> Any:
        if not axes:
            return x
        keywords: dict[str, Any] = {}
        if not math.prod(x.shape[at] for at in axes):
            keywords["initial"] = _least(x) if name == "max" else _greatest(x)
        return getattr(x, name)(axis=axes, **keywords)

    return reduce


def _least(x: Value) -> Any:
    return -math.inf if x.type.dtype in FLOATS else False if x.type.dtype == "bool" else int(np.iinfo(x.dtype).min)


def _greatest(x: Value) -> Any:
    return math.inf if x.type.dtype in FLOATS else True if x.type.dtype == "bool" else int(np.iinfo(x.dtype).max)


def _root(x: Value) -> Any:
    return elementwise.cast(elementwise.apply(np.sqrt, (x,)), x.type.dtype)


def _logarithm(x: Value) -> Any:
    return elementwise.cast(elementwise.apply(np.log, (x,)), x.type.dtype)


def _log_sum_exp(x: Value, axes: tuple[int, ...]) -> Any:
    if not axes:
        return x
    if x.type.dtype not in FLOATS or not math.prod(x.shape[at] for at in axes):
        return _logarithm(_sum(elementwise.cast(elementwise.apply(np.exp, (x,)), x.type.dtype), axes))
    return reductions.logsumexp(x, axes)


def _argument(name: str) -> Translate:
    def translate(node: Node) -> Any:
        x = node.x()
        axis = node.axis(node.attribute("axis", 0), x.ndim)
        last = node.attribute("select_last_index", 0)
        found: Any = getattr(movement.flip(x, axis) if last else x, name)(axis)
        if last:
            found = x.shape[axis] - 1 - found
        return np.expand_dims(found, axis) if node.attribute("keepdims", 1) else found

    return translate


def _cumulative_sum(node: Node) -> Any:
    x = node.x()
    axis = node.axis(int(node.known(1, "axis").reshape(-1)[0]), x.ndim)
    value = movement.flip(x, axis) if node.attribute("reverse", 0) else x
    if node.attribute("exclusive", 0):
        low, high = [0] * x.ndim, [0] * x.ndim
        low[axis], high[axis] = 1, -1
        value = movement.pad_with(value, low, high, 0)
    result = elementwise.cast(value.cumsum(axis, dtype=x.dtype), x.type.dtype)
    return movement.flip(result, axis) if node.attribute("reverse", 0) else result


def _lp_normalization(node: Node) -> Any:
    x, p = node.x(), node.attribute("p", 2)
    axis = node.axis(node.attribute("axis", -1), x.ndim)
    if p not in (1, 2):
        raise Unsupported(f"its p is {p}; 1 and 2 are defined")
    norm = abs(x).sum(axis=axis, keepdims=True) if p == 1 else np.sqrt((x * x).sum(axis=axis, keepdims=True))
    return np.where(norm == 0, 0, x / norm)


OPERATORS: Final[Mapping[str, Translate]] = {
    "ReduceSum": _over(_sum), "ReduceMean": _over(_mean), "ReduceProd": _over(_prod), "ReduceMax": _over(_extreme("max")),
    "ReduceMin": _over(_extreme("min")), "ReduceL1": _over(lambda x, axes: _sum(abs(x), axes)),
    "ReduceL2": _over(lambda x, axes: _root(_sum(x * x, axes))),
    "ReduceSumSquare": _over(lambda x, axes: _sum(x * x, axes)),
    "ReduceLogSum": _over(lambda x, axes: _logarithm(_sum(x, axes))), "ReduceLogSumExp": _over(_log_sum_exp),
    "ArgMax": _argument("argmax"), "ArgMin": _argument("argmin"), "CumSum": _cumulative_sum,
    "LpNormalization": _lp_normalization,
}  # fmt: skip
