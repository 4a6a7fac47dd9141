from __future__ import annotations

import numpy as np
import pytest

from tests.core.patterns.check import check, check_not, searched
from topos_core import erf, observe

X = {"x": "f32[4,6]"}


def kinds(match):
    return [(step.op, step.kept) for step in match.facts.steps]


def test_a_result_that_goes_through_ops_as_it_is():
    match = check("reduction_elementwise", lambda x: np.sqrt(x.max(1)) + 1, X)
    assert kinds(match) == [("max", True), ("sqrt", True), ("add", True)]


def test_a_result_that_is_repeated_beside_its_operand():
    match = check("reduction_elementwise", lambda x: x - x.max(1, keepdims=True), X)
    assert kinds(match) == [("max", True), ("sub", False)]


def test_both_in_turn_and_ops_before_the_reduction():
    def program(x):
        return x / np.sqrt((x * x).sum(1, keepdims=True) + 1.0)

    match = check("reduction_elementwise", program, X)
    assert [kept for _, kept in kinds(match)] == [False, True, True, True, False]
    assert list(match.bindings.values()) == [0]


@pytest.mark.parametrize("axes", [0, 1, 2, (0, 2), (0, 1), (1, 2)])
def test_any_axes(axes):
    match = check("reduction_elementwise", lambda x: x - x.max(axes, keepdims=True), {"x": "f32[3,4,5]"})
    assert match.facts.reduced == (axes if isinstance(axes, tuple) else (axes,))


def test_vectors_beside_the_result_have_the_kept_axes():
    match = check("reduction_elementwise", lambda x, b: x.max(1) * b + 1, {**X, "b": "f32[4]"})
    assert match.facts.layouts["x1"].roles == ("0",)


def test_of_a_square_only_the_reduced_axis_is_repeated():
    square = {"x": "f32[5,5]"}
    check("reduction_elementwise", lambda x: x - x.max(0), square)
    check_not("reduction_elementwise", lambda x: x - x.max(1), square, None)


def test_a_value_before_the_reduction_that_is_read_behind_it_is_bound():
    def program(x):
        y = np.tanh(x)
        return y - y.min(-1, keepdims=True)

    tape, pool = searched(program, X)
    (match,) = (match for match in pool.matches if match.pattern == "reduction_elementwise")
    assert [tape.ops[value].name for value in match.bindings.values()] == ["tanh"]


def test_a_result_that_something_else_reads_ends_it():
    def program(x):
        top = x.max(1)
        return top * 2 + 1, top

    check_not("reduction_elementwise", program, X, None)


def test_two_reductions_are_not_one():
    def program(x):
        return (x - x.min(1, keepdims=True)) / (x.max(1, keepdims=True) + 2)

    _, pool = searched(program, X)
    found = [match for match in pool.matches if match.pattern == "reduction_elementwise"]
    assert all(sum(step.op in ("max", "min") for step in match.facts.steps) == 1 for match in found)
    assert found


def normalised(x):
    """Divides by a deviation with epsilon outside of the root: a layer norm for none but this pattern. The variance is read."""
    centred = x - x.mean(-1, keepdims=True)
    variance = (centred * centred).mean(-1, keepdims=True)
    observe(variance, "variance")
    return centred / (np.sqrt(variance) + 1e-3)


def gelu_beside(x):
    return normalised(x), 0.5 * x * (1.0 + erf(x * 0.7071067811865476))


@pytest.mark.parametrize("program", [normalised, gelu_beside])
def test_what_ends_where_it_is_observed_is_found_whatever_else_the_program_holds(program):
    tape, pool = searched(program, X)
    (observed,) = (row.value for row in tape.observations if row.name == "variance")
    roots = [match.root for match in pool.matches if match.pattern == "reduction_elementwise"]
    assert observed in roots
