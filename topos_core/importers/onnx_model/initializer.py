"""Initialisers without reading them: raw bytes are looked at where they lie, external data is mapped.

External data comes from regular files under the model's own folder only: no symlink on the way, offset and length inside
the file, as many bytes as the tensor's type needs.
"""

from __future__ import annotations

import math
import os
import stat
from pathlib import PurePosixPath
from typing import Any, Final

import numpy as np

from topos_core.errors import TraceError
from topos_core.importers.onnx_model.dtypes import DTYPES
from topos_core.tape.type import numpy_dtype

_EXTERNAL: Final = 1
_MAX_ELEMENTS: Final = 2**40


def array_of(tensor: Any, folder: str) -> np.ndarray | None:
    """Gives a tensor's elements, read-only; None where topos has no such element type.

    Raises:
        TraceError: TP402, the tensor does not hold what it declares, or its external data is out of bounds.
    """
    dtype = DTYPES.get(tensor.data_type)
    if dtype is None:
        return None
    shape = tuple(tensor.dims)
    if min(shape, default=0) < 0 or math.prod(shape) > _MAX_ELEMENTS:
        raise _refused(tensor, f"has the shape {list(shape)}")
    if tensor.data_location == _EXTERNAL:
        return _mapped(tensor, dtype, shape, folder)
    if tensor.HasField("raw_data"):
        _check_length(tensor, len(tensor.raw_data), dtype, shape)
        array = np.frombuffer(tensor.raw_data, numpy_dtype(dtype))
    else:
        array = _listed(tensor, dtype)
        _check_length(tensor, array.nbytes, dtype, shape)
    array = array.reshape(shape)
    array.flags.writeable = False
    return array


def _listed(tensor: Any, dtype: str) -> np.ndarray:
    """Reads the typed fields of old models, in which halves are the bits of integers."""
    target = numpy_dtype(dtype)
    match dtype:
        case "f32":
            return np.array(tensor.float_data, target)
        case "f64":
            return np.array(tensor.double_data, target)
        case "i64":
            return np.array(tensor.int64_data, target)
        case "u32" | "u64":
            return np.array(tensor.uint64_data, np.uint64).astype(target)
        case "f16" | "bf16":
            return np.array(tensor.int32_data, np.int64).astype(np.uint16).view(target)
        case _:
            return np.array(tensor.int32_data, np.int64).astype(target)


def _mapped(tensor: Any, dtype: str, shape: tuple[int, ...], folder: str) -> np.ndarray:
    fields = {entry.key: entry.value for entry in tensor.external_data}
    path = _inside(tensor, folder, fields.get("location", ""))
    needed = math.prod(shape) * numpy_dtype(dtype).itemsize
    try:
        offset, length = int(fields.get("offset") or 0), int(fields.get("length") or needed)
    except ValueError:
        raise _refused(tensor, f"has an offset or length that is no number: {fields}") from None
    _check_length(tensor, length, dtype, shape)
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except OSError as error:
        raise _refused(tensor, f"names external data that cannot be read: {error.strerror}") from None
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise _refused(tensor, f"names external data in {fields['location']!r}, which is no regular file")
    with os.fdopen(descriptor, "rb") as stream:
        if offset < 0 or offset + length > status.st_size:
            raise _refused(
                tensor,
                f"names bytes {offset} to {offset + length} of {fields['location']!r}, which has {status.st_size}",
            )
        if not needed:
            return np.empty(shape, numpy_dtype(dtype))
        return np.memmap(stream, numpy_dtype(dtype), "r", offset, shape)


def _inside(tensor: Any, folder: str, location: str) -> str:
    """Gives the path of external data; every component is a plain name and none is a symlink."""
    parts = PurePosixPath(location.replace("\\", "/")).parts
    if (
        not parts
        or PurePosixPath(location).is_absolute()
        or any(part == ".." or ":" in part or "\0" in part for part in parts)
    ):
        raise _refused(tensor, f"names external data in {location!r}; it must lie under the model's own folder")
    path = folder
    for part in parts:
        path = os.path.join(path, part)
        if os.path.islink(path):
            raise _refused(tensor, f"names external data in {location!r}, of which {part!r} is a symbolic link")
    return path


def _check_length(tensor: Any, length: int, dtype: str, shape: tuple[int, ...]) -> None:
    needed = math.prod(shape) * numpy_dtype(dtype).itemsize
    if length != needed:
        raise _refused(tensor, f"has {length} bytes, {dtype}{list(shape)} needs {needed}")


def _refused(tensor: Any, what: str) -> TraceError:
    return TraceError(f"the initialiser {tensor.name!r} {what}; export the model again", code="TP402")
