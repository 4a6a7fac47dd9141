"""Extents that a model leaves open, and shapes that it notes for its results."""

from pathlib import Path

import numpy as np
import pytest
from onnx import helper

from tests.core.importers.onnx.models import model, record
from topos_core.errors import ConfigurationError, TraceError


def past(total: str, result: str | int | None = None):
    joined = helper.make_node("Concat", ["past", "new"], ["all"], axis=1)
    masked = helper.make_node("Mul", ["all", "mask"], ["y"])
    inputs = [("past", "f32", ["B", "p"]), ("new", "f32", ["B", "n"]), ("mask", "f32", [1, total])]
    return model([joined, masked], inputs, [("y", "f32", ["B", total if result is None else result])])


def relu(noted):
    return model([helper.make_node("Relu", ["x"], ["y"])], [("x", "f32", [2, 3])], [("y", "f32", noted)])


@pytest.mark.parametrize("total", ["p+n", "(p + n) // 2 * 2 + 1", "2 * n - p + 2"])
def test_a_sum_of_names_is_worked_out(tmp_path: Path, total: str) -> None:
    tape = record(past(total), tmp_path, dims={"B": 2, "p": 3, "n": 4})
    assert tape.type_of(tape.inputs[2]).shape == (1, 7)


@pytest.mark.parametrize("total", ["whole", "max(p, n)", "p+n"])
def test_a_name_with_a_number_of_its_own_has_that(tmp_path: Path, total: str) -> None:
    tape = record(past(total), tmp_path, dims={"B": 2, "p": 1, "n": 6, total: 7})
    assert tape.type_of(tape.inputs[2]).shape == (1, 7)


def test_what_is_missing_is_told_by_the_names_that_a_sum_is_made_of(tmp_path: Path) -> None:
    with pytest.raises(TraceError) as caught:
        record(past("p+n"), tmp_path, dims={"B": 2})
    assert "p (axis 1 of past), n (axis 1 of new) open; give numbers with --dim p=4 --dim n=4" in caught.value.message


def test_a_name_that_is_no_word_of_the_shell_is_quoted(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"--dim 'max\(p, n\)=4'"):
        record(past("max(p, n)"), tmp_path, dims={"B": 2, "p": 1, "n": 1})


def test_a_sum_in_a_result_is_checked(tmp_path: Path) -> None:
    tape = record(past("p+n", "n+p"), tmp_path, dims={"B": 2, "p": 3, "n": 4})
    assert not tape.notes
    tape = record(past("p+n", "p+n+1"), tmp_path, dims={"B": 2, "p": 3, "n": 4})
    assert [note.message for note in tape.notes] == [
        "y has the shape [2,7], by ONNX's inference too; the model notes [2,8]"
    ]


@pytest.mark.parametrize("noted", [[2, 3], ["N", "M"], [None, 3], [-1, 3]])
def test_a_name_of_a_result_alone_says_nothing_of_its_extent(tmp_path: Path, noted) -> None:
    assert not record(relu(noted), tmp_path, dims={"N": 5, "M": 5}).notes


@pytest.mark.parametrize("noted", [[3, 2], [2, 3, 1], [6]])
def test_a_note_that_onnx_itself_contradicts_is_told_and_passed_over(tmp_path: Path, noted) -> None:
    (note,) = record(relu(noted), tmp_path).notes
    assert note.code == "TP704"


def test_a_shape_that_a_computed_target_gives_is_confirmed_node_by_node(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("ReduceProd", ["shape"], ["count"], keepdims=1),
        helper.make_node("Reshape", ["x", "count"], ["y"]),
    ]
    made = model(nodes, [("x", "f32", [2, 3])], [("y", "f32", [2, 3])])
    (note,) = record(made, tmp_path).notes
    assert "[6], by ONNX's inference too; the model notes [2,3]" in note.message


def test_a_note_that_nobody_contradicts_but_topos_refuses_the_model(tmp_path: Path) -> None:
    node = helper.make_node("QuickGelu", ["x"], ["y"], domain="com.microsoft")
    made = model([node], [("x", "f32", [2, 3])], [("y", "f32", [3, 2])], domains=["com.microsoft"])
    with pytest.raises(TraceError, match=r"y has the shape \[2,3\], the model says \[3,2\]"):
        record(made, tmp_path)
    made.graph.output[0].type.tensor_type.shape.dim[0].dim_value = 2
    made.graph.output[0].type.tensor_type.shape.dim[1].dim_value = 3
    assert np.prod(record(made, tmp_path).ops[-1].type.shape) == 6


@pytest.mark.parametrize("extent", [-1, 2.0, "3", True])
def test_what_is_no_extent_is_told_with_its_name(tmp_path: Path, extent) -> None:
    with pytest.raises(ConfigurationError) as caught:
        record(past("p+n"), tmp_path, dims={"B": 2, "p": extent, "n": 4})
    assert caught.value.code == "TP504"
    assert f"extent p is {extent!r}, and an extent is a whole number from 0 on" in caught.value.message
