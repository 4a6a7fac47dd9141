"""NumPy's two protocols as tables: ufuncs and their methods, and functions by object.

A function that is not in the table is an error at the user's expression: nothing is ever computed on placeholders.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

from topos_core.errors import ToposError
from topos_core.recording import (
    constant,
    contraction,
    einsum,
    elementwise,
    formulas,
    indexing,
    joining,
    movement,
    reductions,
    views,
)
from topos_core.recording.axes import some_axes
from topos_core.recording.recorder import Recorder, recorder_of
from topos_core.recording.value import Value
from topos_core.tape.type import FLOATS, numpy_dtype

_ABSENT = np._NoValue

_REMEDIES: Mapping[str, str] = {
    "sort": "there is no op for sorting; compute the order outside and pass it as an input",
    "argsort": "there is no op for sorting; compute the order outside and pass it as an input",
    "median": "there is no op for sorting; compute it outside",
    "nonzero": "the number of indices depends on data; mask with np.where(mask, x, 0)",
    "unique": "the number of results depends on data; compute it outside",
    "allclose": "it answers a Python bool, which does not exist while recording; compare outside",
    "array_equal": "it answers a Python bool, which does not exist while recording; compare outside",
    "linspace": "its ends must be numbers here; write start + (stop - start) * np.linspace(0, 1, n)",
    "empty_like": "its elements are not defined; use np.zeros_like",
    "copyto": "it changes an array in place; use np.where(mask, new, old)",
    "put": "it changes an array in place; use np.where(mask, new, old)",
    "put_along_axis": "it changes an array in place; use np.where(mask, new, old)",
    "fill_diagonal": "it changes an array in place; use np.where(np.eye(n, dtype=bool), new, old)",
    "cumprod": "write np.exp(np.cumsum(np.log(x), axis)) where every element is positive",
    "convolve": "write nn.conv1d",
    "apply_along_axis": "write the function over the whole array with axis=",
    "interp": "there is no op for searching; compute it outside",
    "delete": "write np.concatenate of the slices that stay",
    "insert": "write np.concatenate of the parts",
    "choose": "write np.select or np.where",
    "piecewise": "write np.where(condition, a, b)",
}


def call_ufunc(value: Value, ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """Answers `__array_ufunc__`."""
    recorder = value.recorder
    name = ufunc.__name__
    out = keywords.pop("out", None)
    if out is not None:
        target = "a recorded value" if isinstance(out[0], Value) else "an array that is not recorded"
        raise recorder.error(
            f"np.{name}(out=...), or array += value, writes into {target}; use the returned value: x = x + value"
        )
    for unused in ("order", "subok", "casting"):
        keywords.pop(unused, None)
    dtype = keywords.pop("dtype", None)
    if method == "__call__":
        if keywords.get("where", True) is not True:
            raise recorder.error(
                f"np.{name}(where=...) leaves elements undefined; write np.where(mask, np.{name}(...), other)"
            )
        keywords.pop("where", None)
        if not keywords:
            return elementwise.apply(ufunc, inputs, dtype)
        if name == "vecdot" and set(keywords) == {"axis"}:
            return contraction.vecdot(inputs[0], inputs[1], keywords["axis"])
    elif method == "reduce":
        return _reduce(recorder, ufunc, inputs, dtype, keywords)
    elif method == "accumulate" and ufunc is np.add:
        return reductions.cumsum(inputs[0], keywords.get("axis", inputs[1] if len(inputs) > 1 else 0), dtype)
    elif method == "outer" and not keywords:
        a, b = (constant.lift(recorder, x) for x in inputs)
        return elementwise.apply(ufunc, (movement.reshape(a, (*a.type.shape, *(1,) * b.ndim)), b), dtype)
    shown = "" if method == "__call__" else f".{method}"
    raise recorder.error(
        f"np.{name}{shown}({', '.join(keywords)}) has no recorded meaning; write it with recorded functions"
    )


def _reduce(
    recorder: Recorder, ufunc: np.ufunc, inputs: tuple[Any, ...], dtype: Any, keywords: dict[str, Any]
) -> Value:
    """A ufunc's reduce takes axis 0 where np.sum would take all."""
    x = inputs[0]
    axis = keywords.pop("axis", inputs[1] if len(inputs) > 1 else 0)
    if ufunc is np.add:
        return reductions.sum(x, axis, dtype, **keywords)
    if ufunc is np.multiply:
        return reductions.prod(x, axis, dtype, **keywords)
    if ufunc is np.maximum:
        return reductions.max(x, axis, **keywords)
    if ufunc is np.minimum:
        return reductions.min(x, axis, **keywords)
    if ufunc is np.logical_or:
        return reductions.any(x, axis, **keywords)
    if ufunc is np.logical_and:
        return reductions.all(x, axis, **keywords)
    if ufunc is np.logaddexp and not set(keywords) - {"keepdims"}:
        return reductions.logsumexp(x, axis, **keywords)
    raise recorder.error(
        f"np.{ufunc.__name__}.reduce has no recorded meaning; use np.sum, np.prod, np.max, np.min, np.any or np.all"
    )


def call_function(
    value: Value, function: Callable[..., Any], arguments: tuple[Any, ...], keywords: dict[str, Any]
) -> Any:
    """Answers `__array_function__`."""
    found = functions().get(function)
    if found is None:
        module = (getattr(function, "__module__", None) or "numpy").replace("numpy", "np", 1)
        name = getattr(function, "__name__", repr(function))
        remedy = _REMEDIES.get(name, "write it with recorded functions")
        raise value.recorder.error(f"{module}.{name} has no recorded meaning; {remedy}")
    given = {key: each for key, each in keywords.items() if each is not _ABSENT}
    try:
        return found(*arguments, **given)
    except ToposError:
        raise
    except (TypeError, ValueError, IndexError) as error:  # NumPy's own complaint about an argument, at the user's place
        raise value.recorder.error(f"np.{getattr(function, '__name__', function)}: {error}") from error


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
    return views.diagonal(x, k) if x.ndim == 2 else indexing.diag(x, k)


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
    return reductions.vector_norm(value, ord, some_axes(x, axis), keepdims)


def _matrix_norm(x: Value, /, *, keepdims: bool = False, ord: Any = "fro") -> Value:
    return reductions.norm(x, ord, (-2, -1), keepdims)


def _matrix_diagonal(x: Value, /, *, offset: int = 0) -> Value:
    return views.diagonal(x, offset, -2, -1)


def _matrix_trace(x: Value, /, *, offset: int = 0, dtype: Any = None) -> Value:
    return reductions.trace(x, offset, -2, -1, dtype)


def _concatenate(
    arrays: Any, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind"
) -> Value:
    return joining.concatenate(arrays, axis, out, dtype=dtype, casting=casting)


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
        np.take: indexing.take, np.take_along_axis: indexing.take_along_axis, np.average: reductions.average,
        np.diff: joining.diff, np.result_type: _result_type, np.clip: elementwise.clip,
    }  # fmt: skip
    of_value: dict[Callable[..., Any], Callable[..., Any]] = {
        np.reshape: _reshape, np.ravel: _ravel, np.transpose: views.transpose, np.swapaxes: views.swapaxes,
        np.moveaxis: views.moveaxis, np.rollaxis: views.rollaxis, np.matrix_transpose: views.matrix_transpose,
        linalg.matrix_transpose: views.matrix_transpose, np.expand_dims: views.expand_dims, np.squeeze: views.squeeze,
        np.broadcast_to: views.broadcast_to, np.flip: views.flip, np.fliplr: views.fliplr, np.flipud: views.flipud,
        np.rot90: views.rot90, np.diagonal: views.diagonal, linalg.diagonal: _matrix_diagonal, np.diag: _diag,
        tricks.sliding_window_view: views.sliding_window_view, np.trace: reductions.trace, linalg.trace: _matrix_trace,
        np.pad: joining.pad, np.roll: joining.roll, np.tile: joining.tile, np.repeat: joining.repeat,
        np.split: _split, np.array_split: _array_split,
        np.hsplit: lambda x, parts: joining.split(x, parts, 0 if x.ndim == 1 else 1),
        np.vsplit: lambda x, parts: joining.split(x, parts, 0), np.dsplit: lambda x, parts: joining.split(x, parts, 2),
        np.tril: lambda m, k=0: indexing.triangle(m, k, upper=False),
        np.triu: lambda m, k=0: indexing.triangle(m, k, upper=True),
        np.sum: reductions.sum, np.prod: reductions.prod, np.max: reductions.max, np.amax: reductions.max,
        np.min: reductions.min, np.amin: reductions.min, np.mean: reductions.mean, np.var: reductions.var,
        np.std: reductions.std, np.any: reductions.any, np.all: reductions.all, np.argmax: reductions.argmax,
        np.argmin: reductions.argmin, np.cumsum: reductions.cumsum, np.ptp: reductions.ptp,
        np.count_nonzero: reductions.count_nonzero, np.nansum: reductions.nansum, np.nanmean: reductions.nanmean,
        linalg.norm: reductions.norm, linalg.vector_norm: _vector_norm, linalg.matrix_norm: _matrix_norm,
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
