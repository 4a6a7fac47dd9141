"""`topos plan --html` and the page's export: one file that holds the plan, its sources and what it emits."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.web.documents import hostile
from tests.web.planners import GivenPlanner
from tests.web.test_main import MODEL, ROOT
from topos_web.plans import Plans, Traced, plan_id


def held(text: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="topos-data">(.*?)</script>', text)
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    return data


def test_the_command_writes_what_the_plan_emits_too(tmp_path: Path) -> None:
    if not entry_points(group="topos.exporters", name="html"):
        pytest.skip("topos is not installed here: its exporter is found by an entry point")
    (tmp_path / "model.py").write_text(MODEL)
    command = [
        sys.executable,
        "-m",
        "topos_core.cli",
        "plan",
        str(tmp_path / "model.py"),
        "--html",
        str(tmp_path / "plan.html"),
    ]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    data = held((tmp_path / "plan.html").read_text())
    assert data["sources"] == [MODEL]
    assert "stablehlo.tanh" in data["emitted"]
    assert data["refusal"] is None


def test_the_page_exports_what_the_plan_emits_and_why_it_emits_nothing(
    client: TestClient, planner: GivenPlanner, plans: Plans
) -> None:
    path = f"/api/v1/plans/{plans.all()[0].id}/export"
    assert "stablehlo.add" in held(client.get(path).text)["emitted"]
    planner.traced = [Traced(hostile()["target"], hostile(), None)]
    plans.refresh()
    data = held(client.get(f"/api/v1/plans/{plan_id(hostile()['target'])}/export").text)
    assert (data["emitted"], data["refusal"]) == (None, "op <script> has no StableHLO form")
