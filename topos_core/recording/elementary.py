"""Functions that NumPy lacks, or does not hand to a recorded argument: `tp.erf rsqrt logsumexp take`.

All take arrays too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from topos_core.ops.catalog import definition
from topos_core.recording import elementwise, lookup, reductions
from topos_core.recording.value import Value
from topos_core.tape.type import FLOATS, TensorType, dtype_name


def erf(x: Any) -> Any:
    """Gives the error function; integers are computed in f64, floats in their own dtype."""
    return _one("erf", x)


def rsqrt(x: Any) -> Any:
    """Gives 1 / sqrt(x) as one op, rounded once; integers are computed in f64."""
    return _one("rsqrt", x)


def logsumexp(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Gives log(sum(exp(x))) along axes as one op that neither overflows nor loses."""
    if isinstance(x, Value):
        return reductions.logsumexp(x, axis, keepdims=keepdims)
    array = _float_array(x)
    axes = tuple(range(array.ndim)) if axis is None else np.lib.array_utils.normalize_axis_tuple(axis, array.ndim)
    kept = tuple(1 if k in axes else extent for k, extent in enumerate(array.shape))
    shape = kept if keepdims else tuple(extent for k, extent in enumerate(array.shape) if k not in axes)
    result = TensorType(dtype_name(array.dtype) or "f64", shape)
    return definition("logsumexp").evaluate([array], {"axes": tuple(sorted(axes))}, result)


def take(x: Any, indices: Any, axis: int | None = None) -> Any:
    """Picks along an axis by index, np.take with a recorded index: `array[index]` of a NumPy array cannot be recorded."""
    if isinstance(x, Value) or isinstance(indices, Value):
        return lookup.take(x, indices, axis)
    return np.take(x, indices, axis)


def _one(name: str, x: Any) -> Any:
    if isinstance(x, Value):
        floating = x if x.type.dtype in FLOATS else elementwise.cast(x, "f64")
        return x.recorder.record(name, (floating,))
    array = _float_array(x)
    result = TensorType(dtype_name(array.dtype) or "f64", array.shape)
    return definition(name).evaluate([array], {}, result)


def _float_array(x: Any) -> np.ndarray:
    array = np.asarray(x)
    return array if dtype_name(array.dtype) in FLOATS else array.astype(np.float64)
