"""Reductions, and pools as reductions of windows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from topos_core.importers.jax_jaxpr.equation import Equation, Translate, Unsupported
from topos_core.recording import elementwise, movement, reductions, windows
from topos_core.recording.value import Value
from topos_core.tape.type import FLOATS


def _sum(equation: Equation) -> Value:
    axes = tuple(equation.params["axes"])
    return reductions.plain_sum(equation.x, axes) if axes else equation.x


def _reduce(name: str) -> Translate:
    def translate(equation: Equation) -> Value:
        axes = tuple(int(each) for each in equation.params["axes"])
        x = equation.x
        if not axes:
            return x
        return elementwise.cast(getattr(x, name)(axis=axes), x.type.dtype)

    return translate


def _argument(name: str) -> Translate:
    def translate(equation: Equation) -> Value:
        (axis,) = equation.params["axes"]
        return elementwise.cast(getattr(equation.x, name)(axis), equation.result.dtype)

    return translate


def _running_sum(equation: Equation) -> Value:
    x, axis = equation.x, equation.params["axis"]
    backwards = equation.params.get("reverse", False)
    turned = movement.flip(x, axis) if backwards else x
    result = elementwise.cast(turned.cumsum(axis, dtype=x.dtype), x.type.dtype)
    return movement.flip(result, axis) if backwards else result


def _window(name: str) -> Translate:
    def translate(equation: Equation) -> Value:
        x, params = equation.x, equation.params
        sizes, strides = params["window_dimensions"], params["window_strides"]
        dilations = params.get("window_dilation") or (1,) * x.ndim
        between = tuple(each - 1 for each in params.get("base_dilation") or (1,) * x.ndim)
        low, high = zip(*params["padding"], strict=True) if x.ndim else ((), ())
        fill: Any = {"sum": 0, "prod": 1, "all": True, "any": False}.get(name)
        if name == "sum" and "start" in params:
            fill = params["start"]
        if fill is None:
            fill = -math.inf if name == "max" else math.inf
            if x.type.dtype not in FLOATS:
                if x.type.dtype == "bool":
                    raise Unsupported("it pools bools")
                limits = np.iinfo(x.dtype)
                fill = limits.min if name == "max" else limits.max
        padded = movement.pad_with(x, low, high, fill, between)
        count = 0
        for axis, (size, stride, dilation) in enumerate(zip(sizes, strides, dilations, strict=True)):
            if size > 1:
                padded = windows.unfold(padded, axis, size, stride, dilation)
                count += 1
            elif stride > 1:
                step = [1] * padded.ndim
                step[axis] = stride
                padded = movement.cut(padded, [0] * padded.ndim, padded.shape, step)
        if not count:
            return padded
        axes = tuple(range(padded.ndim - count, padded.ndim))
        if name == "sum":
            return reductions.plain_sum(padded, axes)
        return elementwise.cast(getattr(padded, name)(axis=axes), x.type.dtype)

    return translate


PRIMITIVES: Final[Mapping[str, Translate]] = {
    "reduce_sum": _sum, "reduce_max": _reduce("max"), "reduce_min": _reduce("min"), "reduce_prod": _reduce("prod"),
    "reduce_and": _reduce("all"), "reduce_or": _reduce("any"), "argmax": _argument("argmax"),
    "argmin": _argument("argmin"), "cumsum": _running_sum, "reduce_window_max": _window("max"),
    "reduce_window_min": _window("min"), "reduce_window_sum": _window("sum"), "reduce_window_prod": _window("prod"),
    "reduce_window_and": _window("all"), "reduce_window_or": _window("any"),
}  # fmt: skip
