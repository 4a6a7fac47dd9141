"""Situations of foreign programs: other operator sets, other exporters, shapes that differ, random numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed")
from onnx import helper

import topos_core as tp
from tests.conformance.fusion.cases import case
from tests.core.importers.onnx.models import model, record, weights
from topos_core.errors import TraceError
from topos_core.tape.tape import Tape


def patterns(tape: Tape) -> list[str]:
    plan = tp.plan(tape, machine="reference", cost="always")
    return sorted(decision.match.pattern for decision in plan.taken)


def reduced(name: str, x: str, y: str, axes: list[int], opset: int, keep: int = 1) -> list:
    """Gives a reduction with its axes as an attribute, or as an input where the operator set has them there."""
    first = 13 if name == "ReduceSum" else 18
    if opset < first:
        return [helper.make_node(name, [x], [y], axes=axes, keepdims=keep)]
    values = helper.make_node("Constant", [], [f"{y}_axes"], value_ints=axes)
    return [values, helper.make_node(name, [x, f"{y}_axes"], [y], keepdims=keep)]


def normalised(opset: int):
    """A convolution, its batch norm and an activation, then a layer norm and a softmax in single operators."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1]),
        helper.make_node("BatchNormalization", ["y", "g", "b", "m", "v"], ["n"], epsilon=1e-5),
        helper.make_node("Relu", ["n"], ["r"]),
        *reduced("ReduceMean", "r", "mean", [-1], opset),
        helper.make_node("Sub", ["r", "mean"], ["d"]),
        helper.make_node("Mul", ["d", "d"], ["dd"]),
        *reduced("ReduceMean", "dd", "var", [-1], opset),
        helper.make_node("Add", ["var", "eps"], ["ve"]),
        helper.make_node("Sqrt", ["ve"], ["std"]),
        helper.make_node("Div", ["d", "std"], ["ln"]),
        *reduced("ReduceMax", "ln", "top", [-1], opset),
        helper.make_node("Sub", ["ln", "top"], ["s"]),
        helper.make_node("Exp", ["s"], ["e"]),
        *reduced("ReduceSum", "e", "t", [-1], opset),
        helper.make_node("Div", ["e", "t"], ["z"]),
    ]
    ones = np.ones(4, np.float32)
    arrays = {"w": weights(4, 3, 3, 3), "g": ones, "b": ones, "m": ones, "v": ones, "eps": np.float32(1e-5).reshape(())}
    return model(nodes, [("x", "f32", [2, 3, 8, 8])], [("z", "f32", [2, 4, 8, 8])], arrays, opset=opset)


@case(43)
def test_another_operator_set_gives_the_same_regions(tmp_path: Path) -> None:
    found = {opset: patterns(record(normalised(opset), tmp_path)) for opset in (11, 13, 15, 17, 18, 20)}
    assert set(found[11]) == {"conv_bn_activation", "layer_norm", "softmax"}
    assert all(each == found[11] for each in found.values())


@case(51)
def test_a_convolution_and_its_batch_norm_are_one_region_however_the_module_was_exported() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")

    class Functional(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.norm = torch.nn.Conv2d(3, 8, 3, bias=False), torch.nn.BatchNorm2d(8)

        def forward(self, x):
            y = torch.nn.functional.conv2d(x, self.conv.weight)
            norm = self.norm
            y = torch.nn.functional.batch_norm(y, norm.running_mean, norm.running_var, norm.weight, norm.bias)
            return torch.relu(y)

    def sequential():
        return torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, bias=False), torch.nn.BatchNorm2d(8), torch.nn.ReLU())

    image = torch.zeros(2, 3, 8, 8)
    modules = {"sequential": sequential().eval(), "functional": Functional().eval()}
    for strict in (False, True):
        program = torch.export.export(sequential().eval(), (image,), strict=strict)
        modules[f"exported, strict={strict}"] = program.module()
        modules[f"decomposed, strict={strict}"] = program.run_decompositions().module()
    found = {name: patterns(tp.trace(module, "f32[2,3,8,8]")) for name, module in modules.items()}
    assert found == {name: ["conv_bn_activation"] for name in modules}


@case(85)
def test_a_shape_that_differs_from_the_recorded_one_is_an_error(tmp_path: Path) -> None:
    def pooled(rows: int):
        node = helper.make_node(
            "MaxPool", ["x"], ["y"], kernel_shape=[2, 2], strides=[2, 2], pads=[1, 1, 1, 1], ceil_mode=1
        )
        return model([node], [("x", "f32", [1, 1, 5, 5])], [("y", "f32", [1, 1, rows, rows])], opset=17)

    tape = record(pooled(3), tmp_path)
    assert tape.type_of(tape.results[0]).shape == (1, 1, 3, 3)
    with pytest.raises(TraceError, match=r"y has the shape \[1,1,3,3\].*says \[1,1,4,4\]"):
        record(pooled(4), tmp_path)


@case(95)
def test_random_numbers_that_are_read_twice_are_made_once(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("RandomUniformLike", ["x"], ["noise"]),
        helper.make_node("Mul", ["x", "noise"], ["a"]),
        helper.make_node("Softmax", ["a"], ["p"], axis=-1),
        helper.make_node("Mul", ["p", "noise"], ["z"]),
    ]
    tape = record(model(nodes, [("x", "f32", [4, 6])], [("z", "f32", [4, 6])]), tmp_path)
    plan = tp.plan(tape, machine="reference", cost="always")
    (noise,) = [value for value, op in enumerate(tape.ops) if op.name == "opaque"]
    assert sum(noise in op.operands for op in tape.ops) == 2
    assert all(noise not in match.interior and noise != match.root for match in plan.planner.pool.matches)
    assert [decision.match.pattern for decision in plan.taken] == ["softmax"]


def heads_of_an_open_batch():
    """Attention whose batch is read from a shape and multiplied by the heads: what an export with a dynamic axis has."""
    whole = {"zero": 0, "three": 3, "four": 4, "five": 5, "twelve": 12}
    arrays = {name: np.array([number], np.int64) for name, number in whole.items()}
    arrays |= {name: weights(12, 12) for name in ("wq", "wk", "wv", "wo")}
    nodes = [
        helper.make_node("Shape", ["x"], ["extents"]),
        helper.make_node("Gather", ["extents", "zero"], ["batch"]),
        helper.make_node("Mul", ["batch", "three"], ["rows"]),
        helper.make_node("Concat", ["batch", "five", "three", "four"], ["cut"], axis=0),
        helper.make_node("Concat", ["rows", "five", "four"], ["flat"], axis=0),
        helper.make_node("Concat", ["batch", "three", "five", "four"], ["whole"], axis=0),
        helper.make_node("Concat", ["batch", "five", "twelve"], ["merged"], axis=0),
    ]
    for name in "qkv":
        nodes += [
            helper.make_node("MatMul", ["x", f"w{name}"], [f"{name}0"]),
            helper.make_node("Reshape", [f"{name}0", "cut"], [f"{name}1"]),
            helper.make_node("Transpose", [f"{name}1"], [f"{name}2"], perm=[0, 2, 1, 3]),
            helper.make_node("Reshape", [f"{name}2", "flat"], [name]),
        ]
    nodes += [
        helper.make_node("Transpose", ["k"], ["kt"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["q", "kt"], ["scores"]),
        helper.make_node("Mul", ["scores", "half"], ["scaled"]),
        helper.make_node("Softmax", ["scaled"], ["p"], axis=-1),
        helper.make_node("MatMul", ["p", "v"], ["seen"]),
        helper.make_node("Reshape", ["seen", "whole"], ["apart"]),
        helper.make_node("Transpose", ["apart"], ["turned"], perm=[0, 2, 1, 3]),
        helper.make_node("Reshape", ["turned", "merged"], ["joined"]),
        helper.make_node("MatMul", ["joined", "wo"], ["y"]),
    ]
    arrays["half"] = np.float32(0.5).reshape(())
    return model(nodes, [("x", "f32", ["B", 5, 12])], [("y", "f32", ["B", 5, 12])], arrays, opset=17)


@case(40, 97)
def test_a_batch_that_is_read_and_multiplied_is_named_and_taken_at_every_size(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"leaves B \(axis 0 of x\) open; give numbers with --dim B=4") as refused:
        record(heads_of_an_open_batch(), tmp_path)
    assert refused.value.code == "TP209"
    for batch in (1, 2, 7):
        tape = record(heads_of_an_open_batch(), tmp_path, dims={"B": batch})
        assert patterns(tape) == ["multi_head_attention"], batch
