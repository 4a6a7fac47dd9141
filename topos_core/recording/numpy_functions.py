"""NumPy functions by object, and how each reads its arguments. What is not in the table is refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

from topos_core.recording import (
    averages,
    constant,
    contraction,
    einsum,
    elementwise,
    formulas,
    joining,
    lookup,
    movement,
    norms,
    padding,
    reductions,
    repetition,
    triangles,
    views,
)
from topos_core.recording.axes import some_axes
from topos_core.recording.recorder import recorder_of
from topos_core.recording.value import Value
from topos_core.tape.type import FLOATS, numpy_dtype


@cache
def functions() -> Mapping[Callable[..., Any], Callable[..., Any]]:
    """Maps NumPy functions to recorded meanings."""
    linalg, tricks = np.linalg, np.lib.stride_tricks
    table: dict[Callable[..., Any], Callable[..., Any]] = {
        np.where: elementwise.select, np.select: _select, np.einsum: einsum.einsum,
        np.concatenate: _concatenate, np.stack: joining.stack, np.vstack: joining.vstack, np.hstack: joining.hstack,
        np.dstack: joining.dstack, np.column_stack: joining.column_stack, np.append: joining.append,
        np.block: joining.block, np.meshgrid: joining.meshgrid, np.broadcast_arrays: joining.broadcast_arrays,
        np.atleast_1d: joining.each_atleast(1), np.atleast_2d: joining.each_atleast(2), np.atleast_3d: joining.each_atleast(3),
        np.tensordot: contraction.tensordot, np.dot: contraction.dot, np.inner: contraction.inner,
        np.outer: contraction.outer, np.vdot: contraction.vdot, np.kron: contraction.kron,
        linalg.multi_dot: contraction.multi_dot, linalg.tensordot: contraction.tensordot,
        linalg.matmul: contraction.matmul, linalg.outer: contraction.outer, linalg.vecdot: contraction.vecdot,
        np.take: lookup.take, np.take_along_axis: lookup.take_along_axis, np.average: averages.average,
        np.diff: joining.diff, np.result_type: _result_type, np.clip: elementwise.clip,
    }  # fmt: skip
    of_value: dict[Callable[..., Any], Callable[..., Any]] = {
        np.reshape: _reshape, np.ravel: _ravel, np.transpose: views.transpose, np.swapaxes: views.swapaxes,
        np.moveaxis: views.moveaxis, np.rollaxis: views.rollaxis, np.matrix_transpose: views.matrix_transpose,
        linalg.matrix_transpose: views.matrix_transpose, np.expand_dims: views.expand_dims, np.squeeze: views.squeeze,
        np.broadcast_to: views.broadcast_to, np.flip: views.flip, np.fliplr: views.fliplr, np.flipud: views.flipud,
        np.rot90: views.rot90, np.diagonal: views.diagonal, linalg.diagonal: _matrix_diagonal, np.diag: _diag,
        tricks.sliding_window_view: views.sliding_window_view, np.trace: reductions.trace, linalg.trace: _matrix_trace,
        np.pad: padding.pad, np.roll: repetition.roll, np.tile: repetition.tile, np.repeat: repetition.repeat,
        np.split: _split, np.array_split: _array_split,
        np.hsplit: lambda x, parts: joining.split(x, parts, 0 if x.ndim == 1 else 1),
        np.vsplit: lambda x, parts: joining.split(x, parts, 0), np.dsplit: lambda x, parts: joining.split(x, parts, 2),
        np.tril: lambda m, k=0: triangles.triangle(m, k, upper=False),
        np.triu: lambda m, k=0: triangles.triangle(m, k, upper=True),
        np.sum: reductions.sum, np.prod: reductions.prod, np.max: reductions.max, np.amax: reductions.max,
        np.min: reductions.min, np.amin: reductions.min, np.mean: averages.mean, np.var: averages.var,
        np.std: averages.std, np.any: reductions.any, np.all: reductions.all, np.argmax: reductions.argmax,
        np.argmin: reductions.argmin, np.cumsum: reductions.cumsum, np.ptp: reductions.ptp,
        np.count_nonzero: reductions.count_nonzero, np.nansum: averages.nansum, np.nanmean: averages.nanmean,
        linalg.norm: norms.norm, linalg.vector_norm: _vector_norm, linalg.matrix_norm: _matrix_norm,
        linalg.matrix_power: contraction.matrix_power, np.nan_to_num: _nan_to_num,
        np.round: _round, np.around: _round, np.fix: _fix, np.copy: lambda a, order="K", subok=False: formulas.fresh(a),
        np.zeros_like: _filled(0), np.ones_like: _filled(1), np.full_like: _full_like, np.real: _same,
        np.astype: _astype, np.shape: lambda x: x.type.shape, np.ndim: lambda x: x.ndim, np.size: _size,
        np.iscomplexobj: lambda x: False, np.isrealobj: lambda x: True,
        np.array_repr: _shown, np.array_str: _shown, np.array2string: _shown,
    }  # fmt: skip
    for name, meaning in (("unstack", joining.unstack), ("cumulative_sum", _cumulative_sum)):  # NumPy 2.1 and later
        if hasattr(np, name):
            of_value[getattr(np, name)] = meaning
    return {**table, **{function: _of_value(meaning) for function, meaning in of_value.items()}}


def _of_value(function: Callable[..., Any]) -> Callable[..., Any]:
    """Lifts the first argument: it may be an array where another argument is a Value."""

    def lifted(x: Any, *arguments: Any, **keywords: Any) -> Any:
        value = x if isinstance(x, Value) else constant.lift(recorder_of(x, *arguments, *keywords.values()), x)
        return function(value, *arguments, **keywords)

    return lifted


def _reshape(x: Value, shape: Any = None, order: str = "C", *, newshape: Any = None, copy: bool | None = None) -> Value:
    return views.reshape(x, newshape if shape is None else shape, order, copy=copy)


def _ravel(x: Value, order: str = "C") -> Value:
    return views.reshape(x, (-1,), order)


def _filled(number: Any) -> Callable[..., Value]:
    def function(
        x: Value, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *, device: Any = None
    ) -> Value:
        return _full_like(x, number, dtype, shape=shape)

    return function


def _full_like(
    x: Value,
    fill_value: Any,
    dtype: Any = None,
    order: str = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> Value:
    wanted = x.type.dtype if dtype is None else constant.dtype_named(x.recorder, dtype)
    extents = x.type.shape if shape is None else movement.extents_of(x, shape)
    if isinstance(fill_value, Value) or np.ndim(fill_value):
        return constant.lift_as(x.recorder, fill_value, wanted, extents)
    return constant.splat(x.recorder, numpy_dtype(wanted).type(fill_value), wanted, extents)


def _split(x: Value, indices_or_sections: Any, axis: int = 0) -> list[Value]:
    return joining.split(x, indices_or_sections, axis)


def _array_split(x: Value, indices_or_sections: Any, axis: int = 0) -> list[Value]:
    return joining.split(x, indices_or_sections, axis, uneven=True)


def _diag(x: Value, k: int = 0) -> Value:
    return views.diagonal(x, k) if x.ndim == 2 else triangles.diag(x, k)


def _shown(x: Value, *_: Any, **__: Any) -> str:
    return str(x)


def _result_type(*operands: Any) -> np.dtype:
    return np.result_type(*[x.dtype if isinstance(x, Value) else x for x in operands])


def _nan_to_num(x: Value, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Value:
    if x.type.dtype not in FLOATS:
        return formulas.fresh(x)
    limits = np.finfo(x.dtype) if x.type.dtype != "bf16" else None
    if limits is None:
        raise x.recorder.error("np.nan_to_num of bf16 is not recorded; cast to f32 first")
    high = float(limits.max) if posinf is None else posinf
    low = float(limits.min) if neginf is None else neginf
    result = elementwise.select(formulas.isnan(x), nan, x)
    result = elementwise.select(elementwise.apply(np.equal, (x, np.inf)), high, result)
    return elementwise.select(elementwise.apply(np.equal, (x, -np.inf)), low, result)


def _select(condlist: Any, choicelist: Any, default: Any = 0) -> Value:
    recorder = recorder_of(condlist, choicelist, default)
    if not len(condlist) or len(condlist) != len(choicelist):
        raise recorder.error(
            f"np.select: {len(condlist)} conditions and {len(choicelist)} choices; give as many of both, at least one"
        )
    result = default
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        result = elementwise.select(condition, choice, result)
    return constant.lift(recorder, result)


def _fix(x: Value, out: None = None) -> Value:
    return formulas.trunc(x)


def _same(x: Value, *_: Any, **__: Any) -> Value:
    return x


def _size(x: Value, axis: Any = None) -> int:
    return x.size if axis is None else x.type.shape[axis]


def _astype(x: Value, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Value:
    return elementwise.astype(x, dtype, copy=copy)


def _round(x: Value, decimals: int = 0, out: Any = None) -> Value:
    return elementwise.round_to(x, decimals, out)


def _vector_norm(x: Value, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Value:
    value = x if x.type.dtype in FLOATS else elementwise.cast(x, "f64")
    return norms.vector_norm(value, ord, some_axes(x, axis), keepdims)


def _matrix_norm(x: Value, /, *, keepdims: bool = False, ord: Any = "fro") -> Value:
    return norms.norm(x, ord, (-2, -1), keepdims)


def _matrix_diagonal(x: Value, /, *, offset: int = 0) -> Value:
    return views.diagonal(x, offset, -2, -1)


def _matrix_trace(x: Value, /, *, offset: int = 0, dtype: Any = None) -> Value:
    return reductions.trace(x, offset, -2, -1, dtype)


def _concatenate(
    arrays: Any, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind"
) -> Value:
    return joining.concatenate(arrays, axis, out, dtype=dtype, casting=casting)


def _cumulative_sum(
    x: Value, /, *, axis: Any = None, dtype: Any = None, out: Any = None, include_initial: bool = False
) -> Value:
    if axis is None and x.ndim > 1:
        raise x.recorder.error(f"np.cumulative_sum of {x.type}: name an axis")
    at = 0 if axis is None else axis
    running = reductions.cumsum(x, at, dtype, out)
    if not include_initial:
        return running
    low = [0] * x.ndim
    low[at] = 1
    return movement.pad_with(running, low, [0] * x.ndim, 0)
