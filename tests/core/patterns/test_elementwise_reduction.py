from __future__ import annotations

import numpy as np
import pytest

from tests.core.patterns.check import check, check_not, searched
from topos_core import nn

X = {"x": "f32[4,6]"}


def test_every_reduction_takes_the_ops_before_it():
    for reduce in (np.sum, np.prod, np.max, np.min):
        match = check("elementwise_reduction", lambda x, reduce=reduce: reduce(np.tanh(x) + 1, axis=1), X)
        assert match.facts.reduced == (1,)
        assert len(match.facts.steps) == 3


@pytest.mark.parametrize("axes", [0, 1, 2, (0, 2), (0, 1), None])
def test_axes_are_the_operands_own(axes):
    match = check("elementwise_reduction", lambda x: np.abs(x).sum(axes), {"x": "f32[3,4,5]"})
    wanted = (0, 1, 2) if axes is None else axes if isinstance(axes, tuple) else (axes,)
    assert match.facts.reduced == wanted


def test_axes_of_one_count_for_nothing():
    match = check("elementwise_reduction", lambda x: np.abs(x).sum((1, 2)), {"x": "f32[3,1,5]"})
    assert (match.facts.extents, match.facts.reduced) == ((3, 5), (1,))
    check_not("elementwise_reduction", lambda x: np.abs(x).sum(1), {"x": "f32[3,1,5]"}, None)


def test_a_count_of_what_holds_is_one():
    match = check("elementwise_reduction", lambda x: (x > 0).sum(-1), X)
    assert [step.op for step in match.facts.steps] == ["compare", "cast", "sum"]


def test_a_value_that_is_read_elsewhere_is_bound():
    def program(x):
        y = np.tanh(x)
        return (y * y + 1).sum(-1), y

    tape, pool = searched(program, X)
    (match,) = (match for match in pool.matches if match.pattern == "elementwise_reduction")
    assert [tape.ops[value].name for value in match.bindings.values()] == ["tanh"]


def test_what_another_pattern_has_is_left_to_it():
    for program in (lambda x: ((x - 1) ** 2).mean(), lambda x: nn.softmax(x).sum(0)):
        _, pool = searched(program, X)
        found = [match for match in pool.matches if match.pattern == "elementwise_reduction"]
        others = set().union(*(m.computing for m in pool.matches if m.pattern in ("mse_loss", "softmax")))
        assert all(others.isdisjoint(match.computing) for match in found)
