"""Small ONNX models, written as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

from topos_core.importers.onnx_model.record import record_onnx
from topos_core.tape.tape import Tape

NUMBERS = {"f32": TensorProto.FLOAT, "i64": TensorProto.INT64, "bool": TensorProto.BOOL, "string": TensorProto.STRING}
Typed = tuple[str, str, Sequence[int | str | None]]


def model(
    nodes: Sequence[Any],
    inputs: Sequence[Typed],
    outputs: Sequence[Typed],
    arrays: Mapping[str, np.ndarray] | None = None,
    *,
    opset: int = 17,
    functions: Sequence[Any] = (),
    domains: Sequence[str] = (),
) -> Any:
    """Builds a model; inputs and outputs are (name, dtype, shape)."""
    graph = helper.make_graph(
        list(nodes),
        "net",
        [helper.make_tensor_value_info(name, NUMBERS[dtype], shape) for name, dtype, shape in inputs],
        [helper.make_tensor_value_info(name, NUMBERS[dtype], shape) for name, dtype, shape in outputs],
        [numpy_helper.from_array(array, name) for name, array in (arrays or {}).items()],
    )
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 1) for domain in domains)]
    made = helper.make_model(graph, opset_imports=opsets, functions=list(functions))
    made.ir_version = 10
    return made


def record(made: Any, folder: Path, **keywords: Any) -> Tape:
    """Saves a model and reads it as topos does."""
    path = folder / "net.onnx"
    save(made, str(path))
    return record_onnx(str(path), **keywords)


def onnxruntime(made: Any, inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """Runs a model in onnxruntime without its optimiser."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = ort.InferenceSession(made.SerializeToString(), options, providers=["CPUExecutionProvider"])
    results: list[np.ndarray] = session.run(None, dict(inputs))
    return results


def weights(*shape: int, seed: int = 0) -> np.ndarray:
    """Gives seeded weights, f32."""
    return (np.random.default_rng(seed).standard_normal(shape) * 0.2).astype(np.float32)
