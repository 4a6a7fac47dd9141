"""NumPy's two protocols as tables: ufuncs and their methods, and functions by object.

A function that is not in the table is an error at the user's expression: nothing is ever computed on placeholders.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from topos_core.errors import ToposError
from topos_core.recording import (
    constant,
    contraction,
    elementwise,
    movement,
    numpy_functions,
    reductions,
)
from topos_core.recording.recorder import Recorder
from topos_core.recording.value import Value

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
    found = numpy_functions.functions().get(function)
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
