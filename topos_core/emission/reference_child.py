"""The process that holds the reference interpreter: a packed module and its inputs on stdin, packed results on stdout."""

from __future__ import annotations

import re
import sys
from typing import Any

import numpy as np

from topos_core.emission.backend import parse
from topos_core.emission.frames import pack, unpack
from topos_core.emission.syntax import literal, tensor
from topos_core.tape.type import TensorType, dtype_name, numpy_dtype


def main() -> None:
    """Runs one module."""
    head, inputs = unpack(sys.stdin.buffer.read())
    sys.stdout.buffer.write(pack({}, evaluate(head["text"], inputs)))


def evaluate(text: str, inputs: list[np.ndarray]) -> list[np.ndarray]:
    """Evaluates a module with jaxlib's reference interpreter; the process aborts on ops that it does not know."""
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import stablehlo

    module = parse(text)
    with module.context:
        arguments = [ir.Attribute.parse(_attribute(array)) for array in inputs]
        return [_array(result) for result in stablehlo.eval_module(module, arguments)]


def _attribute(array: np.ndarray) -> str:
    kind = TensorType(dtype_name(array.dtype) or "", array.shape)
    if array.size == 0:
        return f"dense<> : {tensor(kind)}"
    if array.size == 1 or kind.dtype == "bool":
        return f"dense<{_nested(array, kind.dtype)}> : {tensor(kind)}"
    return f'dense<"0x{np.ascontiguousarray(array).tobytes().hex().upper()}"> : {tensor(kind)}'


def _nested(array: np.ndarray, dtype: str) -> str:
    if array.ndim == 0:
        return literal(array[()], dtype)
    return f"[{', '.join(_nested(row, dtype) for row in array)}]"


def _array(attribute: Any) -> np.ndarray:
    """Reads a dense attribute; jaxlib gives buffers of most dtypes, and text of the rest (bf16)."""
    kind = _kind(str(attribute.type))
    dtype = numpy_dtype(kind.dtype)
    if kind.size == 0:
        return np.zeros(kind.shape, dtype)
    if kind.dtype != "bf16":
        return np.array(attribute).astype(dtype).reshape(kind.shape)
    body = re.search(r"<(.*)>", str(attribute), re.DOTALL)
    assert body is not None
    if raw := re.fullmatch(r'"0x([0-9A-F]*)" *> *: *tensor<.*', body[1]):
        return np.frombuffer(bytes.fromhex(raw[1]), dtype).reshape(kind.shape)
    numbers = [_number(item, dtype) for item in re.findall(r"0x[0-9A-F]+|[-+0-9.eE]+", body[1].split("> :")[0])]
    return np.broadcast_to(np.array(numbers, dtype).reshape(kind.shape if len(numbers) > 1 else ()), kind.shape)


def _number(text: str, dtype: np.dtype) -> Any:
    if text.startswith("0x"):
        return np.frombuffer(int(text, 16).to_bytes(dtype.itemsize, "little"), dtype)[0]
    return np.float64(text).astype(dtype)


def _kind(text: str) -> TensorType:
    found = re.fullmatch(r"tensor<((?:[0-9]+x)*)([a-z0-9]+)>", text)
    assert found is not None, text
    dtype = "bool" if found[2] == "i1" else found[2].replace("ui", "u")
    return TensorType(dtype, tuple(int(extent) for extent in found[1].split("x")[:-1]))
