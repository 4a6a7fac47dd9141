"""Nodes over known numbers are worked out while the model is read: shapes, axes and indices, by topos's own ops.

What it gives is what the same ops would give in a run. Only small results count, and floats of more than 64 elements stay
recorded, so weights are never folded away from the patterns.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from topos_core.importers.onnx_model.node import Node, Translate, Unsupported
from topos_core.ops.catalog import definition
from topos_core.recording.constant import LARGEST_FLOAT_TABLE, LARGEST_TABLE
from topos_core.recording.recorder import Recorder, recording
from topos_core.recording.value import Value
from topos_core.tape.type import TensorType, dtype_name, is_float

_MAX_ELEMENTS: Final = 2**22
_NEVER: Final = frozenset(("opaque", "pick"))


def is_small(array: np.ndarray) -> bool:
    """Tells whether an array may stand as numbers: the rule that separates constants from parameters."""
    return array.size <= (LARGEST_FLOAT_TABLE if is_float(array.dtype) else LARGEST_TABLE)


def fold(node: Node, translate: Translate) -> list[np.ndarray | None] | None:
    """Works a node out; None where an operand or a result is no small known array.

    Raises:
        Unsupported: Its formula does not know the node.
    """
    if not all(held is None or isinstance(held, np.ndarray) for held in node.held) or not any(node.outputs):
        return None
    scratch = Recorder({})
    given: dict[int, np.ndarray] = {}

    def lift(at: int) -> Value:
        array = node.held[at]
        assert isinstance(array, np.ndarray)
        value = scratch.source("parameter", TensorType(dtype_name(array.dtype) or "f32", array.shape), 0)
        given[value.index] = array
        return value

    known = Node(scratch, node.op_type, node.domain, node.opset, node.attributes, node.held, node.outputs, lift)
    with recording(scratch):
        results = translate(known)
    listed = [results] if isinstance(results, (Value, np.ndarray)) else list(results)
    if sum(op.type.size for op in scratch.ops) > _MAX_ELEMENTS or any(op.name in _NEVER for op in scratch.ops):
        return None
    arrays = _evaluated(scratch, given)
    found = [
        None if each is None else np.asarray(arrays[each.index] if isinstance(each, Value) else each) for each in listed
    ]
    return found if all(each is None or is_small(each) for each in found) else None


def _evaluated(scratch: Recorder, given: dict[int, np.ndarray]) -> list[np.ndarray]:
    arrays: list[np.ndarray] = []
    with np.errstate(all="ignore"):
        for index, op in enumerate(scratch.ops):
            known = given.get(index, scratch.defaults.get(index))
            if known is None and op.name in ("input", "parameter"):
                raise Unsupported("a formula made an input of its own")
            arrays.append(
                known
                if known is not None
                else definition(op.name).evaluate([arrays[each] for each in op.operands], op.attributes, op.type)
            )
    return arrays
