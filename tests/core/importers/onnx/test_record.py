from pathlib import Path

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402

import topos_core as tp  # noqa: E402
from tests.core.importers.onnx.models import model, onnxruntime, record, weights  # noqa: E402
from topos_core.errors import TraceError  # noqa: E402
from topos_core.run.interpreter import interpret  # noqa: E402


def block():
    """A convolution with its norm, a pool, and a head whose batch extent is computed from the shape."""
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], "/b1/conv/Conv", pads=[1, 1, 1, 1]),
        helper.make_node("BatchNormalization", ["c", "s", "t", "m", "v"], ["n"], "/b1/bn/BatchNormalization"),
        helper.make_node("Relu", ["n"], ["r"], "/b1/Relu"),
        helper.make_node("MaxPool", ["r"], ["p"], "/pool/MaxPool", kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Shape", ["p"], ["extents"]),
        helper.make_node("Gather", ["extents", "zero"], ["batch"], axis=0),
        helper.make_node("Concat", ["batch", "rest"], ["shape"], axis=0),
        helper.make_node("Reshape", ["p", "shape"], ["f"]),
        helper.make_node("Gemm", ["f", "fw", "fb"], ["logits"], transB=1),
        helper.make_node("Softmax", ["logits"], ["y"], axis=-1),
    ]
    arrays = {
        "w": weights(16, 8, 3, 3), "b": weights(16), "s": weights(16, seed=1), "t": weights(16, seed=2),
        "m": weights(16, seed=3), "v": np.abs(weights(16, seed=4)) + 1, "fw": weights(10, 16 * 16), "fb": weights(10),
        "zero": np.array([0]), "rest": np.array([-1]),
    }  # fmt: skip
    return model(nodes, [("x", "f32", ["N", 8, 8, 8])], [("y", "f32", ["N", 10])], arrays)


def test_a_model_becomes_the_formulas_that_patterns_know(tmp_path: Path) -> None:
    plan = tp.plan(record(block(), tmp_path, dims={"N": 2}), cost="always", machine="reference")
    assert {"conv_bn_activation", "window_reduce", "softmax"} <= {decision.match.pattern for decision in plan.taken}


def test_a_model_computes_what_onnxruntime_computes(tmp_path: Path) -> None:
    made, x = block(), weights(2, 8, 8, 8)
    (result,) = interpret(record(made, tmp_path, dims={"N": 2}), [x])
    np.testing.assert_allclose(result, onnxruntime(made, {"x": x})[0], rtol=1e-5, atol=1e-6)


def test_an_open_dimension_is_told_with_its_name_and_remedy(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"N \(axis 0 of x\).*--dim N=4") as caught:
        record(block(), tmp_path)
    assert caught.value.code == "TP209"


def test_a_dimension_without_a_name_is_called_after_its_input(tmp_path: Path) -> None:
    made = model([helper.make_node("Relu", ["x"], ["y"])], [("x", "f32", [None, 3])], [("y", "f32", [None, 3])])
    with pytest.raises(TraceError, match="--dim x_0=4"):
        record(made, tmp_path)
    assert record(made, tmp_path, dims={"x_0": 5}).ops[0].type.shape == (5, 3)


def test_shapes_are_worked_out_and_leave_nothing_on_the_tape(tmp_path: Path) -> None:
    tape = record(block(), tmp_path, dims={"N": 2})
    assert not [op for op in tape.ops if op.type.dtype == "i64"]


def test_large_initialisers_are_parameters_by_name_and_small_ones_constants(tmp_path: Path) -> None:
    tape = record(block(), tmp_path, dims={"N": 2})
    assert sorted(tape.names[value] for value in tape.parameters) == ["fw", "w"]


def test_every_op_stands_on_the_line_of_its_node(tmp_path: Path) -> None:
    tape = record(block(), tmp_path, dims={"N": 2})
    (listing,) = tape.sources.values()
    relu = next(value for value, op in enumerate(tape.ops) if op.name == "maximum")
    place = tape.location_of(relu)
    assert listing.splitlines()[place.span.line - 1] == "/b1/Relu: r = Relu(n)"
    assert place.scope == ("b1",)


def test_an_unknown_operator_is_opaque_under_its_own_name(tmp_path: Path) -> None:
    made = model(
        [helper.make_node("Sharpen", ["x"], ["y"], domain="my.ops")], [("x", "f32", [2, 3])], [("y", "f32", [2, 3])],
        domains=["my.ops"],
    )  # fmt: skip
    tape = record(made, tmp_path)
    assert tape.ops[-1].attributes["foreign"] == "my.ops:Sharpen"
    assert str(tape.ops[-1].type) == "f32[2,3]"


def test_what_a_nested_graph_reads_is_an_operand_of_its_opaque_op(tmp_path: Path) -> None:
    def branch(name: str, operator: str) -> onnx.GraphProto:
        value = helper.make_tensor_value_info(name, TensorProto.FLOAT, [3])
        return helper.make_graph([helper.make_node(operator, ["hidden"], [name])], name, [], [value])

    choice = helper.make_node("If", ["flag"], ["y"], then_branch=branch("a", "Relu"), else_branch=branch("b", "Neg"))
    made = model(
        [helper.make_node("Exp", ["x"], ["hidden"]), choice], [("x", "f32", [3]), ("flag", "bool", [])],
        [("y", "f32", [3])],
    )  # fmt: skip
    tape = record(made, tmp_path)
    opaque = tape.ops[-1]
    assert opaque.attributes["foreign"] == "If"
    assert [tape.ops[operand].name for operand in opaque.operands] == ["input", "exp"]
    known = record(made, tmp_path, known={"flag": np.array(False)})
    assert [op.name for op in known.ops] == ["input", "exp", "neg"]


def test_strings_and_sequences_are_told_and_stop_nothing(tmp_path: Path) -> None:
    made = model(
        [
            helper.make_node("StringNormalizer", ["words"], ["clean"]),
            helper.make_node("SequenceConstruct", ["x", "x"], ["pair"]),
            helper.make_node("ConcatFromSequence", ["pair"], ["y"], axis=0),
            helper.make_node("Relu", ["x"], ["z"]),
        ],
        [("x", "f32", [2]), ("words", "string", [4])],
        [("y", "f32", [4]), ("z", "f32", [2])],
    )
    tape = record(made, tmp_path)
    assert {op.attributes["foreign"] for op in tape.ops if op.name == "opaque"} == {
        "input", "StringNormalizer", "SequenceConstruct", "ConcatFromSequence",
    }  # fmt: skip
    assert tape.structure.keys == ("y", "z")


def test_functions_of_the_model_are_inlined(tmp_path: Path) -> None:
    function = helper.make_function(
        "my", "Twice", ["a"], ["b"], [helper.make_node("Add", ["a", "a"], ["b"])], [helper.make_opsetid("", 17)]
    )
    made = model(
        [helper.make_node("Twice", ["x"], ["y"], domain="my")], [("x", "f32", [3])], [("y", "f32", [3])],
        functions=[function], domains=["my"],
    )  # fmt: skip
    assert [op.name for op in record(made, tmp_path).ops] == ["input", "add"]


def test_functions_that_call_themselves_are_refused(tmp_path: Path) -> None:
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("my", 1)]
    loop = helper.make_function("my", "F", ["a"], ["b"], [helper.make_node("F", ["a"], ["b"], domain="my")], opsets)
    made = model(
        [helper.make_node("F", ["x"], ["y"], domain="my")], [("x", "f32", [3])], [("y", "f32", [3])],
        functions=[loop], domains=["my"],
    )  # fmt: skip
    with pytest.raises(TraceError, match="calls itself"):
        record(made, tmp_path)


def test_functions_that_multiply_are_refused_before_they_are_inlined(tmp_path: Path) -> None:
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("my", 1)]
    functions = []
    for depth in range(40):
        inner = ("Relu", "") if depth == 0 else (f"F{depth - 1}", "my")
        nodes = [
            helper.make_node(inner[0], ["a"], ["b"], domain=inner[1]),
            helper.make_node(inner[0], ["b"], ["c"], domain=inner[1]),
        ]
        functions.append(helper.make_function("my", f"F{depth}", ["a"], ["c"], nodes, opsets))
    made = model(
        [helper.make_node("F39", ["x"], ["y"], domain="my")], [("x", "f32", [3])], [("y", "f32", [3])],
        functions=functions, domains=["my"],
    )  # fmt: skip
    with pytest.raises(TraceError, match="once its functions are inlined"):
        record(made, tmp_path)


def test_a_noted_source_is_shown_only_where_the_line_is_really_there(tmp_path: Path) -> None:
    source = tmp_path / "net.py"
    source.write_text("class Net:\n    def forward(self, x):\n        return x.relu()\n")
    for said, shown in (("return x.relu()", str(source)), ("return x.tanh()", str(tmp_path / "net.onnx"))):
        node = helper.make_node("Relu", ["x"], ["y"])
        noted = node.metadata_props.add()
        noted.key, noted.value = "pkg.torch.onnx.stack_trace", f'File "{source}", line 3, in forward\n    {said}'
        tape = record(model([node], [("x", "f32", [3])], [("y", "f32", [3])]), tmp_path, root=str(tmp_path))
        assert tape.location_of(tape.results[0]).span.path == shown


def test_a_file_that_is_no_model_is_an_error_of_its_own(tmp_path: Path) -> None:
    from topos_core.importers.model_file import read_model

    path = tmp_path / "net.onnx"
    path.write_bytes(b"\x00\x01 this is none")
    with pytest.raises(TraceError, match="no ONNX model"):
        read_model(str(path))


def test_initialisers_of_every_kind_are_read(tmp_path: Path) -> None:
    halves = helper.make_tensor(
        "h", TensorProto.FLOAT16, [2], np.array([1.5, -2.0], np.float16).view(np.uint16).tolist()
    )
    made = model([helper.make_node("Cast", ["h"], ["y"], to=1)], [], [("y", "f32", [2])])
    made.graph.initializer.append(halves)
    (result,) = interpret(record(made, tmp_path), [])
    np.testing.assert_array_equal(result, numpy_helper.to_array(halves).astype(np.float32))


def test_two_nodes_that_make_one_value_are_refused(tmp_path):
    nodes = [helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Neg", ["x"], ["y"])]
    made = model(nodes, [("x", "f32", [2, 3])], [("y", "f32", [2, 3])])
    with pytest.raises(TraceError, match="two nodes make 'y'"):
        record(made, tmp_path)
