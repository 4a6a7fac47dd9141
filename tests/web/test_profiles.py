"""Measurements on the page's server: what is read, what is refused, whose they are."""

from __future__ import annotations

import contextlib
import io
import json
import math
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.web.documents import convolution, measured, norms
from tests.web.planners import GivenPlanner
from tests.web.serving import TOKEN
from topos_core.errors import ConfigurationError
from topos_web import app, static
from topos_web.events import Hub
from topos_web.plans import Plans
from topos_web.profiles import fault_of, read

MODEL = """\
import numpy as np
import topos_core as tp


@tp.model(x=tp.f32[64, 256])
def main(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True) + 1
"""


def served(*profiles: Any) -> TestClient:
    plans = Plans(GivenPlanner(convolution(observed=True), norms()), profiles=profiles)
    plans.refresh()
    client = TestClient(app.build(plans, Hub(), TOKEN, static.load()), base_url="http://127.0.0.1:8470")
    client.headers["authorization"] = f"Bearer {TOKEN}"
    return client


def test_a_profile_is_served_with_its_own_target_and_with_no_other() -> None:
    profile = {**measured(norms()), "file": "norms.json"}
    client = served(profile)
    first, second = client.get("/api/v1/plans").json()
    assert (first["profile"], second["profile"]) == (False, True)
    assert client.get(f"/api/v1/plans/{second['id']}/profile").json() == profile
    assert client.get(f"/api/v1/plans/{first['id']}/profile").status_code == 404


def test_the_last_profile_of_a_target_wins() -> None:
    old, new = {**measured(norms()), "file": "old.json"}, {**measured(norms()), "file": "new.json"}
    client = served(old, new)
    plan = client.get("/api/v1/plans").json()[1]
    assert client.get(f"/api/v1/plans/{plan['id']}/profile").json()["file"] == "new.json"


def test_what_topos_bench_writes_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from topos_core.cli.main import main

    (tmp_path / "model.py").write_text(MODEL)
    monkeypatch.chdir(tmp_path)
    arguments = ["--json", "--with", "home,interpreter", "--rounds", "1", "--seconds", "0.01", "--threads", "1"]
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert main(["bench", "model.py", *arguments]) == 0
    (tmp_path / "bench.json").write_text(out.getvalue())
    profile = read(str(tmp_path / "bench.json"))
    assert profile["file"] == "bench.json"
    assert profile["target"] == "model.py:main"
    (taken,) = [region for region in profile["regions"] if region["verdict"] == "taken"]
    assert taken["seconds"]["basis"] == "measured"
    assert taken["id"] in {step["region"] for step in profile["profile"]["steps"]}


WRONG: dict[str, tuple[Any, str]] = {
    "a list": ([], "it holds list"),
    "another schema": ({"schema": "topos.plan/1"}, "its schema is 'topos.plan/1'"),
    "no target": ({**measured(norms()), "target": 3}, "'target' is int"),
    "no regions": ({**measured(norms()), "regions": None}, "'regions' is NoneType"),
    "modelled seconds": (
        {**measured(norms()), "profile": {"recorded": [], "steps": [{"value": 1, "seconds": {"value": 1.0, "unit": "second", "basis": "modelled"}}]}},
        "'steps' are no values with measured seconds",
    ),
    "no number": (
        {**measured(norms()), "profile": {"steps": [], "recorded": [{"value": 1, "seconds": {"value": math.nan, "unit": "second", "basis": "measured"}}]}},
        "'recorded' are no values",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("found", "words"), WRONG.values(), ids=WRONG.keys())
def test_what_is_no_profile_is_told(found: Any, words: str) -> None:
    assert words in (fault_of(found) or "")


@pytest.mark.parametrize(
    ("text", "words"), [("{", "cannot be read as a profile"), ("{}", "is no profile: its schema is None")]
)
def test_a_file_that_is_none_ends_the_command_with_its_name(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "bench.json"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match=words) as refused:
        read(str(path))
    assert str(path) in str(refused.value)
    assert refused.value.code == "TP505"
    with pytest.raises(ConfigurationError, match="cannot be read"):
        read(str(tmp_path / "nowhere.json"))


def test_a_digest_of_another_program_is_left_to_the_page() -> None:
    client = served({**measured(norms()), "digest": "0" * 64})
    plan = client.get("/api/v1/plans").json()[1]
    assert json.loads(client.get(f"/api/v1/plans/{plan['id']}/profile").text)["digest"] == "0" * 64
