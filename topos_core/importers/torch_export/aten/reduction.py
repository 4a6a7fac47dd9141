"""Sums, means, extremes and their kin along axes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from topos_core import nn
from topos_core.importers.torch_export.aten.elementwise import half_as_single
from topos_core.importers.torch_export.call import Call, NoFormula, Table
from topos_core.recording import averages, elementwise, lookup, reductions
from topos_core.recording.value import Value


def axes_of(x: Value, dim: Any) -> tuple[int, ...]:
    """Reads torch's `dim`: None and [] mean all axes."""
    if dim is None or (isinstance(dim, (list, tuple)) and not dim):
        return tuple(range(x.ndim))
    return tuple(each % max(x.ndim, 1) for each in (dim if isinstance(dim, (list, tuple)) else (dim,)))


def _total(call: Call, x: Value, dim: Any = None, keepdim: Any = False, dtype: Any = None) -> Any:
    if not isinstance(keepdim, bool):
        keepdim = False  # sum(x, dtype=...)
    wide = elementwise.cast(x, _summing(call, x))
    return wide.sum(axis=axes_of(x, dim), keepdims=keepdim)


def _whole(call: Call, x: Value, dtype: Any = None) -> Any:
    return elementwise.cast(x, _summing(call, x)).sum()


def _summing(call: Call, x: Value) -> str:
    """Halves are summed in f32 and rounded once."""
    return "f32" if call.dtype in ("f16", "bf16") else call.dtype


def _product(call: Call, x: Value, dim: Any = None, keepdim: Any = False, dtype: Any = None) -> Any:
    return call.cast(x).prod(axis=axes_of(x, dim), keepdims=bool(keepdim) if isinstance(dim, int) else False)


def _mean(call: Call, x: Value, dim: Any = None, keepdim: Any = False, dtype: Any = None) -> Any:
    axes = axes_of(x, dim)
    return elementwise.cast(x, _summing(call, x)).mean(axis=axes, keepdims=bool(keepdim))


def _mean_whole(call: Call, x: Value, dtype: Any = None) -> Any:
    return elementwise.cast(x, _summing(call, x)).mean()


def _freedom(correction: Any, unbiased: Any = True) -> float:
    if correction is not None:
        return float(correction)
    return 1.0 if unbiased else 0.0


def _variance(root: bool) -> Callable[..., Any]:
    function = averages.std if root else averages.var

    def corrected(call: Call, x: Value, dim: Any = None, correction: Any = None, keepdim: bool = False) -> Any:
        wide = elementwise.cast(x, _summing(call, x))
        return function(wide, axes_of(x, dim), ddof=_freedom(correction), keepdims=keepdim)

    return corrected


def _variance_of_all(root: bool) -> Callable[..., Any]:
    def formula(call: Call, x: Value, unbiased: bool = True) -> Any:
        return _variance(root)(call, x, None, 1 if unbiased else 0)

    return formula


def _variance_dim(root: bool) -> Callable[..., Any]:
    def formula(call: Call, x: Value, dim: Any, unbiased: bool = True, keepdim: bool = False) -> Any:
        return _variance(root)(call, x, dim, 1 if unbiased else 0, keepdim)

    return formula


def _variance_and_mean(call: Call, x: Value, dim: Any = None, correction: Any = None, keepdim: bool = False) -> Any:
    axes = axes_of(x, dim)
    return [averages.var(x, axes, ddof=_freedom(correction), keepdims=keepdim), x.mean(axis=axes, keepdims=keepdim)]


def _variance_and_mean_dim(call: Call, x: Value, dim: Any, unbiased: bool = True, keepdim: bool = False) -> Any:
    return _variance_and_mean(call, x, dim, 1 if unbiased else 0, keepdim)


def _extreme(function: Callable[..., Any]) -> Callable[..., Any]:
    def formula(call: Call, x: Value, dim: Any = None, keepdim: bool = False) -> Any:
        return function(x, axes_of(x, dim), keepdims=keepdim)

    return formula


def _extreme_along(function: Callable[..., Any], index: Callable[..., Any]) -> Callable[..., Any]:
    """Gives values and indices along one axis; ties may be told apart differently than by torch."""

    def formula(call: Call, x: Value, dim: int, keepdim: bool = False) -> Any:
        axis = dim % max(x.ndim, 1)
        if call.results[1] is None:
            raise NoFormula("an index without a type")
        return [function(x, (axis,), keepdims=keepdim), index(x, axis, keepdims=keepdim)]

    return formula


def _where_extreme(index: Callable[..., Any]) -> Callable[..., Any]:
    def formula(call: Call, x: Value, dim: Any = None, keepdim: bool = False) -> Any:
        return index(x, None if dim is None else dim % max(x.ndim, 1), keepdims=keepdim)

    return formula


def _pairwise_or_whole(function: Callable[..., Any], ufunc: np.ufunc) -> Callable[..., Any]:
    def formula(call: Call, x: Value, other: Any = None, *rest: Any) -> Any:
        if isinstance(other, Value):
            return elementwise.apply(ufunc, (call.cast(x), call.cast(other)))
        return function(x, axes_of(x, None))

    return formula


def _truth(function: Callable[..., Any]) -> Callable[..., Any]:
    def formula(call: Call, x: Value, dim: Any = None, keepdim: bool = False) -> Any:
        return function(x, axes_of(x, dim), keepdims=keepdim)

    return formula


def _running(call: Call, x: Value, dim: int, dtype: Any = None) -> Any:
    wide = call.cast(x)
    if not x.ndim:
        return wide
    return reductions.cumsum(wide, dim % x.ndim)


def _log_sum_exp(call: Call, x: Value, dim: Sequence[int], keepdim: bool = False) -> Any:
    return reductions.logsumexp(call.cast(x), axes_of(x, dim), keepdims=keepdim)


def _softmax(function: Callable[..., Any]) -> Callable[..., Any]:
    def formula(call: Call, x: Value, dim: int, dtype: Any = None) -> Any:
        wide = x if isinstance(dtype, bool) or dtype is None else elementwise.cast(x, call.named(dtype))
        return half_as_single(lambda call, x: function(x, axis=dim % max(x.ndim, 1)))(call, wide)

    return formula


def _vector_norm(
    call: Call, x: Value, order: Any = 2, dim: Any = None, keepdim: bool = False, dtype: Any = None
) -> Any:
    axes = axes_of(x, dim)
    x = call.cast(x)
    order = 2 if order is None else order
    if order == 2:
        return np.sqrt((x * x).sum(axis=axes, keepdims=keepdim))
    if order == 1:
        return np.abs(x).sum(axis=axes, keepdims=keepdim)
    if order == math.inf:
        return np.abs(x).max(axis=axes, keepdims=keepdim)
    raise NoFormula(f"a norm of order {order}")


def _norm(call: Call, x: Value, order: Any = 2, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    return _vector_norm(call, x, order, dim, keepdim)


def _count_nonzero(call: Call, x: Value, dim: Any = None) -> Any:
    return reductions.count_nonzero(x, axes_of(x, dim))


def _along(call: Call, x: Value, dim: int, index: Value, *rest: Any) -> Any:
    if x.ndim == 0:
        raise NoFormula("a gather from a scalar")
    cut = tuple(slice(None) if axis == dim % x.ndim else slice(0, index.type.shape[axis]) for axis in range(x.ndim))
    return lookup.take_along_axis(x[cut], index, dim, from_end=False)


def _along_dim(call: Call, x: Value, index: Value, dim: Any = None) -> Any:
    """Looks up what broadcasts; torch takes these indices modulo the extent, but not where it flattens both."""
    if dim is None:
        return _along(call, x.reshape(-1), 0, index.reshape(-1))
    return lookup.take_along_axis(x, index % x.shape[dim], dim)


def _difference(call: Call, x: Any, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None) -> Any:
    if x.type.dtype == "bool":
        raise NoFormula("a difference of truth values")
    given = [each for each in (prepend, x, append) if each is not None]
    joined = np.concatenate(given, axis=dim) if len(given) > 1 else x
    return np.diff(joined, n, axis=dim)


TABLE: Final[Table] = {
    "diff": _difference,
    "sum": _whole, "sum.dim_IntList": _total, "prod": _product, "prod.dim_int": _product,
    "mean": _mean_whole, "mean.dim": _mean,
    "var": _variance_of_all(False), "var.dim": _variance_dim(False), "var.correction": _variance(False),
    "std": _variance_of_all(True), "std.dim": _variance_dim(True), "std.correction": _variance(True),
    "var_mean.correction": _variance_and_mean, "var_mean.dim": _variance_and_mean_dim,
    "amax": _extreme(reductions.max), "amin": _extreme(reductions.min),
    "max": _pairwise_or_whole(reductions.max, np.maximum), "min": _pairwise_or_whole(reductions.min, np.minimum),
    "max.dim": _extreme_along(reductions.max, reductions.argmax), "min.dim": _extreme_along(reductions.min, reductions.argmin),
    "argmax": _where_extreme(reductions.argmax), "argmin": _where_extreme(reductions.argmin),
    "any": _truth(reductions.any), "all": _truth(reductions.all), "cumsum": _running, "logsumexp": _log_sum_exp,
    "softmax": _softmax(nn.softmax), "_softmax": _softmax(nn.softmax), "special_softmax": _softmax(nn.softmax),
    "log_softmax": _softmax(nn.log_softmax), "_log_softmax": _softmax(nn.log_softmax),
    "linalg_vector_norm": _vector_norm, "norm": _norm, "count_nonzero": _count_nonzero, "gather": _along,
    "take_along_dim": _along_dim,
}  # fmt: skip
