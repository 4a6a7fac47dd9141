"""Attention, where no row can be masked as a whole; ONNX's own definition answers for the rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from topos_core import nn
from topos_core.importers.onnx_model.node import Node, Translate, Unsupported
from topos_core.recording import joining
from topos_core.recording.value import Value

_PLAIN: Final = ("softcap", "left_window_size", "right_window_size", "softmax_precision")
_LEFT_OUT: Final = (0.0, 0, -1, None)


def _attention(node: Node) -> Any:
    query, key, value = node.x(0), node.x(1), node.x(2)
    if node.has(6) or node.wants(3) or any(node.attribute(name) not in _LEFT_OUT for name in _PLAIN):
        raise Unsupported("it caps, windows or shows its scores; ONNX's definition would answer for it")
    if query.type.dtype in ("f16", "bf16"):
        raise Unsupported("it rounds halves at places of its own; ONNX's definition would answer for it")
    flat = query.ndim == 3
    if flat:
        heads, shared = node.attribute("q_num_heads"), node.attribute("kv_num_heads")
        query, key, value = _split(query, heads), _split(key, shared), _split(value, shared)
    past = 0
    if node.has(4):
        past = node.x(4).shape[2]
        key, value = joining.concatenate([node.x(4), key], 2), joining.concatenate([node.x(5), value], 2)
    mask = _mask(node, query.shape[2], key.shape[2], past)
    y = nn.attention(query, key, value, mask, scale=node.attribute("scale"))
    if flat:
        batch, heads, length, width = y.shape
        y = y.transpose(0, 2, 1, 3).reshape(batch, length, heads * width)
    return [y, key, value][: max(len(node.outputs), 1)]


def _split(x: Value, heads: int) -> Value:
    batch, length, width = x.shape
    return x.reshape(batch, length, heads, width // heads).transpose(0, 2, 1, 3)


def _mask(node: Node, rows: int, columns: int, past: int) -> Any:
    """Gives which keys are seen, as a table; every row must see one."""
    seen: Any = np.tri(rows, columns, past, dtype=bool) if node.attribute("is_causal", 0) else None
    if node.has(3):
        given = node.known(3, "mask")
        if given.dtype != np.bool_ or given.shape[-1] != columns:
            raise Unsupported("its mask is added, or shorter than the keys; ONNX's definition would answer for it")
        seen = given if seen is None else given & seen
    if seen is not None and not seen.any(axis=-1).all():
        raise Unsupported("a row of its mask hides every key; ONNX's definition would answer for it")
    return seen


OPERATORS: Final[Mapping[str, Translate]] = {"Attention": _attention}
