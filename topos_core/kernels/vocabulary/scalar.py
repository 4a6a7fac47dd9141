"""The element types that kernels compute in, as numba and as LLVM know them."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from llvmlite import ir
from numba.core import types


class Scalar(NamedTuple):
    """One element type: its numba type, its LLVM type, its size in bytes."""

    name: str
    numba: Any
    llvm: Any
    bytes: int

    @property
    def is_float(self) -> bool:
        """Tells floats from integers."""
        return self.name.startswith("f")

    @property
    def is_signed(self) -> bool:
        """Tells signed integers (and floats) from unsigned ones."""
        return not self.name.startswith(("u", "b"))


def _integer(name: str, numba: Any) -> Scalar:
    return Scalar(name, numba, ir.IntType(numba.bitwidth), numba.bitwidth // 8)


SCALARS: Final = {
    "f32": Scalar("f32", types.float32, ir.FloatType(), 4),
    "f64": Scalar("f64", types.float64, ir.DoubleType(), 8),
    **{
        name: _integer(name, getattr(types, kind))
        for name, kind in (
            ("i8", "int8"), ("i16", "int16"), ("i32", "int32"), ("i64", "int64"),
            ("u8", "uint8"), ("u16", "uint16"), ("u32", "uint32"), ("u64", "uint64"),
        )
    },
}  # fmt: skip
