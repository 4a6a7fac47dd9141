"""Captured arrays: which are constants, which are parameters, and how views of them are recorded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.core.recording.check import agrees, names
from topos_core.recording.spec import f32
from topos_core.recording.trace import trace
from topos_core.run.interpreter import interpret

GENERATOR = np.random.default_rng(7)
W = GENERATOR.standard_normal((40, 4)).astype("f4")
SQUARE = GENERATOR.standard_normal((20, 20)).astype("f4")
LAYERS = GENERATOR.standard_normal((3, 20, 20)).astype("f4")
FLAT = GENERATOR.standard_normal(400).astype("f4")
RESHAPED = np.arange(100, dtype="f4").reshape(4, 25)
COLUMNS = np.asfortranarray(SQUARE)
WEIGHTS = {"encoder": {"w": SQUARE}, "layers": [W, W * 2]}


def test_float_arrays_above_64_elements_are_parameters() -> None:
    small, large = np.ones(64, "f4"), np.ones(65, "f4")
    assert not trace(lambda x: x + small, f32[64]).parameters
    tape = trace(lambda x: x + large, f32[65])
    assert len(tape.parameters) == 1
    (value,) = tape.parameters
    assert tape.ops[value].attributes == {"type": tape.type_of(value)}
    np.testing.assert_array_equal(tape.defaults[value], large)


def test_integer_and_bool_arrays_are_constants_up_to_a_million() -> None:
    table = np.arange(2**16).reshape(256, 256)
    tape = trace(lambda x: np.where(table > 5, x, 0) + table, f32[256, 256])
    assert not tape.parameters
    large = np.zeros(2**20 + 1, bool)
    assert len(trace(lambda x: np.where(large, x, 0), f32[2**20 + 1]).parameters) == 1


def test_constants_and_defaults_are_read_only_snapshots() -> None:
    small, large = np.ones(4, "f4"), np.ones(100, "f4")
    tape = trace(lambda x, y: (x + small, y + large), f32[4], f32[100])
    small[0] = large[0] = 5
    constant = next(value for value, op in enumerate(tape.ops) if op.name == "constant")
    for kept in (tape.constant(constant), tape.defaults[tape.parameters[0]]):
        assert kept[0] == 1
        assert not kept.flags.writeable


def test_memory_that_nobody_can_write_is_not_copied() -> None:
    frozen = np.ones(100, "f4")
    frozen.flags.writeable = False
    tape = trace(lambda x: x + frozen, f32[100])
    assert tape.defaults[tape.parameters[0]] is frozen


def transposed(x):
    return x @ W.T


def used_twice(x):
    return (x @ W.T) @ W


def one_layer(x):
    return (x @ W.T)[:, :20] @ LAYERS[1]


def two_layers(x):
    return (x @ W.T)[:, :20] @ LAYERS[0] @ LAYERS[2].T


def stepped(x):
    return x @ W[::2].T


def part_of_a_row(x):
    return x + W[3, 1:5] if W.shape[1] > 4 else x + W[3]


def columns(x):
    return (x @ W.T)[:, :20] @ COLUMNS


def columns_transposed(x):
    return (x @ W.T)[:, :20] @ COLUMNS.T @ COLUMNS


def reshaped_buffer(x):
    return x @ RESHAPED @ RESHAPED.T


def from_a_flat_vector(x):
    return x @ FLAT[:80].reshape(4, 20) @ FLAT[80:160].reshape(20, 4)


def regrouped(x):
    return x @ SQUARE.reshape(100, 4).T


def reversed_rows(x):
    return x @ W[::-1].T


def repeated_by_broadcasting(x):
    return x @ np.broadcast_to(FLAT[:100], (4, 100))


CASES: dict[Any, tuple[list[str], list[str]]] = {
    transposed: (["f32[40,4]"], ["permute", "matmul"]),
    used_twice: (["f32[40,4]"], ["permute", "matmul", "matmul"]),
    one_layer: (["f32[40,4]", "f32[3,20,20]"], ["permute", "matmul", "slice", "slice", "reshape", "matmul"]),
    two_layers: (
        ["f32[40,4]", "f32[3,20,20]"],
        ["permute", "matmul", "slice", "slice", "reshape", "matmul", "slice", "reshape", "permute", "matmul"],
    ),
    stepped: (["f32[40,4]"], ["slice", "permute", "matmul"]),
    part_of_a_row: (["f32[40,4]"], ["slice", "reshape", "broadcast", "add"]),
    columns: (["f32[40,4]", "f32[20,20]"], ["permute", "matmul", "slice", "matmul"]),
    columns_transposed: (["f32[40,4]", "f32[20,20]"], ["permute", "matmul", "slice", "permute", "matmul", "matmul"]),
    reshaped_buffer: (["f32[4,25]"], ["matmul", "permute", "matmul"]),
    from_a_flat_vector: (["f32[4,20]", "f32[20,4]"], ["matmul", "matmul"]),
    regrouped: (["f32[20,20]"], ["reshape", "permute", "matmul"]),
    reversed_rows: (["f32[40,4]"], ["permute", "reverse", "matmul"]),
    repeated_by_broadcasting: (["f32[400]"], ["slice", "reshape", "broadcast", "matmul"]),
}


@pytest.mark.parametrize("function", CASES, ids=lambda function: function.__name__)
def test_views_of_captured_arrays_are_views_of_one_parameter(function: Any) -> None:
    parameters, ops = CASES[function]
    tape = agrees(function, x=f32[3, 4])
    assert [str(tape.type_of(value)) for value in tape.parameters] == parameters
    assert names(tape) == ops


def row(x):
    return x + W[3] + (x @ W.T).sum()


def backwards(x):
    return x @ W[::-1].T @ W[:, ::-1] + W[7, ::-1]


def repeated(x):
    return x * np.broadcast_to(W[5], (3, 4)) + np.broadcast_to(W[3:6, 2:3], (3, 4))


def one_element_repeated(x):
    return x @ np.broadcast_to(W[0, 0], (4, 40)) @ W


def with_an_axis_of_one(x):
    return x * W[5:8, 1].reshape(3, 1) + W[:12:3, None, 2].T


@pytest.mark.parametrize(
    "function", [part_of_a_row, row, backwards, repeated, with_an_axis_of_one], ids=lambda function: function.__name__
)
def test_a_parameter_that_is_replaced_is_replaced_in_every_view_of_it(
    function: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    tape = trace(function, f32[3, 4])
    assert [tape.names[value] for value in tape.parameters] == ["W"]
    x, other = GENERATOR.standard_normal((3, 4)).astype("f4"), GENERATOR.standard_normal(W.shape).astype("f4")
    (found,) = interpret(tape, [x], {"W": other})
    monkeypatch.setitem(globals(), "W", other)
    np.testing.assert_allclose(found, function(x), rtol=1e-5, atol=1e-5)


def test_one_element_that_is_repeated_is_a_number() -> None:
    tape = agrees(one_element_repeated, x=f32[3, 4])
    assert [str(tape.type_of(value)) for value in tape.parameters] == ["f32[40,4]"]


def test_what_is_no_plain_view_does_not_bear_the_name_of_what_it_looks_at() -> None:
    tape = agrees(lambda x: x * np.diagonal(SQUARE) + x @ SQUARE, x=f32[3, 20])
    assert [tape.names[value] for value in tape.parameters] == ["SQUARE"]
    square = np.arange(400, dtype="f4").reshape(20, 20)
    overlapping = np.lib.stride_tricks.as_strided(square, (10, 10), (4, 4))
    tape = agrees(lambda x: x @ overlapping, x=f32[3, 10])
    assert [tape.names[value] for value in tape.parameters] == ["overlapping"]


def nested(x):
    return (x @ WEIGHTS["layers"][1].T)[:, :20] @ WEIGHTS["encoder"]["w"]


class Layer:
    def __init__(self) -> None:
        self.weight = W * 3
        self.inner = [SQUARE * 2]

    def __call__(self, x):
        return helper((x @ self.weight.T)[:, :20], self.inner[0])


def helper(x, matrix):
    return x @ matrix


def anonymous(x):
    return x @ (W * 2).T


def test_parameters_are_named_as_the_program_names_them() -> None:
    closed_over = W * 5

    def closure(x):
        return x @ closed_over.T

    found = {}
    for function in (transposed, nested, Layer(), closure, anonymous):
        tape = trace(function, f32[3, 4])
        found[getattr(function, "__name__", "layer")] = [tape.names[value] for value in tape.parameters]
    assert found == {
        "transposed": ["W"],
        "nested": ["WEIGHTS.layers.1", "WEIGHTS.encoder.w"],
        "layer": ["weight", "inner.0"],
        "closure": ["closed_over"],
        "anonymous": ["parameter_1"],
    }


def through_an_alias(x):
    w = WEIGHTS
    return x @ w["layers"][0].T


def test_a_global_name_is_preferred_to_a_local_alias() -> None:
    tape = trace(through_an_alias, f32[3, 4])
    assert [tape.names[value] for value in tape.parameters] == ["WEIGHTS.layers.0"]


def test_naming_thousands_of_parameters_walks_their_container_once() -> None:
    weights = {f"layer{k}": {"w": np.ones((9, 9), "f4")} for k in range(2000)}
    walked = 0

    class Counting(dict):
        def items(self):
            nonlocal walked
            walked += 1
            return super().items()

    held = Counting(weights)

    def model(x):
        for layer in held.values():
            x = x @ layer["w"]
        return x

    tape = trace(model, f32[2, 9])
    assert [tape.names[value] for value in tape.parameters] == [f"held.layer{k}.w" for k in range(2000)]
    assert walked == 1


def test_names_are_distinct_from_each_other_and_from_inputs() -> None:
    matrices = [W * k for k in range(3)]

    def model(matrix, x):
        for each in matrices:
            x = helper(x @ each.T, each)
        return x + matrix

    tape = trace(model, f32[4], f32[3, 4])
    assert [tape.names[value] for value in tape.parameters] == ["matrices.0", "matrices.1", "matrices.2"]
    assert len(set(tape.names.values())) == len(tape.names)


def test_an_array_that_changes_between_uses_is_two_parameters() -> None:
    weights = np.ones((20, 4), "f4")

    def model(x):
        y = x @ weights.T
        weights[:] *= 2
        return y + x @ weights.T

    tape = trace(model, f32[3, 4])
    assert [tape.defaults[value][0, 0] for value in tape.parameters] == [1, 2]


def test_numbers_become_splats_of_the_full_shape() -> None:
    tape = trace(lambda x: x * 2 + np.float32(1), f32[3, 4])
    constants = [op for op in tape.ops if op.name == "constant"]
    assert [(op.attributes["value"], str(op.type)) for op in constants] == [(2, "f32[3,4]"), (1, "f32[3,4]")]
    assert all(isinstance(op.attributes["value"], np.float32) for op in constants)
