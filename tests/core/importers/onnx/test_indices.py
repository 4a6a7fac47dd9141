"""An index that ONNX refuses is an error here too, and not another element."""

from pathlib import Path

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from onnx import helper  # noqa: E402

from tests.core.importers.onnx.models import model, onnxruntime, record  # noqa: E402
from topos_core.errors import ConfigurationError  # noqa: E402
from topos_core.run.interpreter import interpret  # noqa: E402

X = np.arange(15, dtype=np.float32).reshape(3, 5)
NODES = {
    "Gather": (helper.make_node("Gather", ["x", "i"], ["y"], axis=1), [2], [3, 2], 5),
    "GatherElements": (helper.make_node("GatherElements", ["x", "i"], ["y"], axis=1), [3, 1], [3, 1], 5),
    "GatherND": (helper.make_node("GatherND", ["x", "i"], ["y"]), [1, 2], [1], 3),
    "GatherND in batches": (helper.make_node("GatherND", ["x", "i"], ["y"], batch_dims=1), [3, 1], [3], 5),
    "ScatterElements": (
        helper.make_node("ScatterElements", ["x", "i", "u"], ["y"], axis=1, reduction="add"), [3, 1], [3, 5], 5,
    ),
    "ScatterND": (helper.make_node("ScatterND", ["x", "i", "v"], ["y"], reduction="add"), [1, 2], [3, 5], 3),
}  # fmt: skip


@pytest.mark.parametrize("name", NODES)
def test_an_index_outside_is_an_error_as_in_onnxruntime(name: str, tmp_path: Path) -> None:
    node, shape, result, extent = NODES[name]
    arrays = {"u": np.ones((3, 1), np.float32), "v": np.ones(1, np.float32)}
    used = {key: array for key, array in arrays.items() if key in node.input}
    made = model([node], [("x", "f32", [3, 5]), ("i", "i64", shape)], [("y", "f32", result)], used)
    tape = record(made, tmp_path)
    for index in (-extent - 1, -extent, extent - 1, extent):
        given = np.zeros(shape, np.int64)
        given.reshape(-1)[0] = index
        if -extent <= index < extent:
            (got,), (wanted,) = interpret(tape, [X, given]), onnxruntime(made, {"x": X, "i": given})
            np.testing.assert_array_equal(got, wanted)
            continue
        with pytest.raises(ConfigurationError, match=f"is out of range for an axis of {extent}; use "):
            interpret(tape, [X, given])
