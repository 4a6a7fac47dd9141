"""NumPy's two protocols as tables: ufuncs and their methods, and functions by object.

A function that is not in the table is an error at the user's expression: nothing is ever computed on placeholders.
"""

from __future__ import annotations

from collections.abc import Callable
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
from topos_core.recording.remedies import of_function, of_ufunc
from topos_core.recording.value import Value

_ABSENT = np._NoValue


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
    raise recorder.error(f"np.{name}{shown}({', '.join(keywords)}) has no recorded meaning; {of_ufunc(name)}")


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
        raise value.recorder.error(f"{module}.{name} has no recorded meaning; {of_function(module, name)}")
    given = {key: each for key, each in keywords.items() if each is not _ABSENT}
    try:
        return found(*arguments, **given)
    except ToposError:
        raise
    except (TypeError, ValueError, IndexError) as error:  # NumPy's own complaint about an argument, at the user's place
        raise value.recorder.error(f"np.{getattr(function, '__name__', function)}: {error}") from error
