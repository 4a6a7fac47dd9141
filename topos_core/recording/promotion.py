"""Which dtype an operation runs in: NumPy's own answer (`ufunc.resolve_dtypes`, NEP 50), cached.

An operand's *kind* is a dtype name, or `int` or `float` for a Python scalar, which is weak: it adapts to the arrays. A
Python bool and a NumPy scalar are strong. bf16 does not follow NumPy, where `x * 2.0` would be f32: weak scalars,
integers and bools adapt to it.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import numpy as np

from topos_core.recording.spec import ElementType
from topos_core.recording.value import Value
from topos_core.tape.type import DTYPE_NAMES, FLOATS, dtype_name, numpy_dtype

WEAK: Final = ("int", "float")
SUPPORTED: Final = ", ".join(DTYPE_NAMES)


class NoDtype(Exception):
    """An operand or result whose dtype topos does not have."""


def is_weak(x: Any) -> bool:
    """Tells Python scalars from everything else. np.float64 is a float, so the order of the tests matters."""
    return isinstance(x, (int, float)) and not isinstance(x, (np.generic, bool))


def kind_of(x: Any) -> str:
    """Gives an operand's kind.

    Raises:
        NoDtype: The operand is complex, a string, an object.
    """
    if isinstance(x, Value):
        return x.type.dtype
    if isinstance(x, (np.ndarray, np.generic)):
        return name_of(x.dtype)
    if isinstance(x, bool):
        return "bool"
    if isinstance(x, int):
        return "int"
    if isinstance(x, float):
        return "float"
    raise NoDtype(f"a {type(x).__name__} cannot be recorded as a number; use a number or an array of {SUPPORTED}")


def name_of(dtype: Any) -> str:
    """Gives topos's name of anything that NumPy reads as a dtype, or of `tp.f32` and its like.

    Raises:
        NoDtype: topos has no such dtype.
    """
    if isinstance(dtype, ElementType):
        return dtype.name
    try:
        known = np.dtype(dtype)
    except TypeError:
        if dtype in ("bf16", "bfloat16"):
            return "bf16"
        raise NoDtype(f"dtype {dtype!r} is not known; use one of {SUPPORTED}, as tp.f32") from None
    name = dtype_name(known) or dtype_name(known.newbyteorder("="))
    if name is None:
        raise NoDtype(f"dtype {known} cannot be recorded; use one of {SUPPORTED}, as tp.f32")
    return name


@cache
def loop_of(ufunc: np.ufunc, kinds: tuple[str, ...], dtype: str | None = None) -> tuple[str, ...]:
    """Gives the dtypes of a ufunc's operands and results, exactly as NumPy would choose them.

    Raises:
        TypeError: The ufunc has no loop for these operands.
        NoDtype: The loop's dtype is none of topos's.
    """
    given = [_resolvable(kind) for kind in _without_ints(kinds)]
    if all(isinstance(x, type) for x in given):
        given = [np.dtype(x) for x in given]
    wanted: dict[str, Any] = {}
    if dtype is not None:
        wanted["signature"] = (*[None] * ufunc.nin, *[numpy_dtype(dtype)] * ufunc.nout)
    chosen = ufunc.resolve_dtypes((*given, *[None] * ufunc.nout), **wanted)
    return tuple(name_of(each) for each in chosen)


@cache
def common_dtype(kinds: tuple[str, ...]) -> str:
    """Gives the dtype that values of these kinds share in `where`, `concatenate` and products."""
    samples: dict[str, Any] = {"int": 0, "float": 0.0}
    kinds = _without_ints(kinds)
    half = {"f16", "bf16"}.intersection(kinds)
    if len(half) == 2:
        kinds = ("f32", *kinds)  # NumPy has no common dtype of the two halves
        kinds = tuple(kind for kind in kinds if kind not in half)
    return name_of(np.result_type(*[samples.get(kind) if kind in samples else numpy_dtype(kind) for kind in kinds]))


def _without_ints(kinds: tuple[str, ...]) -> tuple[str, ...]:
    if "bf16" not in kinds:
        return kinds
    return tuple(kind if kind in FLOATS else "bf16" for kind in kinds)


def _resolvable(kind: str) -> Any:
    return {"int": int, "float": float}[kind] if kind in WEAK else numpy_dtype(kind)


def without_numpy_scalars(kinds: tuple[str, ...], operands: tuple[Any, ...]) -> tuple[str, ...]:
    """Gives the kinds as they would be if every NumPy scalar were a Python one."""
    return tuple(_weak_twin(kind) if is_numpy_scalar(x) else kind for kind, x in zip(kinds, operands, strict=True))


def is_numpy_scalar(x: Any) -> bool:
    """Tells NumPy scalars and 0-d arrays, which promote, from Python scalars, which do not."""
    return isinstance(x, np.generic) or (isinstance(x, np.ndarray) and x.ndim == 0)


def _weak_twin(kind: str) -> str:
    return kind if kind == "bool" else "float" if kind in FLOATS else "int"
