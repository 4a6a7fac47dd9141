"""An ONNX file becomes a tape. The file is parsed, never run; initialisers are looked at where they lie."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from topos_core.errors import ConfigurationError, TraceError
from topos_core.importers.onnx_model.dtypes import DTYPES, described
from topos_core.importers.onnx_model.extents import Extents
from topos_core.importers.onnx_model.foreign import record_foreign
from topos_core.importers.onnx_model.graph import Walk
from topos_core.importers.onnx_model.noted import check_noted
from topos_core.importers.onnx_model.places import Listing
from topos_core.recording.collector import collector_paused
from topos_core.recording.finish import finish
from topos_core.recording.recorder import Recorder, recording
from topos_core.tape.tape import Structure, Tape
from topos_core.tape.type import TensorType

_MAX_BYTES: Final = 2**31 - 1
MAX_NODES: Final = 200_000


def record_onnx(
    path: str,
    *,
    dims: Mapping[str, int] | None = None,
    root: str | None = None,
    known: Mapping[str, np.ndarray] | None = None,
) -> Tape:
    """Reads an ONNX file.

    Args:
        path: The file, absolute.
        dims: Extents for the dimensions that it leaves open: by their names, else `INPUT_AXIS`.
        root: The project's folder; noted sources outside of it and of the model's folder are not read.
        known: Inputs that are numbers of the model rather than inputs, by name.

    Raises:
        ConfigurationError: TP505, the file is none or too long; TP209, a dimension has no extent.
        TraceError: TP409, onnx is missing; TP402, what the file holds cannot be read, or its opset is newer than onnx.
    """
    onnx = _onnx()
    size = os.path.getsize(path)
    if size > _MAX_BYTES:
        raise ConfigurationError(
            f"{os.path.basename(path)} has {size} bytes, a protobuf holds {_MAX_BYTES}; keep its weights as external data",
            code="TP505",
        )
    try:
        model = onnx.load(path, load_external_data=False)
    except Exception as error:  # protobuf and onnx raise a dozen kinds; each says that the file is none
        raise TraceError(f"{os.path.basename(path)} is no ONNX model: {error}", code="TP402") from None
    if not model.HasField("graph") or not model.opset_import:
        raise TraceError(f"{os.path.basename(path)} is no ONNX model: it has no graph or names no opset", code="TP402")
    return record_model(model, path, dims=dims, root=root, known=known)


def record_model(
    model: Any,
    path: str,
    *,
    dims: Mapping[str, int] | None = None,
    root: str | None = None,
    known: Mapping[str, np.ndarray] | None = None,
) -> Tape:
    """Does what `record_onnx` does, for a model that was parsed already."""
    _check_opset(model, path)
    model = _inlined(model)
    graph = model.graph
    count = _count(graph)
    if count > MAX_NODES:
        raise TraceError(f"the model has {count} nodes, topos reads {MAX_NODES}", code="TP402")
    initial = {each.name for each in graph.initializer}
    given = [each for each in graph.input if each.name not in initial]
    extents = Extents({} if dims is None else dims)
    types = _input_types(given, extents, known or {})
    listing = Listing(path, root)
    for each in given:
        listing.add(each, f"input {each.name}: {described(each.type)}")
    listing.add_nodes(graph)
    recorder = Recorder({path: listing.text})
    opsets = {"" if each.domain == "ai.onnx" else each.domain: each.version for each in model.opset_import}
    walk = Walk(recorder, os.path.dirname(path), opsets, model.ir_version, listing)
    with collector_paused(), recording(recorder):
        for each in given:
            _bind_input(walk, each, types.get(each.name), (known or {}).get(each.name))
        walk.graph(graph)
        with recorder.at(listing.location(None, graph.name)):
            leaves = [walk.value(each.name) for each in graph.output]
        check_noted(walk, model, leaves, extents)
        names = tuple(each.name for each in graph.output)
        children = tuple(Structure("leaf", index=at) for at in range(len(leaves)))
        structure = children[0] if len(children) == 1 else Structure("dict", children, names)
        return finish(recorder, structure, leaves)


def _onnx() -> Any:
    try:
        import onnx
        import onnx.inliner
    except ImportError:
        raise TraceError(
            "reading a .onnx file needs the onnx package; pip install 'topos-inspector[onnx]'", code="TP409"
        ) from None
    return onnx


def _check_opset(model: Any, path: str) -> None:
    """Refuses a model whose operators the installed package cannot know: one may mean something else there.

    Raises:
        TraceError: TP402, with both versions.
    """
    import onnx

    known = onnx.defs.onnx_opset_version()
    named = max((each.version for each in model.opset_import if each.domain in ("", "ai.onnx")), default=0)
    if named > known:
        raise TraceError(
            f"{os.path.basename(path)} names opset {named}, and onnx {onnx.__version__} knows {known}; "
            "pip install --upgrade onnx, or convert the model with onnx.version_converter",
            code="TP402",
        )


def _inlined(model: Any) -> Any:
    """Inlines the model's own functions, and those of ONNX that topos has no formula for.

    Raises:
        TraceError: TP402, a function calls itself, or inlining grows beyond bounds.
    """
    import onnx.inliner

    _check_functions(model)
    if model.functions:
        model = onnx.inliner.inline_local_functions(model)
    return model


def _check_functions(model: Any) -> None:
    """Refuses functions that call each other in a circle, and calls that would multiply beyond `MAX_NODES`."""
    functions = {(each.domain, each.name): each for each in model.functions}
    sizes: dict[tuple[str, str], int] = {}

    def size(key: tuple[str, str], above: tuple[tuple[str, str], ...]) -> int:
        if key in above or len(above) > 64:
            raise TraceError(f"the function {key[1]!r} calls itself, or functions nest more than 64 deep", code="TP402")
        if key not in sizes:
            sizes[key] = sum(
                size((node.domain, node.op_type), (*above, key)) if (node.domain, node.op_type) in functions else 1
                for node in functions[key].node
            )
        return sizes[key]

    total = sum(
        size((node.domain, node.op_type), ()) if (node.domain, node.op_type) in functions else 1
        for node in model.graph.node
    )
    if total > MAX_NODES:
        raise TraceError(
            f"the model has {total} nodes once its functions are inlined, topos reads {MAX_NODES}", code="TP402"
        )


def _count(graph: Any) -> int:
    from topos_core.importers.onnx_model.attributes import graphs_of

    return sum(1 + sum(map(_count, graphs_of(node))) for node in graph.node)


def _input_types(given: list[Any], extents: Extents, known: Mapping[str, np.ndarray]) -> dict[str, TensorType]:
    """Gives the types of the inputs that are tensors of a known dtype; every open dimension must have an extent."""
    types: dict[str, TensorType] = {}
    for each in given:
        tensor = each.type.tensor_type
        dtype = DTYPES.get(tensor.elem_type) if each.type.HasField("tensor_type") else None
        if dtype is not None and tensor.HasField("shape") and each.name not in known:
            shape = (extents.of_input(dim, each.name, axis) for axis, dim in enumerate(tensor.shape.dim))
            types[each.name] = TensorType(dtype, tuple(shape))
    extents.check()
    return types


def _bind_input(walk: Walk, given: Any, type: TensorType | None, known: np.ndarray | None) -> None:
    recorder = walk.recorder
    walk.declared[given.name] = given.type
    place = walk.listing.location(given, given.name)
    if known is not None:
        walk.held[given.name] = np.asarray(known)
    elif type is not None:
        value = recorder.source("input", type, recorder.locator.add(place))
        recorder.inputs.append(value.index)
        recorder.names[value.index] = given.name
        walk.held[given.name] = value
    else:
        with recorder.at(place):
            walk.held[given.name] = record_foreign(recorder, "input", (), (given.name,), (described(given.type),), "")[
                0
            ]
