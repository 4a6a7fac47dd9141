"""`topos bench` end to end: the table, the document and the picture of a small model. No time is asserted."""

import json

import pytest

from topos_core.cli.main import main

MODEL = """\
import topos_core as tp
from topos_core import nn


@tp.model(x=tp.f32[32, 64])
def main(x):
    return nn.softmax(nn.softmax(x) + 1).sum()
"""


ONNX_ALONE = "runs .onnx files alone, the target is model.py:main; bench an .onnx file that it was exported to"


@pytest.fixture
def project(empty_project):
    (empty_project / "pyproject.toml").write_text("")
    (empty_project / "model.py").write_text(MODEL)
    return empty_project


def bench(*arguments):
    return main(["bench", "model.py:main", "--rounds", "1", "--seconds", "0", "--threads", "1", *arguments])


def test_the_document_has_the_model_and_each_region_once_with_its_place(project, capsys):
    assert bench("--with", "home,interpreter,onnxruntime", "--json", "--cost", "always") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "topos.bench/1"
    assert [row["contender"] for row in document["model"]] == ["home", "interpreter"]
    first, second = (region for region in document["regions"] if region["pattern"] == "softmax")
    measured, alike = (first, second) if first["figures"] else (second, first)
    assert measured["alike"] == [alike["id"]]
    assert alike["figures"] == []
    assert all(row["failure"] is None and row["error"]["relative"] < 1e-5 for row in measured["figures"])
    for region in (first, second):
        assert (region["path"], region["line"]) == ("model.py", 7)
        assert region["seconds"]["basis"] == region["recorded_seconds"]["basis"] == "measured"
    steps = {step["region"] for step in document["profile"]["steps"]}
    assert {first["id"], second["id"]} <= steps
    left = {row["name"]: row["left_out"] for row in document["contenders"]}
    assert left == {"home": None, "interpreter": None, "onnxruntime": ONNX_ALONE}


def test_the_table_says_what_was_compared_and_the_picture_is_a_png(project, capsys):
    pytest.importorskip("matplotlib")
    assert bench("--with", "home,interpreter", "--regions", "0", "--png", "times.png") == 0
    printed = capsys.readouterr()
    assert "the recorded ops in NumPy, BLAS on one thread" in printed.out
    assert "error vs f64" in printed.out
    assert (project / "times.png").read_bytes().startswith(b"\x89PNG")


def test_a_contender_that_is_none_is_refused_with_those_that_are(project, capsys):
    assert bench("--with", "home,tensorflow") == 2
    assert "'tensorflow'; there are home, interpreter, torch" in capsys.readouterr().err


def test_a_model_file_runs_in_the_runtimes_that_read_it(empty_project, capsys):
    pytest.importorskip("onnxruntime")
    pytest.importorskip("openvino")
    from tests.core.cli.test_model_files import write_model

    write_model(empty_project)
    arguments = [
        "--rounds",
        "1",
        "--seconds",
        "0",
        "--threads",
        "1",
        "--regions",
        "0",
        "--with",
        "onnxruntime,openvino",
    ]
    assert main(["bench", "net.onnx", "--dim", "N=2", "--json", *arguments]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [(row["contender"], row["failure"]) for row in document["model"]] == [
        ("onnxruntime", None),
        ("openvino", None),
    ]
    assert all(row["error"]["relative"] < 1e-5 for row in document["model"])
    assert document["settings"]["seconds"] == 0


def test_a_region_says_who_could_not_run_it_alone(empty_project, capsys):
    pytest.importorskip("onnxruntime")
    from tests.core.cli.test_model_files import write_model

    write_model(empty_project)
    arguments = ["--rounds", "1", "--seconds", "0", "--threads", "1", "--regions", "1", "--with", "home,onnxruntime"]
    assert main(["bench", "net.onnx", "--dim", "N=2", *arguments]) == 0
    printed = capsys.readouterr().out
    assert "onnxruntime with 1 thread: not measured: the target's own file runs as a whole" in printed


NET = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.norm = nn.Linear(16, 24), nn.BatchNorm1d(24)

    def forward(self, x):
        return torch.relu(self.norm(self.layer(x)))


# topos: entry inputs=f32[4,16]
drawn = Net().eval()  # without a seed: every process that loads the file draws other weights


# topos: entry inputs=f32[4,16]
def made():
    return Net()


# topos: entry inputs=f32[4,16]
def called(x):
    return drawn(x) + 1
"""


@pytest.mark.parametrize("entry", ["drawn", "made", "called"])
def test_a_module_of_torch_is_measured_with_the_weights_that_topos_runs(entry, empty_project, capsys):
    pytest.importorskip("torch")
    (empty_project / "net.py").write_text(NET)
    settings = ["--rounds", "1", "--seconds", "0", "--threads", "1", "--regions", "0", "--with", "home,torch", "--json"]
    assert main(["bench", f"net.py:{entry}", *settings]) == 0
    rows = {row["contender"]: row for row in json.loads(capsys.readouterr().out)["model"]}
    assert set(rows) == {"home", "torch"}
    assert all(row["failure"] is None and row["error"]["relative"] < 1e-5 for row in rows.values())
