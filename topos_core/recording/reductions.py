"""Reductions with NumPy's dtypes: integer sums widen to 64 bits, the mean of f16 runs in f32, its variance does not.

bf16, which NumPy does not know, accumulates in f32 and takes its mean and variance there.
"""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np

from topos_core.recording import constant, elementwise, formulas, movement
from topos_core.recording.axes import one_axis, some_axes
from topos_core.recording.recorder import recorder_of
from topos_core.recording.value import Value
from topos_core.tape.type import FLOATS, UNSIGNED, numpy_dtype

_ABSENT = np._NoValue  # what NumPy's wrappers pass for an argument that was not given


def sum(
    x: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = _ABSENT,
    where: Any = True,
) -> Value:
    """Records np.sum."""
    return _accumulated("sum", np.add, 0, x, axis, dtype, out, keepdims, initial, where)


def prod(
    x: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = _ABSENT,
    where: Any = True,
) -> Value:
    """Records np.prod."""
    return _accumulated("prod", np.multiply, 1, x, axis, dtype, out, keepdims, initial, where)


def max(
    x: Any, axis: Any = None, out: Any = None, keepdims: Any = False, initial: Any = _ABSENT, where: Any = True
) -> Value:
    """Records np.max."""
    return _extreme("max", np.maximum, x, axis, out, keepdims, initial, where)


def min(
    x: Any, axis: Any = None, out: Any = None, keepdims: Any = False, initial: Any = _ABSENT, where: Any = True
) -> Value:
    """Records np.min."""
    return _extreme("min", np.minimum, x, axis, out, keepdims, initial, where)


def mean(
    x: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, where: Any = True
) -> Value:
    """Records np.mean: a sum and a division by the count."""
    value = _checked("mean", x, out, where)
    axes = some_axes(value, axis)
    halved = value.type.dtype in ("f16", "bf16") and dtype is None
    wide = elementwise.cast(value, _mean_dtype(value, dtype))
    total = _kept(wide, _masked_sum(wide, axes, where), axes, keepdims)
    result = elementwise.apply(np.divide, (total, _count(wide, axes, where, keepdims)))
    return elementwise.cast(result, value.type.dtype) if halved else result


def var(
    x: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: float = 0, keepdims: Any = False, *,
    where: Any = True, mean: Any = _ABSENT, correction: Any = _ABSENT,
) -> Value:  # fmt: skip
    """Records np.var in NumPy's order: mean with kept axes, centred, squared, summed, divided by max(n - ddof, 0)."""
    value = _checked("var", x, out, where)
    axes = some_axes(value, axis)
    own = value.type.dtype
    target = (
        constant.dtype_named(value.recorder, dtype)
        if dtype is not None
        else {"bf16": "f32"}.get(own, own if own in FLOATS else "f64")
    )
    wide = elementwise.cast(value, target)
    centre = mean
    if mean is _ABSENT:
        total = _kept(wide, _masked_sum(wide, axes, where), axes, True)
        centre = _divided(total, _count(wide, axes, where, True))
    centred = elementwise.apply(np.subtract, (wide, centre))
    squares = elementwise.apply(np.multiply, (centred, centred))
    total = _kept(wide, _masked_sum(squares, axes, where), axes, keepdims)
    freedom = ddof if correction is _ABSENT else correction
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


def any(x: Any, axis: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True) -> Value:
    """Records np.any: the maximum of `x != 0`."""
    return _truth("max", np.logical_and, True, x, axis, out, keepdims, where)


def all(x: Any, axis: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True) -> Value:
    """Records np.all: the minimum of `x != 0`."""
    return _truth("min", np.logical_or, False, x, axis, out, keepdims, where)


def count_nonzero(x: Any, axis: Any = None, *, keepdims: Any = False) -> Value:
    """Records np.count_nonzero: the sum of `x != 0`."""
    return sum(formulas.nonzero(x), axis, keepdims=keepdims)


def argmax(x: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Value:
    """Records np.argmax."""
    value = _checked("argmax", x, out, True)
    flat = axis is None
    at = 0 if flat else one_axis(value, axis)
    line = movement.reshape(value, (-1,)) if flat else value
    found = value.recorder.record("argmax", (line,), {"axis": at})
    return _kept(value, found, tuple(range(value.ndim)) if flat else (at,), keepdims)


def argmin(x: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Value:
    """Records np.argmin: the argmax of what orders the other way round."""
    value = _checked("argmin", x, out, True)
    dtype = value.type.dtype
    if dtype in FLOATS:
        turned = -value
    elif dtype == "bool":
        turned = formulas.invert(value)
    elif dtype in UNSIGNED:
        turned = int(np.iinfo(value.dtype).max) - value
    else:
        turned = -1 - value  # -value would overflow at the lowest integer
    return argmax(turned, axis, keepdims=keepdims)


def cumsum(x: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Value:
    """Records np.cumsum."""
    value = _checked("cumsum", x, out, True)
    value = elementwise.cast(value, _sum_dtype(value, dtype))
    line = movement.reshape(value, (-1,)) if axis is None else value
    at = 0 if axis is None else one_axis(value, axis)
    return value.recorder.record("cumsum", (line,), {"axis": at, "accumulate": _running(line)})


def logsumexp(x: Any, axis: Any = None, *, keepdims: bool = False) -> Value:
    """Records log(sum(exp(x))) as one op: the shifted form that neither overflows nor loses."""
    value = constant.lift(recorder_of(x), x)
    axes = tuple(sorted(some_axes(value, axis)))
    return _kept(value, value.recorder.record("logsumexp", (value,), {"axes": axes}), axes, keepdims)


def ptp(x: Any, axis: Any = None, out: Any = None, keepdims: Any = False) -> Value:
    """Records np.ptp: maximum minus minimum."""
    return elementwise.apply(np.subtract, (max(x, axis, out, keepdims), min(x, axis, out, keepdims)))


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
    scale = sum(weight, axis, dtype=numpy_dtype(dtype), keepdims=keepdims)
    product = elementwise.apply(np.multiply, (elementwise.cast(value, dtype), elementwise.cast(weight, dtype)))
    result = elementwise.apply(np.divide, (sum(product, axis, keepdims=keepdims), scale))
    return (result, scale) if returned else result


def nansum(x: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False) -> Value:
    """Records np.nansum: NaN counts as 0."""
    value = _checked("nansum", x, out, True)
    return sum(elementwise.select(formulas.isnan(value), 0, value), axis, dtype, None, keepdims)


def nanmean(x: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False) -> Value:
    """Records np.nanmean: NaN is left out."""
    value = _checked("nanmean", x, out, True)
    return mean(value, axis, dtype, None, keepdims, where=formulas.logical_not(formulas.isnan(value)))


def trace(x: Value, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None) -> Value:
    """Records np.trace: the sum of a diagonal."""
    return sum(movement.diagonal(x, offset, axis1, axis2), -1, dtype, out)


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: Any = False) -> Value:
    """Records np.linalg.norm for vectors, and for matrices the norms that need no decomposition."""
    value = constant.lift(recorder_of(x), x)
    if value.type.dtype not in FLOATS:
        value = elementwise.cast(value, "f64")
    axes = some_axes(value, axis)
    if axis is None and ord is not None and value.ndim > 2:
        raise value.recorder.error(f"norm(ord={ord!r}) of {value.type}: name one or two axes")
    if ord is None or (ord in ("fro", "f") and len(axes) == 2) or (ord == 2 and len(axes) == 1):
        return elementwise.apply(np.sqrt, (sum(value * value, axes, keepdims=keepdims),))
    if len(axes) == 1:
        return vector_norm(value, ord, axes, keepdims)
    if len(axes) == 2 and ord in (1, -1, np.inf, -np.inf):
        summed, picked = (axes[0], axes[1]) if abs(ord) == 1 else (axes[1], axes[0])
        lengths = sum(abs(value), summed, keepdims=True)
        found = (max if ord > 0 else min)(lengths, picked, keepdims=True)
        return found if keepdims is True else movement.squeeze(found, axes)
    raise value.recorder.error(
        f"norm(ord={ord!r}) over {len(axes)} axes of {value.type} needs a decomposition; compute it outside"
    )


def vector_norm(value: Value, ord: Any, axes: tuple[int, ...], keepdims: Any) -> Value:
    """Records a norm of all elements along axes."""
    if ord == 2:
        return elementwise.apply(np.sqrt, (sum(value * value, axes, keepdims=keepdims),))
    size = abs(value)
    if ord == np.inf:
        return max(size, axes, keepdims=keepdims)
    if ord == -np.inf:
        return min(size, axes, keepdims=keepdims)
    if ord == 0:
        return elementwise.cast(count_nonzero(value, axes, keepdims=keepdims), value.type.dtype)
    if ord == 1:
        return sum(size, axes, keepdims=keepdims)
    return elementwise.power(sum(elementwise.power(size, ord), axes, keepdims=keepdims), 1.0 / ord)


def plain_sum(x: Value, axes: tuple[int, ...]) -> Value:
    """Records the op itself, in x's own dtype."""
    return x.recorder.record("sum", (x,), {"axes": tuple(sorted(axes)), "accumulate": _running(x)})


def _checked(name: str, x: Any, out: Any, where: Any) -> Value:
    recorder = recorder_of(x, where)
    if out is not None and out is not _ABSENT:
        raise recorder.error(f"np.{name}(out=...) writes into an array; use the returned value")
    return constant.lift(recorder, x)


def _accumulated(
    name: str,
    ufunc: np.ufunc,
    neutral: int,
    x: Any,
    axis: Any,
    dtype: Any,
    out: Any,
    keepdims: Any,
    initial: Any,
    where: Any,
) -> Value:
    value = _checked(name, x, out, where)
    axes = tuple(sorted(some_axes(value, axis)))
    value = elementwise.cast(value, _sum_dtype(value, dtype))
    reduced = value if where is True else elementwise.cast(elementwise.select(where, value, neutral), value.type.dtype)
    if axes or reduced is value:
        result = (
            value.recorder.record(name, (reduced,), {"axes": axes, "accumulate": _running(value)})
            if axes
            else formulas.fresh(reduced)
        )
    else:
        result = reduced
    if (
        initial is not _ABSENT
        and initial is not None
        and not (np.ndim(initial) == 0 and not isinstance(initial, Value) and initial == neutral)
    ):
        result = elementwise.cast(elementwise.apply(ufunc, (result, initial)), value.type.dtype)
    return _kept(reduced, result, axes, keepdims)


def _extreme(name: str, ufunc: np.ufunc, x: Any, axis: Any, out: Any, keepdims: Any, initial: Any, where: Any) -> Value:
    value = _checked(name, x, out, where)
    axes = tuple(sorted(some_axes(value, axis)))
    given = initial is not _ABSENT and initial is not None
    if where is not True and where is not _ABSENT:
        if not given:
            raise value.recorder.error(f"np.{name}(where=...) needs initial=, the value of the masked elements")
        value = elementwise.select(where, value, initial)
    empty = not math.prod(value.type.shape[at] for at in axes)
    if given and empty:
        shape = tuple(extent for at, extent in enumerate(value.type.shape) if at not in axes)
        result = constant.lift_as(value.recorder, initial, value.type.dtype, shape)
    else:
        result = value.recorder.record(name, (value,), {"axes": axes}) if axes else formulas.fresh(value)
        if given:
            result = elementwise.apply(ufunc, (result, initial))
    return _kept(value, result, axes, keepdims)


def _truth(name: str, hide: np.ufunc, hidden: bool, x: Any, axis: Any, out: Any, keepdims: Any, where: Any) -> Value:
    """Masked elements become what changes nothing: False under any, True under all."""
    value = _checked("any" if name == "max" else "all", x, out, where)
    mask = formulas.nonzero(value)
    if where is not True:
        shown = where if hidden else np.logical_not(where)
        mask = elementwise.apply(hide, (mask, shown))
    axes = tuple(sorted(some_axes(mask, axis)))
    shape = tuple(extent for at, extent in enumerate(mask.type.shape) if at not in axes)
    if not axes:
        return formulas.fresh(mask)
    if not math.prod(mask.type.shape[at] for at in axes):
        return _kept(mask, constant.splat(mask.recorder, name == "min", "bool", shape), axes, keepdims)
    return _kept(mask, mask.recorder.record(name, (mask,), {"axes": axes}), axes, keepdims)


def _masked_sum(x: Value, axes: tuple[int, ...], where: Any) -> Value:
    masked = x if where is True or where is _ABSENT else elementwise.cast(elementwise.select(where, x, 0), x.type.dtype)
    return plain_sum(masked, axes) if axes else masked


def _count(x: Value, axes: tuple[int, ...], where: Any, keepdims: Any) -> Any:
    """Counts what is averaged: a number, or a value where a mask decides."""
    if where is True or where is _ABSENT:
        return math.prod(x.type.shape[at] for at in axes)
    mask = constant.lift_as(
        x.recorder,
        formulas.nonzero(where) if isinstance(where, Value) else np.not_equal(where, 0),
        "bool",
        x.type.shape,
    )
    return _kept(x, plain_sum(elementwise.cast(mask, x.type.dtype), axes), axes, keepdims)


def _divided(total: Value, count: Any) -> Value:
    """Divides f16 by counts that f16 cannot hold in f32: NumPy divides by an integer and rounds once."""
    if total.type.dtype == "f16" and (isinstance(count, Value) or count > 2048):
        return elementwise.cast(elementwise.apply(np.divide, (elementwise.cast(total, "f32"), count)), "f16")
    return elementwise.apply(np.divide, (total, count))


def _kept(x: Value, result: Value, axes: tuple[int, ...], keepdims: Any) -> Value:
    if keepdims is not True and not (isinstance(keepdims, np.bool_) and bool(keepdims)):
        return result
    return movement.reshape(result, tuple(1 if at in axes else extent for at, extent in enumerate(x.type.shape)))


def _mean_dtype(x: Value, dtype: Any) -> str:
    if dtype is not None:
        return constant.dtype_named(x.recorder, dtype)
    return {"f16": "f32", "bf16": "f32", "f32": "f32"}.get(x.type.dtype, "f64")


def _sum_dtype(x: Value, dtype: Any) -> str:
    """NumPy widens integers that are narrower than 64 bits."""
    if dtype is not None and dtype is not _ABSENT:
        return constant.dtype_named(x.recorder, dtype)
    if x.type.dtype in FLOATS:
        return x.type.dtype
    return "u64" if x.type.dtype in UNSIGNED else "i64"


def _running(x: Value) -> str:
    return "f32" if x.type.dtype == "bf16" else x.type.dtype
