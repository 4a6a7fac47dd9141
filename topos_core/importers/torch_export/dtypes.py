"""Between torch's tensors and topos's types and arrays. Needs torch."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from topos_core.tape.type import TensorType, numpy_dtype


@cache
def _names() -> dict[Any, str]:
    import torch

    return {
        torch.float16: "f16", torch.bfloat16: "bf16", torch.float32: "f32", torch.float64: "f64",
        torch.int8: "i8", torch.int16: "i16", torch.int32: "i32", torch.int64: "i64",
        torch.uint8: "u8", torch.uint16: "u16", torch.uint32: "u32", torch.uint64: "u64", torch.bool: "bool",
    }  # fmt: skip


def name_of(dtype: Any) -> str | None:
    """Gives topos's name of a torch dtype; None for complex, 8-bit floats and quantized ones."""
    return _names().get(dtype)


def torch_dtype(name: str) -> Any:
    """Gives torch's dtype of a name."""
    return next(dtype for dtype, known in _names().items() if known == name)


def type_of(tensor: Any) -> TensorType | None:
    """Gives a tensor's type; None where its dtype is foreign, it is not dense, or an extent depends on data."""
    import torch

    if not isinstance(tensor, torch.Tensor) or tensor.layout != torch.strided:
        return None
    name = name_of(tensor.dtype)
    extents = [_extent(extent) for extent in tensor.shape]
    return None if name is None or None in extents else TensorType(name, tuple(e for e in extents if e is not None))


def _extent(extent: Any) -> int | None:
    """Gives an extent as a number, also where export wraps one that is known."""
    if isinstance(extent, int):
        return extent
    known = getattr(getattr(extent, "node", None), "maybe_as_int", lambda: None)()
    return known if isinstance(known, int) else None


def array_of(tensor: Any) -> np.ndarray:
    """Copies a real tensor's elements into a read-only C-contiguous array."""
    import torch

    name = name_of(tensor.dtype)
    assert name is not None
    with torch.no_grad():
        plain = tensor.detach().cpu().contiguous()
        if name == "bf16":
            array = np.array(plain.view(torch.int16).numpy()).view(numpy_dtype("bf16"))
        else:
            array = np.array(plain.numpy(), numpy_dtype(name), order="C")
    array.flags.writeable = False
    return array


def is_real(tensor: Any) -> bool:
    """Tells a tensor whose elements exist from a fake one and one on the meta device."""
    from torch._subclasses.fake_tensor import FakeTensor

    return not isinstance(tensor, FakeTensor) and tensor.device.type != "meta"
