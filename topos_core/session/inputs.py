"""Arrays to run an entry with: read from an .npz file whose headers are checked first, or seeded ones.

Nothing is ever unpickled: an array of objects is refused by its header, before its data is touched.
"""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from typing import IO, Any, Final

import numpy as np
from numpy.lib import format as npy

from topos_core.errors import ConfigurationError
from topos_core.tape.type import FLOATS, UNSIGNED, TensorType, dtype_name, numpy_dtype, told_masked

_UNBOUNDED: Final = 8  # integers without a range are drawn from [-8, 8), so that their sums and products stay small


def read_inputs(file: str, names: Sequence[str], types: Sequence[TensorType]) -> list[np.ndarray]:
    """Reads one array per input, by its name, or by position where the file has `arr_0 arr_1 ...`.

    Raises:
        ConfigurationError: TP505, the file cannot be read as .npz; TP502, an array is missing, left over, of another
            type than the input, or damaged.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
            keys = _keys(file, list(members), names)
            return [
                _read(archive, members[key], f"{key} of {file}", name, type)
                for key, name, type in zip(keys, names, types, strict=True)
            ]
    except OSError as error:
        raise ConfigurationError(
            f"{file} cannot be read: {(error.strerror or str(error)).lower()}", code="TP505"
        ) from None
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        raise ConfigurationError(f"{file} is no .npz file: {error}; write it with numpy.savez", code="TP505") from None


def seeded_inputs(types: Sequence[TensorType], ranges: Sequence[tuple[int, int] | None], seed: int) -> list[np.ndarray]:
    """Makes standard normals for floats, integers uniform in their range, and fair booleans; equal seeds give equal arrays."""
    generator = np.random.default_rng(seed)
    return [_seeded(type, bounds, generator) for type, bounds in zip(types, ranges, strict=True)]


def check_inputs(
    given: Sequence[Any], names: Sequence[str], types: Sequence[TensorType], whose: str
) -> list[np.ndarray]:
    """Checks arrays that user code gave; `whose` says where they come from.

    Raises:
        ConfigurationError: TP502, another number of arrays, or another dtype or shape than the inputs.
    """
    if len(given) != len(names):
        wanted = ", ".join(f"{name} {type}" for name, type in zip(names, types, strict=True))
        raise ConfigurationError(
            f"{whose} gives {len(given)} arrays, the entry takes {len(names)}: {wanted}", code="TP502"
        )
    for each, name in zip(given, names, strict=True):
        told = told_masked(each)
        if told is not None:
            raise ConfigurationError(f"{name} of {whose} {told}", code="TP502")
    arrays = [np.asarray(each) for each in given]
    for array, name, type in zip(arrays, names, types, strict=True):
        _check_type(array.dtype, array.shape, f"{name} of {whose}", name, type)
    return arrays


def _keys(file: str, found: list[str], names: Sequence[str]) -> list[str]:
    positions = [f"arr_{number}" for number in range(len(names))]
    for keys in (list(names), positions):
        if set(keys) == set(found):
            return keys
    missing = [name for name in names if name not in found]
    if missing:
        raise ConfigurationError(
            f"{file} has no array for {', '.join(missing)}; it has {', '.join(sorted(found)) or 'none'}", code="TP502"
        )
    extra = [key for key in found if key not in names]
    raise ConfigurationError(f"{file} has {', '.join(sorted(extra))}, which the entry does not take", code="TP502")


def _read(archive: zipfile.ZipFile, info: zipfile.ZipInfo, what: str, name: str, type: TensorType) -> np.ndarray:
    try:
        with archive.open(info) as stream:
            dtype, shape = _header(stream)
            _check_type(dtype, shape, what, name, type)
            expected = stream.tell() + dtype.itemsize * type.size
        if info.file_size != expected:
            raise ValueError(f"it has {info.file_size} bytes, its header promises {expected}")
        with archive.open(info) as stream:
            array = npy.read_array(stream, allow_pickle=False)
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise ConfigurationError(f"{what} is no array that can be read: {error}", code="TP502") from None
    return array.view(numpy_dtype(type.dtype)) if array.dtype.kind == "V" else array


def _header(stream: IO[bytes]) -> tuple[np.dtype, tuple[int, ...]]:
    version = npy.read_magic(stream)
    if version == (1, 0):
        shape, _, dtype = npy.read_array_header_1_0(stream)
    elif version == (2, 0):
        shape, _, dtype = npy.read_array_header_2_0(stream)
    else:
        raise ValueError(f"its format is {version[0]}.{version[1]}, topos reads 1.0 and 2.0")
    return dtype, shape


def _check_type(dtype: np.dtype, shape: tuple[int, ...], what: str, name: str, type: TensorType) -> None:
    stored_as_bytes = type.dtype == "bf16" and dtype == np.dtype("V2")  # NumPy's files do not know bfloat16
    known = "bf16" if stored_as_bytes else dtype_name(dtype.newbyteorder("="))
    found = f"{known or dtype}[{','.join(map(str, shape))}]"
    if dtype.hasobject or known != type.dtype or shape != type.shape:
        raise ConfigurationError(f"{what} is {found}, the entry takes {name} {type}; cast or reshape it", code="TP502")


def _seeded(type: TensorType, bounds: tuple[int, int] | None, generator: np.random.Generator) -> np.ndarray:
    dtype = numpy_dtype(type.dtype)
    if type.dtype in FLOATS:
        return generator.standard_normal(type.shape).astype(dtype)
    if type.dtype == "bool":
        return generator.integers(0, 2, type.shape).astype(dtype)
    low, high = bounds or (0 if type.dtype in UNSIGNED else -_UNBOUNDED, _UNBOUNDED)
    return generator.integers(low, high, type.shape).astype(dtype)
