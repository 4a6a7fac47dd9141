"""Nodes without a formula: opaque ops under their own name, with the types that ONNX's own inference gives them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from topos_core.importers.onnx_model.dtypes import DTYPES, described, static_type
from topos_core.importers.onnx_model.node import Foreign, Held
from topos_core.recording.recorder import Recorder
from topos_core.recording.value import Value
from topos_core.tape.type import TensorType, dtype_name

_NUMBERS: Final = {name: number for number, name in DTYPES.items()}
_LARGEST_KNOWN: Final = 4096


def record_foreign(
    recorder: Recorder,
    name: str,
    operands: Sequence[Value],
    outputs: Sequence[str],
    types: Sequence[TensorType | str],
    note: str,
) -> list[Held]:
    """Records one opaque op and picks its results; a type that is a text says why there is none."""
    wanted = [at for at, output in enumerate(outputs) if output]
    stated = [each if isinstance(each, TensorType) else _STAND_IN for each in (types[at] for at in wanted)]
    unknown = [f"{outputs[at]} is {types[at]}, shown as {_STAND_IN}" for at in wanted if isinstance(types[at], str)]
    text = "; ".join(part for part in (note, *unknown) if part)
    attributes = {"foreign": name, "types": tuple(stated), "note": text}
    made = recorder.record("opaque", tuple(operands), attributes)
    results: list[Held] = [None] * len(outputs)
    for place, at in enumerate(wanted):
        picked = made if len(wanted) == 1 else recorder.record("pick", (made,), {"index": place, "type": stated[place]})
        why = types[at]
        results[at] = (
            picked if isinstance(why, TensorType) else Foreign(picked, f"it reads {outputs[at]}, which is {why}")
        )
    return results


_STAND_IN: Final = TensorType("u8", (0,))


def infer_types(
    node: Any, held: Mapping[str, Held], declared: dict[str, Any], opsets: Mapping[str, int], ir_version: int
) -> list[TensorType | str]:
    """Gives the types of a node's results, by inference over the node alone, else as the model declares them.

    A text says what is known where that is no type. What was inferred is kept in `declared`, for the nodes behind.
    """
    found = inferred(node, held, declared, opsets, ir_version)
    result: list[TensorType | str] = []
    for name in node.output:
        proto = found.get(name)
        known = static_type(proto) if proto is not None else None
        if known is None and name in declared:
            known = static_type(declared[name])
            proto = declared[name] if proto is None else proto
        if proto is not None:
            declared[name] = proto
        result.append(known if known is not None else "of unknown type" if proto is None else described(proto))
    return result


def expanded(
    node: Any, held: Mapping[str, Held], declared: Mapping[str, Any], opsets: Mapping[str, int], ir_version: int
) -> list[Any] | None:
    """Gives the nodes that ONNX itself defines an operator by, for the types that its operands have here."""
    import onnx
    from onnx import defs, inliner

    version = opsets.get(node.domain, opsets.get("", 1))
    try:
        schema = defs.get_schema(node.op_type, version, node.domain)
    except defs.SchemaError:
        return None
    if not (schema.has_function or schema.has_context_dependent_function):
        return None
    alone = _alone(node, held, declared, opsets, ir_version)
    if alone is None:
        return None
    for name in node.output:
        if name in declared:
            next(each for each in alone.graph.output if each.name == name).type.CopyFrom(declared[name])
    try:
        typed = onnx.shape_inference.infer_shapes(alone, data_prop=True)
        inlined = inliner.inline_selected_functions(
            typed, [(node.domain, node.op_type)], exclude=False, inline_schema_functions=True
        )
    except Exception:  # whatever onnx's C++ throws: the operator then stays whole
        return None
    nodes = list(inlined.graph.node)
    return None if any((each.domain, each.op_type) == (node.domain, node.op_type) for each in nodes) else nodes


def inferred(
    node: Any, held: Mapping[str, Held], declared: Mapping[str, Any], opsets: Mapping[str, int], ir_version: int
) -> dict[str, Any]:
    """Runs ONNX's inference; only where every operand has a type, since its C++ follows null pointers."""
    from onnx import shape_inference

    alone = _alone(node, held, declared, opsets, ir_version)
    if alone is None:
        return {}
    try:
        graph = shape_inference.infer_shapes(alone, data_prop=True).graph
    except Exception:  # whatever onnx's C++ throws about a node: the type then stays unknown, and is told as such
        return {}
    return {each.name: each.type for each in (*graph.output, *graph.value_info) if each.type.WhichOneof("value")}


def _alone(
    node: Any, held: Mapping[str, Held], declared: Mapping[str, Any], opsets: Mapping[str, int], ir_version: int
) -> Any:
    """Makes a model of one node, its operands typed as they are here; None where one has no type."""
    import onnx
    from onnx import helper, numpy_helper

    inputs, known = [], []
    for name, value in held.items():
        if isinstance(value, np.ndarray):
            if value.size <= _LARGEST_KNOWN and value.dtype.name != "bfloat16":
                known.append(numpy_helper.from_array(np.ascontiguousarray(value).reshape(value.shape), name))
                continue
            kind = TensorType(dtype_name(value.dtype) or "f32", value.shape)
        elif isinstance(value, Value):
            kind = value.type
        elif name in declared:
            inputs.append(onnx.ValueInfoProto(name=name, type=declared[name]))
            continue
        else:
            return None
        inputs.append(helper.make_tensor_value_info(name, _NUMBERS[kind.dtype], kind.shape))
    outputs = [onnx.ValueInfoProto(name=name) for name in node.output if name]
    alone = helper.make_graph([node], "alone", inputs, outputs, known)
    imports = [helper.make_opsetid(name, version) for name, version in opsets.items()]
    model = helper.make_model(alone, opset_imports=imports)
    model.ir_version = max(ir_version, 8)
    return model
