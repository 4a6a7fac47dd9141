"""Spellings written from the textbook are recognised and proved; programs that only look alike are not taken for them."""

from __future__ import annotations

import pytest

from tests.conformance.coverage import rows, situations
from tests.conformance.spellings import groups

UNRECOGNISED: set[tuple[str, str]] = set()
"""Each stands under "Not recognised" in its pattern's page."""

MADE_OF_OTHERS = {"depthwise_pointwise", "layer_norm_linear"}
"""Their parts have eight spellings each."""


@pytest.mark.parametrize("pattern", groups())
def test_every_spelling_is_recognised_and_proved_and_no_look_alike_is(pattern):
    group = groups()[pattern]
    assert len(group.taken) >= (5 if pattern in MADE_OF_OTHERS else 8)
    assert len(group.other) >= 2
    table = rows(pattern, group)
    assert {(row.pattern, row.spelling) for row in table if not row.right} <= UNRECOGNISED
    assert {row.proof for row in table if row.found is not None} <= {"proved"}


def test_every_situation_names_its_test():
    assert len({number for number, _ in situations()}) > 60
