"""Values from nothing but shapes: constants, ranges, shapes of values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from topos_core.importers.onnx_model.dtypes import DTYPES
from topos_core.importers.onnx_model.folding import is_small
from topos_core.importers.onnx_model.node import Node, Translate, Unsupported
from topos_core.recording import constant, elementwise
from topos_core.tape.type import dtype_name, numpy_dtype


def _constant(node: Node) -> Any:
    for name, dtype in (("value_float", "f4"), ("value_floats", "f4"), ("value_int", "i8"), ("value_ints", "i8")):
        if name in node.attributes:
            return np.array(node.attributes[name], dtype)
    array = node.attribute("value")
    if not isinstance(array, np.ndarray):
        raise Unsupported("it holds strings, a sparse tensor, or an element type that topos does not have")
    return array if is_small(array) else constant.lift(node.recorder, array)


def _constant_of_shape(node: Node) -> Any:
    shape = tuple(int(each) for each in node.known(0, "shape").reshape(-1))
    given = node.attribute("value")
    if given is None and "value" in node.attributes:
        raise Unsupported("it fills with an element type that topos does not have")
    fill = np.float32(0) if given is None else given.reshape(-1)[0]
    return constant.splat(node.recorder, fill, dtype_name(fill.dtype) or "f32", shape)


def _shape(node: Node) -> Any:
    shape = node.x().shape
    start, end = node.attribute("start", 0), node.attribute("end")
    return np.array(shape[start:end], np.int64)


def _size(node: Node) -> Any:
    return np.array(node.x().size, np.int64)


def _range(node: Node) -> Any:
    start, limit, step = (node.known(at, "bounds").reshape(-1)[0] for at in range(3))
    count = max(int(np.ceil((float(limit) - float(start)) / float(step))), 0)
    if count > constant.LARGEST_TABLE:
        raise Unsupported(f"it counts to {count} elements")
    return np.asarray(start + np.arange(count).astype(start.dtype) * step, start.dtype)


def _eye_like(node: Node) -> Any:
    x = node.x()
    dtype = DTYPES.get(node.attribute("dtype", 0), x.type.dtype)
    return np.eye(x.shape[0], x.shape[1], k=node.attribute("k", 0)).astype(numpy_dtype(dtype))


def _one_hot(node: Node) -> Any:
    indices, depth = node.x(0), int(node.known(1, "depth").reshape(-1)[0])
    off, on = node.x(2)[0], node.x(2)[1]
    rank = indices.ndim + 1
    axis = node.axis(node.attribute("axis", -1), rank)
    places = np.arange(depth).reshape(tuple(-1 if at == axis else 1 for at in range(rank)))
    wide: Any = np.expand_dims(elementwise.cast(indices, "i64"), axis)
    wide = np.where(wide < 0, wide + depth, wide)
    return np.where(wide == places, on, off)


OPERATORS: Final[Mapping[str, Translate]] = {
    "Constant": _constant, "ConstantOfShape": _constant_of_shape, "Shape": _shape, "Size": _size, "Range": _range,
    "EyeLike": _eye_like, "OneHot": _one_hot,
}  # fmt: skip
