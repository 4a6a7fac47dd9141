"""The light models of the onnx package, weights seeded in place of their constants, against onnxruntime.

python -m tests.conformance.onnx_light [NAME ...]
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tests.conformance.onnx_suite import first_difference, opaque_reason
from topos_core.importers.onnx_model.record import record_model
from topos_core.run.interpreter import interpret


def models() -> list[Path]:
    """Lists the models."""
    import onnx

    return sorted((Path(onnx.__file__).parent / "backend" / "test" / "data" / "light").glob("*.onnx"))


def seeded(path: Path) -> Any:
    """Reads a model and puts seeded weights where it fills shapes with one number."""
    import onnx
    from onnx import numpy_helper

    model = onnx.load(str(path))
    shapes = {each.name: numpy_helper.to_array(each) for each in model.graph.initializer}
    rng = np.random.default_rng(0)
    kept = []
    for node in model.graph.node:
        if node.op_type == "Constant":
            shapes[node.output[0]] = numpy_helper.to_array(node.attribute[0].t)
    readers = {name: (node, at) for node in model.graph.node for at, name in enumerate(node.input)}
    for node in model.graph.node:
        if node.op_type == "ConstantOfShape" and node.input[0] in shapes and node.output[0] in readers:
            shape = [int(each) for each in shapes[node.input[0]]]
            reader, at = readers[node.output[0]]
            fan = max(math.prod(shape[1:]), 1)
            array = rng.standard_normal(shape) / math.sqrt(fan)
            if reader.op_type == "BatchNormalization" and at in (1, 4):
                array = 1 + np.abs(array) * 0.1
            model.graph.initializer.append(numpy_helper.from_array(array.astype(np.float32), node.output[0]))
        else:
            kept.append(node)
    del model.graph.node[:]
    model.graph.node.extend(kept)
    return model


def run(path: Path) -> str:
    """Gives `agrees`, or what does not."""
    import onnxruntime as ort

    model = seeded(path)
    tape = record_model(model, str(path.resolve()))
    reason = opaque_reason(tape)
    if reason:
        return f"opaque: {reason}"
    rng = np.random.default_rng(1)
    inputs = [rng.standard_normal(tape.type_of(value).shape).astype(np.float32) for value in tape.inputs]
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    wanted = session.run(None, {tape.names[value]: array for value, array in zip(tape.inputs, inputs, strict=True)})
    return first_difference(interpret(tape, inputs), wanted, 1e-3, 1e-4 * float(np.abs(wanted[0]).max())) or "agrees"


def outcomes(names: list[str]) -> Iterator[tuple[str, str]]:
    """Runs the models named, or all."""
    for path in models():
        if not names or path.stem in names:
            yield path.stem, run(path)


if __name__ == "__main__":
    for name, outcome in outcomes(sys.argv[1:]):
        print(f"{name:28} {outcome}", flush=True)
