"""Attribute values as text and back, without loss.

| value | text |
|---|---|
| None, bool, int, float | `none`, `true`, `-3`, `0.5`, `nan`, `-inf` |
| a lower-case word; any other string | `f32`; `"aten::bernoulli"` (JSON) |
| tuple | `(1, 2)`, `(1,)`, `()` |
| type | `f32[2,3]` |
| NumPy scalar | `f32:0.5`, or its bits `f32:0x7FC00001` where a decimal would lose them |
| array | `f32[2]:(0.5, 1.0)` up to 16 elements, else its bytes, little-endian: `f32[2,3]:0x...` |
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, Final

import numpy as np

from topos_core.errors import ConfigurationError, InternalError
from topos_core.tape.type import DTYPE_NAMES, TensorType, dtype_name, numpy_dtype

READABLE: Final = 16
"""Arrays of more elements are written as bytes."""

_WORDS: Final = {"none": None, "true": True, "false": False, "nan": math.nan, "inf": math.inf}
_WORD: Final = re.compile(r"[a-z_][a-z0-9_]*")
_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*"')
_NUMBER: Final = re.compile(r"-?(?:inf|nan|[0-9]+(?:\.[0-9]*)?(?:e[-+]?[0-9]+)?)(?![0-9a-z.])")
_BYTES: Final = re.compile(r"0x([0-9A-Fa-f]*)")
_TYPE: Final = re.compile(rf"({'|'.join(DTYPE_NAMES)})\[([0-9, ]*)\]")
_SCALAR: Final = re.compile(rf"({'|'.join(DTYPE_NAMES)}):")


class Cursor:
    """A position in one line of text."""

    def __init__(self, text: str, place: str) -> None:
        self.text, self.at, self.place = text, 0, place

    def skip(self) -> None:
        """Moves over blanks."""
        while self.at < len(self.text) and self.text[self.at] in " \t":
            self.at += 1

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Moves over blanks and what the pattern matches there."""
        self.skip()
        found = pattern.match(self.text, self.at)
        if found:
            self.at = found.end()
        return found

    def need(self, pattern: re.Pattern[str], what: str) -> re.Match[str]:
        """Like `take`, but an error where the pattern does not match."""
        found = self.take(pattern)
        if found is None:
            raise self.error(f"{what} expected")
        return found

    def accept(self, token: str) -> bool:
        """Moves over blanks and the token, if it stands there."""
        self.skip()
        if self.text.startswith(token, self.at):
            self.at += len(token)
            return True
        return False

    def expect(self, token: str) -> None:
        """Like `accept`, but an error where the token does not stand there."""
        if not self.accept(token):
            raise self.error(f"`{token}` expected")

    def done(self) -> bool:
        """Tells whether nothing but blanks or a comment is left."""
        self.skip()
        return self.at == len(self.text) or self.text[self.at] == "#"

    def error(self, message: str) -> ConfigurationError:
        """Makes an error that names line and column."""
        rest = self.text[self.at : self.at + 24] or "end of line"
        return ConfigurationError(f"{self.place}:{self.at + 1}: {message}, found {rest!r}", code="TP505")


def write(value: Any) -> str:
    """Gives the text of one attribute value."""
    if isinstance(value, TensorType):
        return str(value)
    if isinstance(value, np.ndarray):
        return _write_array(value)
    if isinstance(value, np.generic):
        return f"{_dtype(value.dtype)}:{_element(value)}"
    if value is None or isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, str):
        return value if _WORD.fullmatch(value) and value not in _WORDS else json.dumps(value)
    if isinstance(value, tuple):
        inner = ", ".join(map(write, value))
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    raise InternalError(f"a {type(value).__name__} has no text: {value!r}")


def read(cursor: Cursor) -> Any:
    """Reads one value; the inverse of `write`."""
    if cursor.accept("("):
        return _read_tuple(cursor)
    if found := cursor.take(_TYPE):
        kind = TensorType(found[1], tuple(int(e) for e in found[2].split(",") if e.strip()))
        return _read_array(cursor, kind) if cursor.accept(":") else kind
    if found := cursor.take(_SCALAR):
        return _read_elements(cursor, TensorType(found[1], ()))[()]
    if found := cursor.take(_NUMBER):
        return _number(found[0])
    if found := cursor.take(_STRING):
        return json.loads(found[0])
    if found := cursor.take(_WORD):
        return _WORDS.get(found[0], found[0])
    raise cursor.error("a value expected")


def _dtype(dtype: np.dtype) -> str:
    name = dtype_name(dtype)
    if name is None:
        raise InternalError(f"dtype {dtype} has no name")
    return name


def _write_array(array: np.ndarray) -> str:
    head = str(TensorType(_dtype(array.dtype), array.shape))
    if array.size > READABLE:
        return f"{head}:0x{_little(array).tobytes().hex().upper()}"
    items = [_element(item) for item in array.reshape(-1)]
    return f"{head}:({', '.join(items)}{',' if len(items) == 1 else ''})"


def _element(item: Any) -> str:
    """Gives a decimal where reading it back gives the same bits, else the bits."""
    scalar = np.asarray(item)
    if scalar.dtype.kind == "b":
        return str(bool(scalar)).lower()
    if scalar.dtype.kind in "iu":
        return str(int(scalar))
    text = str(scalar[()]) if scalar.dtype.itemsize < 8 else repr(float(scalar))
    if np.asarray(float(text), np.float64).astype(scalar.dtype).tobytes() == scalar.tobytes() and _NUMBER.fullmatch(
        text
    ):
        return text
    return "0x" + _little(scalar).tobytes()[::-1].hex().upper()


def _little(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False)


def _number(text: str) -> int | float:
    return int(text) if re.fullmatch(r"-?[0-9]+", text) else float(text)


def _read_tuple(cursor: Cursor) -> tuple[Any, ...]:
    items: list[Any] = []
    while not cursor.accept(")"):
        items.append(read(cursor))
        if not cursor.accept(","):
            cursor.expect(")")
            break
    return tuple(items)


def _read_array(cursor: Cursor, kind: TensorType) -> np.ndarray:
    array = _read_elements(cursor, kind)
    array.flags.writeable = False
    return array


def _read_elements(cursor: Cursor, kind: TensorType) -> np.ndarray:
    """Reads one element, the bytes of all, or a tuple of elements."""
    dtype, start = numpy_dtype(kind.dtype), cursor.at
    if found := cursor.take(_BYTES):
        if len(found[1]) != 2 * kind.bytes:
            cursor.at = start
            raise cursor.error(f"{kind.bytes} bytes of {kind} expected")
        raw = bytes.fromhex(found[1])
        scalar = kind.shape == ()
        return np.frombuffer(raw[::-1] if scalar else raw, dtype.newbyteorder("<")).astype(dtype).reshape(kind.shape)
    items: list[np.ndarray] = []
    single = not cursor.accept("(")
    while single or not cursor.accept(")"):
        items.append(_read_item(cursor, kind.dtype))
        if single or not cursor.accept(","):
            if not single:
                cursor.expect(")")
            break
    if len(items) != kind.size:
        cursor.at = start
        raise cursor.error(f"{kind.size} elements of {kind} expected")
    return np.array(items, dtype).reshape(kind.shape)


def _read_item(cursor: Cursor, dtype: str) -> np.ndarray:
    if cursor.accept("0x"):
        cursor.at -= 2
        return _read_elements(cursor, TensorType(dtype, ()))
    value = read(cursor)
    if not isinstance(value, (int, float)):
        raise cursor.error(f"an element of {dtype} expected")
    # bool and integers keep their exact value; floats go through f64, which holds every shorter decimal exactly
    return (
        np.asarray(value).astype(numpy_dtype(dtype))
        if isinstance(value, float)
        else np.array(value, numpy_dtype(dtype))
    )
