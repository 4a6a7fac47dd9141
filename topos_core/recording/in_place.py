"""`x += y`: the handle moves on to the new value, with NumPy's dtype rule, and is refused where a view would have to follow.

What NumPy gives as a scalar (`x.sum()`, `x[0, 0]`, any arithmetic of scalars) is immutable there: `s += y` only rebinds the
name, so it may change shape and dtype and no other name sees it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from topos_core.recording import elementwise
from topos_core.recording.value import Value
from topos_core.tape.type import numpy_dtype


def update(x: Value, compute: Callable[[Any, tuple[Any, ...]], Value], ufunc: np.ufunc, other: Any) -> Value:
    """Computes `ufunc(x, other)` and moves x on to it.

    Raises:
        RecordingError: Another handle shares x's memory, or the result has another shape or kind.
    """
    if _is_scalar(x):
        return compute(ufunc, (x, other))
    alias = _living_alias(x)
    name = ufunc.__name__
    if alias is not None:
        made = alias.recorder.place(alias).span
        raise x.recorder.error(
            f"in-place {name} of {x.type} would also change {alias.type} made at {made}, which shares its memory;"
            " write x = x + y, or copy one of them",
            alias,
        )
    result = compute(ufunc, (x, other))
    if result.type.shape != x.type.shape:
        raise x.recorder.error(f"in-place {name} would change {x.type} to {result.type}; write x = x + y")
    if not np.can_cast(_castable(result), _castable(x), "same_kind"):
        raise x.recorder.error(f"in-place {name} would cast {result.type} to {x.type}; write x = x + y, or cast first")
    x.index = elementwise.cast(result, x.type.dtype).index
    return x


def _is_scalar(x: Value) -> bool:
    """Tells what NumPy would give as a scalar from a 0-d array: a view, an argument, or the result of zeros_like."""
    return (
        not x.type.shape and x.memory is None and x.recorder.ops[x.index].name not in ("input", "parameter", "constant")
    )


def _living_alias(x: Value) -> Value | None:
    for handle in x.memory or ():
        other = handle()
        if other is not None and other is not x:
            return other
    return None


def _castable(x: Value) -> np.dtype:
    """bf16 counts as f16: ml_dtypes registers no casting kinds."""
    return numpy_dtype("f16" if x.type.dtype == "bf16" else x.type.dtype)
