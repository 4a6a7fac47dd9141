"""`topos explain --corpus`: what is recognised in a folder, and what changed since a saved run."""

import json

import pytest

from topos_core.cli.main import main

MODEL = """\
import numpy as np
import topos_core as tp


@tp.model(x=tp.f32[4, 6])
def weights(x):
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / {sum}


@tp.model(x=tp.f32[4, 6], w=tp.f32[6, 3])
def layer(x, w):
    return x @ w
"""
SUM, GUARDED = "powers.sum(-1, keepdims=True)", "(powers.sum(-1, keepdims=True) + 1e-6)"

DIFFERENCE = (
    "      12 of the pattern's 13 steps held; expected the powers divided by their sum, found a constant added to the sum,"
    " which is never 0 once the maximum is subtracted\n"
    "      models/model.py:8:22: the first difference stands here\n"
)


@pytest.fixture
def project(empty_project):
    (empty_project / "pyproject.toml").write_text("[tool.topos]\nseconds = 60\n")
    (empty_project / "models").mkdir()
    written(empty_project, SUM)
    return empty_project


def written(project, total):
    (project / "models" / "model.py").write_text(MODEL.replace("{sum}", total))


def told(capsys, *arguments, status=0):
    assert main(["explain", "--corpus", "models", *arguments]) == status
    return capsys.readouterr().out


def test_everything_recognised_is_counted_by_pattern(project, capsys):
    out = told(capsys)
    assert out.splitlines()[0] == "2 regions in 2 entries"
    assert "softmax: 1" in out
    assert "linear: 1" in out


def test_nothing_changed_since_a_run_that_was_saved(project, capsys):
    told(capsys, "--save", "run.json")
    assert (
        told(capsys, "--against", "run.json") == "2 regions in 2 entries: the same regions and near misses as before\n"
    )


def test_moving_lines_and_renaming_changes_nothing(project, capsys):
    told(capsys, "--save", "run.json")
    text = (project / "models" / "model.py").read_text().replace("powers", "p")
    (project / "models" / "model.py").write_text("# a line more\n" + text)
    assert "the same regions" in told(capsys, "--against", "run.json")


def test_a_lost_region_is_told_with_what_is_nearly_matched_now_and_fails(project, capsys):
    told(capsys, "--save", "run.json")
    written(project, GUARDED)
    out = told(capsys, "--against", "run.json", status=1)
    assert "lost: 1\n  models/model.py:8:12: softmax" in out
    assert "nearly matched now: 1" in out
    assert out.endswith(DIFFERENCE)


def test_a_near_miss_is_told_with_what_was_expected_and_found(project, capsys):
    written(project, GUARDED)
    assert DIFFERENCE in told(capsys)


def test_a_run_that_was_saved_without_differences_is_compared(project, capsys):
    written(project, GUARDED)
    told(capsys, "--save", "run.json")
    run = json.loads((project / "run.json").read_text())
    for row in run["targets"]:
        for region in row["regions"]:
            del region["near_miss"]
    (project / "run.json").write_text(json.dumps(run))
    written(project, SUM)
    assert "no longer nearly matched: 1" in told(capsys, "--against", "run.json", status=1)


def test_a_gained_region_is_told_beside_the_loops_that_it_took_in(project, capsys):
    written(project, GUARDED)
    told(capsys, "--save", "run.json")
    written(project, SUM)
    answer = json.loads(told(capsys, "--against", "run.json", "--json", status=1))
    assert answer["schema"] == "topos.corpus/1"
    assert [(each["target"], each["pattern"]) for each in answer["gained"]] == [("models/model.py:weights", "softmax")]
    assert {each["pattern"] for each in answer["lost"]} == {"reduction_elementwise"}
    assert [each["pattern"] for each in answer["near_lost"]] == ["softmax"]


def test_an_entry_that_cannot_be_traced_is_told_and_loses_nothing(project, capsys):
    told(capsys, "--save", "run.json")
    written(project, "undefined")
    out = told(capsys, "--against", "run.json", status=3)
    assert "could not be traced: models/model.py:weights" in out
    assert "lost" not in out


def test_an_entry_that_is_gone_is_named(project, capsys):
    told(capsys, "--save", "run.json")
    text = (project / "models" / "model.py").read_text()
    (project / "models" / "model.py").write_text(text[: text.index("@tp.model(x=tp.f32[4, 6], w")])
    assert "not in this run: models/model.py:layer" in told(capsys, "--against", "run.json")


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"schema": "topos.check/1"}', '{"schema": "topos.corpus/1", "targets": [1]}']
)
def test_a_file_that_is_no_run_is_refused(project, capsys, text):
    (project / "run.json").write_text(text)
    assert main(["explain", "--corpus", "models", "--against", "run.json"]) == 2
    assert "run.json is no" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["softmax", "--corpus", "models"], "--corpus stands alone"),
        (["softmax", "--save", "run.json"], "--save belongs to --corpus FOLDER"),
        (["softmax", "--json"], "--json belongs to --phases or --corpus FOLDER"),
        (["--phases", "--corpus", "models"], "--corpus stands alone; drop --phases"),
        ([], "name a target, a pattern or a code to explain"),
    ],
)
def test_what_does_not_go_together_is_refused(project, capsys, arguments, said):
    assert main(["explain", *arguments]) == 2
    assert said in capsys.readouterr().err
