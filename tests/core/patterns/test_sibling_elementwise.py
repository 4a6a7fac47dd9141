from __future__ import annotations

import numpy as np

import topos_core as tp
from tests.core.patterns.check import agrees, check_not, searched
from topos_core.matching.certificate import certify

X = {"x": "f32[4,6]"}


def siblings(function, specs):
    tape, pool = searched(function, specs)
    found = [match for match in pool.matches if match.pattern == "sibling_elementwise"]
    for match in found:
        agrees(tape, match)
        assert certify(tape, match).answer == "true"
    return [(len(match.facts.steps), len(match.facts.results)) for match in found]


def test_groups_of_any_length_lie_side_by_side():
    assert siblings(lambda x: (np.tanh(x), np.sqrt(np.abs(x)) + 1, x * x), X) == [(5, 3)]


def test_a_shared_inner_value_is_one_that_both_read():
    def program(x):
        y = np.tanh(x)
        return y * 2, y + 1, y

    assert siblings(program, X) == [(2, 2)]


def test_groups_that_feed_each_other_are_none():
    def program(x):
        total = (x * 2).sum(0)
        return x + total, total

    check_not("sibling_elementwise", program, X, None)


def test_a_group_whose_operand_is_made_after_the_first_one_starts_a_new_set():
    def program(x, w):
        a = np.tanh(x)
        b = np.sqrt(np.abs(x))
        c = x * (a @ w)
        d = x + 1.0
        return a, b, c, d

    found = siblings(program, {"x": "f32[6,6]", "w": "f32[6,6]"})
    assert [results for _, results in found] == [2, 2]


def test_every_result_may_be_read_returned_and_observed():
    def program(x):
        low, high = np.minimum(x, 0.5) * 2 + 1, np.maximum(x, 0.5) * 3 - 1
        tp.observe(low, "low")
        return low.sum(0), high

    plan = tp.plan(tp.trace(program, x="f32[600,700]"), machine="reference", cost="always")
    assert "sibling_elementwise" in [d.match.pattern for d in plan.taken]
    x = np.random.default_rng(0).standard_normal((600, 700)).astype(np.float32)
    (total, high), seen = plan.run(x, observed=True)
    low = np.minimum(x, np.float32(0.5)) * 2 + 1
    np.testing.assert_array_equal(seen["low"], low)
    np.testing.assert_array_equal(high, np.maximum(x, np.float32(0.5)) * 3 - 1)
    np.testing.assert_array_equal(total, low.sum(0))
