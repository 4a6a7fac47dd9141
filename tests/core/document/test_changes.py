from __future__ import annotations

import copy
from typing import Any

import pytest

from topos_core.document.changes import PLAN, REST, changes


def document(*regions: tuple[str, str]) -> dict[str, Any]:
    rows = [{"id": name, "verdict": verdict} for name, verdict in regions]
    return {**dict.fromkeys((*PLAN, *REST), 0), "regions": rows}


def applied(base: dict[str, Any], found: dict[str, Any]) -> list[dict[str, Any]]:
    """Rebuilds the planned regions from the base and what changed, as a front end does."""
    rows = {row["id"]: row for row in base["regions"] if row["id"] not in found["removed"]}
    rows |= {row["id"]: row for row in found["changed"]}
    return [rows[name] for name in found["order"] or rows]


@pytest.mark.parametrize(
    ("before", "after", "changed", "removed"),
    [
        ([("a", "taken")], [("a", "taken")], [], []),
        ([("a", "blocked"), ("b", "taken")], [("a", "taken"), ("b", "taken")], ["a"], []),
        ([("a", "blocked")], [("c", "taken"), ("a", "declined")], ["c", "a"], []),
        ([("a", "taken"), ("b", "taken")], [("b", "taken")], [], ["a"]),
        ([("a", "taken"), ("b", "taken")], [("b", "taken"), ("a", "taken")], [], []),
        ([], [("a", "taken")], ["a"], []),
    ],
)
def test_only_what_differs_is_told_and_rebuilds_the_plan(
    before: list[tuple[str, str]], after: list[tuple[str, str]], changed: list[str], removed: list[str]
) -> None:
    base, planned = document(*before), document(*after)
    kept = copy.deepcopy(base)
    found = changes(base, planned)
    assert [row["id"] for row in found["changed"]] == changed
    assert found["removed"] == removed
    assert applied(base, found) == planned["regions"]
    assert base == kept
