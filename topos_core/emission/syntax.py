"""The text of types, numbers and places as MLIR's parser wants them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import numpy as np

from topos_core.tape.span import UNKNOWN, Span
from topos_core.tape.type import FLOATS, UNSIGNED, TensorType, numpy_dtype

READABLE: Final = 64
"""Tables of more elements are written as bytes."""


def element(dtype: str) -> str:
    """Gives MLIR's name of a dtype: `i1` for bool, `ui8` for u8."""
    if dtype == "bool":
        return "i1"
    return f"u{dtype.replace('u', 'i')}" if dtype in UNSIGNED else dtype


def tensor(kind: TensorType) -> str:
    """Gives a type such as `tensor<2x3xf32>`."""
    return f"tensor<{''.join(f'{extent}x' for extent in kind.shape)}{element(kind.dtype)}>"


def ints(values: Iterable[int]) -> str:
    """Joins integers with commas."""
    return ", ".join(map(str, values))


def literal(value: Any, dtype: str) -> str:
    """Gives the shortest decimal that reads back exactly; bits at the type's width for inf and NaN."""
    if dtype == "bool":
        return str(bool(value)).lower()
    if dtype not in FLOATS:
        return str(int(value))
    number = np.asarray(value).astype(numpy_dtype(dtype))
    if not np.isfinite(number):
        return "0x" + np.ascontiguousarray(number).tobytes()[::-1].hex().upper()
    # bf16 and f16 are f32 numbers, whose shortest decimal reads back to them
    shortest = np.float64(number) if dtype == "f64" else np.float32(number)
    if shortest == 0 or 1e-4 <= abs(float(shortest)) < 1e6:
        return np.format_float_positional(shortest, unique=True, trim="0")
    return np.format_float_scientific(shortest, unique=True, trim="0")


def dense(value: np.generic | np.ndarray | float, kind: TensorType) -> str:
    """Gives `dense<...> : type`; a scalar fills any shape."""
    array = np.asarray(value)
    if kind.size == 0:
        body = ""
    elif array.ndim == 0 or array.size == 1:
        body = literal(array.reshape(())[()], kind.dtype)
    elif array.size <= READABLE or kind.dtype == "bool":
        body = _nested(array, kind.dtype)
    else:
        little = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False)
        body = f'"0x{little.tobytes().hex().upper()}"'
    return f"dense<{body}> : {tensor(kind)}"


def _nested(array: np.ndarray, dtype: str) -> str:
    if array.ndim == 0:
        return literal(array[()], dtype)
    return f"[{', '.join(_nested(row, dtype) for row in array)}]"


def string(text: str) -> str:
    """Quotes a string; everything but printable ASCII becomes a byte escape."""
    plain = (
        chr(byte) if 0x20 <= byte < 0x7F and byte not in b'"\\' else f"\\{byte:02X}"
        for byte in text.encode("utf-8", "surrogatepass")
    )
    return f'"{"".join(plain)}"'


def location(span: Span, paths: Callable[[str], str] = str) -> str:
    """Gives `loc("path":line:column)`, columns from 1; `paths` says how the text names a file."""
    return "loc(unknown)" if span == UNKNOWN else f"loc({string(paths(span.path))}:{span.line}:{span.column + 1})"


def signature(operands: Sequence[TensorType], result: TensorType) -> str:
    """Gives `(types) -> type`."""
    return f"({', '.join(map(tensor, operands))}) -> {tensor(result)}"
