"""Types and constants of MLIR as topos's own."""

from __future__ import annotations

import re
from typing import Any, Final

import numpy as np

from topos_core.tape.type import TensorType, numpy_dtype

_DTYPES: Final = {
    "f16": "f16", "bf16": "bf16", "f32": "f32", "f64": "f64", "i1": "bool", "i8": "i8", "i16": "i16", "i32": "i32",
    "i64": "i64", "ui8": "u8", "ui16": "u16", "ui32": "u32", "ui64": "u64",
}  # fmt: skip

_NUMBER: Final = re.compile(r"[-+]?(?:0x[0-9A-Fa-f]+|\d[\d.]*(?:[eE][-+]?\d+)?)")


def type_of(given: Any) -> TensorType | None:
    """Gives a ranked tensor's type; None where an extent is open or topos has no such element type."""
    from jaxlib.mlir import ir

    try:
        ranked = ir.RankedTensorType(given)
    except (ValueError, TypeError):
        return None
    dtype = _DTYPES.get(str(ranked.element_type))
    if dtype is None or not ranked.has_static_shape:
        return None
    return TensorType(dtype, tuple(ranked.shape))


def array_of(attribute: Any, kind: TensorType) -> np.ndarray | np.generic:
    """Gives a constant's elements: one number where all are equal.

    Raises:
        ValueError: They are kept in a way that cannot be read (a resource, a sparse form).
    """
    from jaxlib.mlir import ir

    dtype = numpy_dtype(kind.dtype)
    elements = ir.DenseElementsAttr(attribute)
    if elements.is_splat:
        number = ir.DenseElementsAttr(elements).get_splat_value()
        return np.asarray(number.value).astype(dtype)[()]
    if kind.dtype == "bf16":
        return _halves(str(attribute), kind).astype(dtype)
    return np.array(elements).reshape(kind.shape).astype(dtype)


def _halves(text: str, kind: TensorType) -> np.ndarray:
    """Reads a table of bf16 from its text, since NumPy's own buffers know none: decimals, bits, or one string of bytes."""
    elements = text.partition("dense<")[2].rpartition("> :")[0]
    if elements.startswith('"0x'):
        bits = np.frombuffer(bytes.fromhex(elements[3:-1]), "<u2").astype(np.uint32)
        return (bits << 16).view(np.float32).reshape(kind.shape)
    numbers = [
        np.uint32(int(each, 16) << 16).view(np.float32) if "0x" in each else np.float32(each)
        for each in _NUMBER.findall(elements)
    ]
    return np.array(numbers, np.float32).reshape(kind.shape)


def numbers_of(attribute: Any) -> tuple[int, ...]:
    """Gives the integers of a dense array or dense elements, flattened."""
    from jaxlib.mlir import ir

    if isinstance(attribute, ir.DenseElementsAttr):
        return tuple(int(each) for each in np.array(attribute).reshape(-1))
    return tuple(int(each) for each in attribute)
