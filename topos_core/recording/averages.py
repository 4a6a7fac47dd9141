"""Means and variances with NumPy's dtypes: the mean of f16 runs in f32, its variance does not; bf16's both run in f32."""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np

from topos_core.recording import constant, elementwise, formulas, movement, reductions
from topos_core.recording.axes import one_axis, some_axes
from topos_core.recording.recorder import recorder_of
from topos_core.recording.reductions import ABSENT, checked, kept, plain_sum
from topos_core.recording.value import Value
from topos_core.tape.type import FLOATS, numpy_dtype


def mean(
    x: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, where: Any = True
) -> Value:
    """Records np.mean: a sum and a division by the count."""
    value = checked("mean", x, out, where)
    axes = some_axes(value, axis)
    halved = value.type.dtype in ("f16", "bf16") and dtype is None
    wide = elementwise.cast(value, _mean_dtype(value, dtype))
    total = kept(wide, _masked_sum(wide, axes, where), axes, keepdims)
    result = elementwise.apply(np.divide, (total, _count(wide, axes, where, keepdims)))
    return elementwise.cast(result, value.type.dtype) if halved else result


def var(
    x: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: float = 0, keepdims: Any = False, *,
    where: Any = True, mean: Any = ABSENT, correction: Any = ABSENT,
) -> Value:  # fmt: skip
    """Records np.var in NumPy's order: mean with kept axes, centred, squared, summed, divided by max(n - ddof, 0)."""
    value = checked("var", x, out, where)
    axes = some_axes(value, axis)
    own = value.type.dtype
    target = (
        constant.dtype_named(value.recorder, dtype)
        if dtype is not None
        else {"bf16": "f32"}.get(own, own if own in FLOATS else "f64")
    )
    wide = elementwise.cast(value, target)
    centre = mean
    if mean is ABSENT:
        total = kept(wide, _masked_sum(wide, axes, where), axes, True)
        centre = _divided(total, _count(wide, axes, where, True))
    centred = elementwise.apply(np.subtract, (wide, centre))
    squares = elementwise.apply(np.multiply, (centred, centred))
    total = kept(wide, _masked_sum(squares, axes, where), axes, keepdims)
    freedom = ddof if correction is ABSENT else correction
    count = _count(wide, axes, where, keepdims)
    divisor = builtins.max(count - freedom, 0) if not isinstance(count, Value) else np.maximum(count - freedom, 0)
    result = _divided(total, divisor)
    return elementwise.cast(result, "bf16") if own == "bf16" and dtype is None else result


def std(
    x: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: float = 0,
    keepdims: Any = False,
    **keywords: Any,
) -> Value:
    """Records np.std: the root of the variance."""
    return elementwise.apply(np.sqrt, (var(x, axis, dtype, out, ddof, keepdims, **keywords),))


def average(x: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: Any = False) -> Any:
    """Records np.average."""
    recorder = recorder_of(x, weights)
    value = constant.lift(recorder, x)
    if weights is None:
        result = mean(value, axis, keepdims=keepdims)
        if not returned:
            return result
        count = math.prod(value.type.shape[at] for at in some_axes(value, axis))
        return result, constant.splat(recorder, count, result.type.dtype, result.type.shape)
    weight = constant.lift(recorder, weights)
    if weight.type.shape != value.type.shape:
        if weight.ndim != 1 or axis is None:
            raise recorder.error(
                f"average: weights {weight.type} do not fit {value.type}; give one per element, or one axis and a vector"
            )
        at = one_axis(value, axis)
        weight = movement.spread(
            movement.reshape(weight, tuple(weight.size if k == at else 1 for k in range(value.ndim))), value.type.shape
        )
    dtype = elementwise.common(recorder, (value, weight))
    dtype = dtype if dtype in FLOATS else "f64"
    scale = reductions.sum(weight, axis, dtype=numpy_dtype(dtype), keepdims=keepdims)
    product = elementwise.apply(np.multiply, (elementwise.cast(value, dtype), elementwise.cast(weight, dtype)))
    result = elementwise.apply(np.divide, (reductions.sum(product, axis, keepdims=keepdims), scale))
    return (result, scale) if returned else result


def nansum(x: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False) -> Value:
    """Records np.nansum: NaN counts as 0."""
    value = checked("nansum", x, out, True)
    return reductions.sum(elementwise.select(formulas.isnan(value), 0, value), axis, dtype, None, keepdims)


def nanmean(x: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False) -> Value:
    """Records np.nanmean: NaN is left out."""
    value = checked("nanmean", x, out, True)
    return mean(value, axis, dtype, None, keepdims, where=formulas.logical_not(formulas.isnan(value)))


def _masked_sum(x: Value, axes: tuple[int, ...], where: Any) -> Value:
    masked = x if where is True or where is ABSENT else elementwise.cast(elementwise.select(where, x, 0), x.type.dtype)
    return plain_sum(masked, axes) if axes else masked


def _count(x: Value, axes: tuple[int, ...], where: Any, keepdims: Any) -> Any:
    """Counts what is averaged: a number, or a value where a mask decides."""
    if where is True or where is ABSENT:
        return math.prod(x.type.shape[at] for at in axes)
    mask = constant.lift_as(
        x.recorder,
        formulas.nonzero(where) if isinstance(where, Value) else np.not_equal(where, 0),
        "bool",
        x.type.shape,
    )
    return kept(x, plain_sum(elementwise.cast(mask, x.type.dtype), axes), axes, keepdims)


def _divided(total: Value, count: Any) -> Value:
    """Divides f16 by counts that f16 cannot hold in f32: NumPy divides by an integer and rounds once."""
    if total.type.dtype == "f16" and (isinstance(count, Value) or count > 2048):
        return elementwise.cast(elementwise.apply(np.divide, (elementwise.cast(total, "f32"), count)), "f16")
    return elementwise.apply(np.divide, (total, count))


def _mean_dtype(x: Value, dtype: Any) -> str:
    if dtype is not None:
        return constant.dtype_named(x.recorder, dtype)
    return {"f16": "f32", "bf16": "f32", "f32": "f32"}.get(x.type.dtype, "f64")
