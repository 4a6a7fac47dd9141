"""What a what-if's comments make of a program is the plan that the what-if showed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from topos_web import as_code
from topos_web.agents import AgentPlanner

ROOT = Path(__file__).resolve().parents[2]


def said(regions: Iterable[Mapping[str, Any]]) -> dict[str, tuple[str, str | None]]:
    return {region["id"]: (region["verdict"], region["code"]) for region in regions}


@pytest.mark.parametrize(
    ("example", "entry", "pattern", "gone"),
    [
        ("observed", "hidden_observed", "elementwise_chain", ["elementwise_chain@14"]),  # beside a blocked region
        ("observed", "statistics_observed", "batch_norm_training", []),  # a smaller one comes up in its place
    ],
)
def test_the_comments_give_the_plan_that_the_whatif_showed(
    tmp_path: Path, example: str, entry: str, pattern: str, gone: list[str]
) -> None:
    text = (ROOT / "examples" / f"{example}.py").read_text()
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "net.py").write_text(text)
    planner = AgentPlanner([f"{tmp_path / 'net.py'}:{entry}"])
    try:
        (before,) = planner.trace()
        assert before.document is not None
        found = planner.changes(before.target, {"off": [pattern]})
        assert found["removed"] == gone
        written = as_code.comments(
            before.document, found, [pattern], lambda places: planner.changes(before.target, places)
        )
        assert written["nowhere"] == []
        lines = text.split("\n")
        for edit in written["edits"]:
            line = lines[edit["line"] - 1]
            lines[edit["line"] - 1] = line[: edit["column"]] + edit["text"] + line[edit["column"] :]
        (tmp_path / "net.py").write_text("\n".join(lines))
        (after,) = planner.trace()
    finally:
        planner.close()
    assert after.document is not None
    shown = {name: told for name, told in said(before.document["regions"]).items() if name not in gone}
    assert said(after.document["regions"]) == shown | said(found["changed"])
    assert after.document["counts"] == found["counts"]
