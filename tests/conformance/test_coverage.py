"""Spellings written from the textbook are recognised and proved; programs that only look alike are not taken for them."""

from __future__ import annotations

import pytest

from tests.conformance.coverage import groups, rows, situations
from topos_core.matching.order import ORDER

UNRECOGNISED = {
    ("depthwise_pointwise", "channels_last"),
    ("depthwise_pointwise", "summed"),
    ("depthwise_pointwise", "by_matmul"),
    ("silu", "subtracted"),
    ("sibling_matmul", "summed"),
    ("sibling_elementwise", "rows"),
}
"""Each stands under "Not recognised" in its pattern's page."""


@pytest.mark.parametrize("pattern", groups())
def test_every_spelling_is_recognised_and_proved_and_no_look_alike_is(pattern):
    group = groups()[pattern]
    assert len([name for name in group.taken if (pattern, name) not in UNRECOGNISED]) >= 8
    assert len(group.other) >= 2
    table = rows(pattern, group)
    assert {(row.pattern, row.spelling) for row in table if not row.right} <= UNRECOGNISED
    assert {row.proof for row in table if row.found is not None} <= {"proved"}
    assert {row.home for row in table if row.found is not None} <= {"taken", "taken, alone"}


def test_every_pattern_has_spellings():
    assert list(groups()) == list(ORDER)


def test_every_situation_names_its_test():
    assert len({number for number, _ in situations()}) > 60
