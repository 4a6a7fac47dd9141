"""ONNX element types by name: `TensorProto.FLOAT` is f32; strings, complex numbers, and 4 and 8 bit floats have none."""

from __future__ import annotations

from typing import Any, Final

from topos_core.tape.type import TensorType

DTYPES: Final = {
    1: "f32", 2: "u8", 3: "i8", 4: "u16", 5: "i16", 6: "i32", 7: "i64", 9: "bool", 10: "f16", 11: "f64", 12: "u32",
    13: "u64", 16: "bf16",
}  # fmt: skip


def static_type(proto: Any) -> TensorType | None:
    """Gives the type of a `TypeProto` if it is a tensor of a known dtype whose extents are numbers."""
    if not proto.HasField("tensor_type") or not proto.tensor_type.HasField("shape"):
        return None
    dtype = DTYPES.get(proto.tensor_type.elem_type)
    extents = tuple(
        dim.dim_value if dim.HasField("dim_value") and dim.dim_value >= 0 else None
        for dim in proto.tensor_type.shape.dim
    )
    if dtype is None or None in extents:
        return None
    return TensorType(dtype, tuple(extent for extent in extents if extent is not None))


def described(proto: Any) -> str:
    """Says what a `TypeProto` is, for people."""
    kind = proto.WhichOneof("value")
    if kind != "tensor_type":
        return str(kind or "untyped").removesuffix("_type")
    dtype = DTYPES.get(proto.tensor_type.elem_type, f"element type {proto.tensor_type.elem_type}")
    if not proto.tensor_type.HasField("shape"):
        return f"{dtype} of unknown rank"
    extents = [
        str(dim.dim_value) if dim.HasField("dim_value") else dim.dim_param or "?" for dim in proto.tensor_type.shape.dim
    ]
    return f"{dtype}[{','.join(extents)}]"
