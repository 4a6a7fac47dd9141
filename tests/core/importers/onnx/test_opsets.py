"""One network in every operator set from 7 to the newest that is read."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed")
from onnx import defs, helper

import topos_core as tp
from tests.core.importers.onnx.models import model, record, weights
from topos_core.errors import TraceError


@pytest.mark.parametrize("opset", range(7, defs.onnx_opset_version() + 1))
def test_every_operator_set_from_7_to_the_newest_gives_the_same_regions(opset, tmp_path):
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], pads=[1, 1, 1, 1]),
        helper.make_node("BatchNormalization", ["a", "ones", "zeros", "zeros", "ones"], ["b"]),
        helper.make_node("Relu", ["b"], ["c"]),
        helper.make_node("MaxPool", ["c"], ["d"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Flatten", ["d"], ["e"]),
        helper.make_node("Gemm", ["e", "head", "bias"], ["f"]),
        helper.make_node("Softmax", ["f"], ["y"], axis=1),
    ]
    arrays = {
        "w": weights(4, 3, 3, 3), "ones": np.ones(4, np.float32), "zeros": np.zeros(4, np.float32),
        "head": weights(64, 10), "bias": weights(10),
    }  # fmt: skip
    made = model(nodes, [("x", "f32", [2, 3, 8, 8])], [("y", "f32", [2, 10])], arrays, opset=opset)
    tape = record(made, tmp_path)
    assert all(op.name != "opaque" for op in tape.ops)
    plan = tp.plan(tape, machine="reference", cost="always")
    found = sorted(decision.match.pattern for decision in plan.taken)
    assert found == ["conv_bn_activation", "linear", "softmax", "window_reduce"]


@pytest.mark.parametrize("is_test", [0, 1])
def test_below_7_what_is_not_said_to_be_a_test_is_training(is_test, tmp_path):
    nodes = [
        helper.make_node("BatchNormalization", ["x", "ones", "zeros", "zeros", "ones"], ["b"], is_test=is_test),
        helper.make_node("Dropout", ["b"], ["y"], is_test=is_test),
    ]
    arrays = {"ones": np.ones(3, np.float32), "zeros": np.zeros(3, np.float32)}
    made = model(nodes, [("x", "f32", [2, 3, 4])], [("y", "f32", [2, 3, 4])], arrays, opset=6)
    opaque = [op for op in record(made, tmp_path).ops if op.name == "opaque"]
    assert bool(opaque) == (not is_test)
    assert all("is_test=0" in str(op.attributes["note"]) or "reads" in str(op.attributes["note"]) for op in opaque)


def test_an_operator_set_that_onnx_does_not_know_is_refused_with_both_versions(tmp_path):
    newer = defs.onnx_opset_version() + 1
    node = helper.make_node("Relu", ["x"], ["y"])
    made = model([node], [("x", "f32", [2])], [("y", "f32", [2])], opset=newer - 1)
    made.opset_import[0].version = newer
    with pytest.raises(
        TraceError, match=rf"names opset {newer}, and onnx .* knows {newer - 1}; pip install --upgrade onnx"
    ):
        record(made, tmp_path)
