"""Reductions with NumPy's dtypes: integer sums widen to 64 bits, the mean of f16 runs in f32, its variance does not.

bf16, which NumPy does not know, accumulates in f32 and takes its mean and variance there.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from topos_core.recording import constant, elementwise, formulas, movement
from topos_core.recording.axes import flattens, one_axis, reduced_axes
from topos_core.recording.recorder import recorder_of
from topos_core.recording.value import Value
from topos_core.tape.type import FLOATS, UNSIGNED

ABSENT = np._NoValue  # what NumPy's wrappers pass for an argument that was not given


def sum(
    x: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = ABSENT,
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
    initial: Any = ABSENT,
    where: Any = True,
) -> Value:
    """Records np.prod."""
    return _accumulated("prod", np.multiply, 1, x, axis, dtype, out, keepdims, initial, where)


def max(
    x: Any, axis: Any = None, out: Any = None, keepdims: Any = False, initial: Any = ABSENT, where: Any = True
) -> Value:
    """Records np.max."""
    return _extreme("max", np.maximum, x, axis, out, keepdims, initial, where)


def min(
    x: Any, axis: Any = None, out: Any = None, keepdims: Any = False, initial: Any = ABSENT, where: Any = True
) -> Value:
    """Records np.min."""
    return _extreme("min", np.minimum, x, axis, out, keepdims, initial, where)


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
    value = checked("argmax", x, out, True)
    flat = flattens(value, axis)
    at = 0 if flat else one_axis(value, axis)
    line = movement.reshape(value, (-1,)) if flat else value
    found = value.recorder.record("argmax", (line,), {"axis": at})
    return kept(value, found, tuple(range(value.ndim)) if flat else (at,), keepdims)


def argmin(x: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Value:
    """Records np.argmin: the argmax of what orders the other way round."""
    value = checked("argmin", x, out, True)
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
    value = checked("cumsum", x, out, True)
    value = elementwise.cast(value, _sum_dtype(value, dtype))
    flat = flattens(value, axis)
    line = movement.reshape(value, (-1,)) if flat else value
    at = 0 if flat else one_axis(value, axis)
    return value.recorder.record("cumsum", (line,), {"axis": at, "accumulate": _running(line)})


def logsumexp(x: Any, axis: Any = None, *, keepdims: bool = False) -> Value:
    """Records log(sum(exp(x))) as one op: the shifted form that neither overflows nor loses."""
    value = constant.lift(recorder_of(x), x)
    axes = reduced_axes(value, axis)
    return kept(value, value.recorder.record("logsumexp", (value,), {"axes": axes}), axes, keepdims)


def ptp(x: Any, axis: Any = None, out: Any = None, keepdims: Any = False) -> Value:
    """Records np.ptp: maximum minus minimum."""
    return elementwise.apply(np.subtract, (max(x, axis, out, keepdims), min(x, axis, out, keepdims)))


def trace(x: Value, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None) -> Value:
    """Records np.trace: the sum of a diagonal."""
    return sum(movement.diagonal(x, offset, axis1, axis2), -1, dtype, out)


def plain_sum(x: Value, axes: tuple[int, ...]) -> Value:
    """Records the op itself, in x's own dtype."""
    return x.recorder.record("sum", (x,), {"axes": tuple(sorted(axes)), "accumulate": _running(x)})


def checked(name: str, x: Any, out: Any, where: Any) -> Value:
    """Gives the operand of a reduction as a Value; refuses `out=`."""
    recorder = recorder_of(x, where)
    if out is not None and out is not ABSENT:
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
    value = checked(name, x, out, where)
    axes = reduced_axes(value, axis)
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
        initial is not ABSENT
        and initial is not None
        and not (np.ndim(initial) == 0 and not isinstance(initial, Value) and initial == neutral)
    ):
        result = elementwise.cast(elementwise.apply(ufunc, (result, initial)), value.type.dtype)
    return kept(reduced, result, axes, keepdims)


def _extreme(name: str, ufunc: np.ufunc, x: Any, axis: Any, out: Any, keepdims: Any, initial: Any, where: Any) -> Value:
    value = checked(name, x, out, where)
    axes = reduced_axes(value, axis)
    given = initial is not ABSENT and initial is not None
    if where is not True and where is not ABSENT:
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
    return kept(value, result, axes, keepdims)


def _truth(name: str, hide: np.ufunc, hidden: bool, x: Any, axis: Any, out: Any, keepdims: Any, where: Any) -> Value:
    """Masked elements become what changes nothing: False under any, True under all."""
    value = checked("any" if name == "max" else "all", x, out, where)
    mask = formulas.nonzero(value)
    if where is not True:
        shown = where if hidden else np.logical_not(where)
        mask = elementwise.apply(hide, (mask, shown))
    axes = reduced_axes(mask, axis)
    shape = tuple(extent for at, extent in enumerate(mask.type.shape) if at not in axes)
    if not axes:
        return formulas.fresh(mask)
    if not math.prod(mask.type.shape[at] for at in axes):
        return kept(mask, constant.splat(mask.recorder, name == "min", "bool", shape), axes, keepdims)
    return kept(mask, mask.recorder.record(name, (mask,), {"axes": axes}), axes, keepdims)


def kept(x: Value, result: Value, axes: tuple[int, ...], keepdims: Any) -> Value:
    """Puts the reduced axes of x back with extent 1 where `keepdims` is True."""
    if keepdims is not True and not (isinstance(keepdims, np.bool_) and bool(keepdims)):
        return result
    return movement.reshape(result, tuple(1 if at in axes else extent for at, extent in enumerate(x.type.shape)))


def _sum_dtype(x: Value, dtype: Any) -> str:
    """NumPy widens integers that are narrower than 64 bits."""
    if dtype is not None and dtype is not ABSENT:
        return constant.dtype_named(x.recorder, dtype)
    if x.type.dtype in FLOATS:
        return x.type.dtype
    return "u64" if x.type.dtype in UNSIGNED else "i64"


def _running(x: Value) -> str:
    return "f32" if x.type.dtype == "bf16" else x.type.dtype
