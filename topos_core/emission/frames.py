"""Arrays with a JSON head as bytes, for a pipe between two processes of one machine; no pickle."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from topos_core.tape.type import TensorType, dtype_name, numpy_dtype


def pack(head: Mapping[str, Any], arrays: Sequence[np.ndarray]) -> bytes:
    """Gives the length of the head, the head, and every array's elements in order."""
    types = [[dtype_name(array.dtype), list(array.shape)] for array in arrays]
    encoded = json.dumps({**head, "arrays": types}).encode()
    parts = (np.ascontiguousarray(array).tobytes() for array in arrays)
    return b"".join((len(encoded).to_bytes(8, "little"), encoded, *parts))


def unpack(data: bytes) -> tuple[dict[str, Any], list[np.ndarray]]:
    """Gives the head and the arrays of `pack`."""
    at = 8 + int.from_bytes(data[:8], "little")
    head: dict[str, Any] = json.loads(data[8:at])
    arrays = []
    for dtype, shape in head["arrays"]:
        kind = TensorType(dtype, tuple(shape))
        arrays.append(np.frombuffer(data[at : at + kind.bytes], numpy_dtype(dtype)).reshape(kind.shape))
        at += kind.bytes
    return head, arrays
