"""Which region leads, and which declined ones are no findings."""

from __future__ import annotations

import pytest

from topos_core.document.ranking import is_left, is_listed, order


def region(pattern: str, verdict: str, code: str | None = None, before: float = 1.0, after: float = 2.0) -> dict:
    cost = {"seconds_before": {"value": before}, "seconds_after": {"value": after}}
    return {"pattern": pattern, "verdict": verdict, "code": code, "cost": cost if code == "TP202" else {}}


def test_loops_of_small_ops_come_behind_whatever_else_stands_there():
    rows = [
        region("elementwise_chain", "declined", "TP202"),
        region("sibling_matmul", "declined", "TP206"),
        region("layer_norm", "taken"),
        region("batch_norm_training", "near_miss"),
        region("softmax", "declined", "TP206"),
        region("elementwise_chain", "blocked", "TP101"),
    ]
    told = [(row["pattern"], row["verdict"]) for row in sorted(rows, key=order)]
    assert told == [
        ("elementwise_chain", "blocked"),
        ("softmax", "declined"),
        ("batch_norm_training", "near_miss"),
        ("layer_norm", "taken"),
        ("elementwise_chain", "declined"),
        ("sibling_matmul", "declined"),
    ]
    assert [is_left(row) for row in sorted(rows, key=order)] == [False] * 4 + [True] * 2


@pytest.mark.parametrize(
    ("pattern", "code", "after", "listed"),
    [
        ("convolution", "TP202", 1.11, True),
        ("convolution", "TP202", 1.1, False),
        ("elementwise_chain", "TP202", 9.0, False),
        ("elementwise_chain", "TP206", 9.0, True),
        ("convolution", "TP203", 1.0, True),
    ],
)
def test_what_costs_as_much_and_what_is_left_are_no_findings(pattern, code, after, listed):
    assert is_listed(region(pattern, "declined", code, after=after)) == listed
