"""Tensor types: an element dtype by name and a static shape."""

from __future__ import annotations

import math
from functools import cache
from typing import Final, NamedTuple

import numpy as np

DTYPE_NAMES: Final = ("f16", "bf16", "f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "bool")
FLOATS: Final = ("f16", "bf16", "f32", "f64")
SIGNED: Final = ("i8", "i16", "i32", "i64")
UNSIGNED: Final = ("u8", "u16", "u32", "u64")
INTEGERS: Final = SIGNED + UNSIGNED

ITEM_BYTES: Final = {
    "f16": 2, "bf16": 2, "f32": 4, "f64": 8, "i8": 1, "i16": 2, "i32": 4, "i64": 8,
    "u8": 1, "u16": 2, "u32": 4, "u64": 8, "bool": 1,
}  # fmt: skip

_NUMPY: Final = {
    "f16": "f2", "f32": "f4", "f64": "f8", "i8": "i1", "i16": "i2", "i32": "i4", "i64": "i8",
    "u8": "u1", "u16": "u2", "u32": "u4", "u64": "u8", "bool": "?",
}  # fmt: skip
_NAMES: Final = {np.dtype(code): name for name, code in _NUMPY.items()}


class TensorType(NamedTuple):
    """A tensor type such as `f32[2,3]`. A NamedTuple because a frozen dataclass costs three times as much to build."""

    dtype: str
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """Counts elements."""
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        """Counts bytes of a contiguous buffer."""
        return math.prod(self.shape) * ITEM_BYTES[self.dtype]

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"


@cache
def numpy_dtype(name: str) -> np.dtype:
    """Gives the NumPy dtype of a name; `ml_dtypes` is imported only for bf16.

    Raises:
        KeyError: `name` is not one of `DTYPE_NAMES`.
    """
    if name == "bf16":
        import ml_dtypes

        bfloat16: np.dtype = np.dtype(ml_dtypes.bfloat16)
        return bfloat16
    return np.dtype(_NUMPY[name])


def is_float(dtype: np.dtype) -> bool:
    """Tells floats, bf16 included, from integers and bool."""
    return dtype.kind not in "iub"


def dtype_name(dtype: np.dtype) -> str | None:
    """Gives the name of a NumPy dtype, or None where topos has none (complex, datetime, objects)."""
    name = _NAMES.get(dtype)
    if name is None and dtype.name == "bfloat16":
        return "bf16"
    return name


def told_masked(array: object) -> str | None:
    """Says that an array has a mask, which a program of plain arrays would lose; None where it has none."""
    return (
        "is a masked array, whose mask would be lost; fill it (`filled`)"
        if isinstance(array, np.ma.MaskedArray)
        else None
    )
