"""Commands end to end on a small project: what they print, where, and with which exit code."""

import json
import os
import re

import numpy as np
import pytest

from topos_core.cli.main import main
from topos_core.document.formats.errors import from_here
from topos_core.session.client import Agent
from topos_core.session.settings import trust

MODEL = """\
import numpy as np
import topos_core as tp
from topos_core import nn

SCALE = np.linspace(0.5, 1.5, 4, dtype=np.float32)


@tp.model(image=tp.f32[1, 2, 8, 8], weight=tp.f32[4, 2, 3, 3])
def plain(image, weight):
    return nn.conv2d(image, weight, padding=1)


@tp.model(image=tp.f32[1, 2, 8, 8], weight=tp.f32[4, 2, 3, 3])
def observed(image, weight):
    windows = np.lib.stride_tricks.sliding_window_view(image, (3, 3), axis=(2, 3))
    tp.observe(windows, "windows")
    return np.einsum("bchwij,ocij->bohw", windows, weight)


# topos: entry inputs=x=f32[N,4]
def scaled(x):
    print("tracing scaled")
    return {"scaled": x * SCALE, "sum": x.sum()}
"""

EXAMPLE = """\
import numpy as np
import topos_core as tp


def example(seed):
    return {"x": np.full((2, 3), seed, np.float32)}


@tp.model(x=tp.f32[2, 3], example=example, metric=lambda outputs: outputs[0].mean())
def double(x):
    return x * 2, x
"""


@pytest.fixture
def project(empty_project):
    (empty_project / "pyproject.toml").write_text("[tool.topos]\nseconds = 60\n")
    (empty_project / "model.py").write_text(MODEL)
    return empty_project


def check(capsys, *arguments, status=0, err=""):
    """Runs a command and gives its standard output; standard error holds `err`, or nothing."""
    assert main([str(each) for each in arguments]) == status
    written = capsys.readouterr()
    assert err in written.err if err else written.err == ""
    return written.out


def rows(capsys, *arguments, status=0):
    document = json.loads(check(capsys, "check", "--format", "json", *arguments, status=status))
    assert document["schema"] == "topos.check/1"
    return {row["target"]: row for row in document["targets"]}


def test_check_tells_the_observing_line_with_the_values_own_line_related(project, capsys):
    found = rows(capsys, "model.py:observed")["model.py:observed"]
    assert (found["traced"], found["error"], found["counts"]["blocked"]) == (True, None, 1)
    (finding,) = [each for each in found["findings"] if each["code"] == "TP101"]
    assert (finding["path"], finding["line"], finding["column"]) == ("model.py", 16, 4)
    assert ("model.py", 15) in [(each["path"], each["line"]) for each in finding["related"]]


def test_check_takes_every_entry_of_a_file_and_files_of_a_folder(project, capsys):
    assert list(rows(capsys, "model.py", "--dim", "N=2")) == ["model.py:plain", "model.py:observed", "model.py:scaled"]
    (project / "plain.py").write_text("1 / 0\n")
    (project / "more").mkdir()
    (project / "more/net.py").write_text(MODEL)
    assert len(rows(capsys, ".", "--dim", "N=2")) == 6


def test_check_is_quiet_where_nothing_is_to_be_told_and_one_line_for_a_target(project, capsys):
    out = check(capsys, "check", "model.py:plain")
    assert out.splitlines()[0].startswith("model.py:plain  ")
    assert "1 target: " in out
    assert "\x1b" not in out


def test_a_value_to_observe_is_named_by_its_number_as_it_is_written(project, capsys):
    shown = [check(capsys, "plan", "model.py:plain", "--observe", value) for value in ("4", "%4")]
    assert shown[0] == shown[1]
    assert "%4 by this question alone" in shown[0]


def test_check_fails_on_the_codes_it_is_asked_to(project, capsys):
    assert "TP101" in check(capsys, "check", "model.py:observed", "--fail-on", "TP101", status=1)
    check(capsys, "check", "model.py:observed", "--fail-on", "TP1xx,TP3xx", status=1)
    check(capsys, "check", "model.py:observed", "--fail-on", "TP101", "--exit-zero")
    check(capsys, "check", "model.py:observed", "--fail-on", "TP3xx")
    (project / "pyproject.toml").write_text("[tool.topos]\nfail-on = ['TP101']\n")
    check(capsys, "check", "model.py:observed", status=1)


def test_check_writes_several_formats_at_once(project, capsys):
    out = check(capsys, "check", "model.py:plain", "--format", "json=report.json", "--format", "text")
    assert out.startswith("model.py:plain")
    assert json.loads((project / "report.json").read_text())["targets"][0]["traced"]


def test_an_ignore_comment_leaves_its_finding_out_and_an_unused_one_is_told(project, capsys):
    text = MODEL.replace(
        '    tp.observe(windows, "windows")', '    tp.observe(windows, "windows")  # topos: ignore[TP101] meant'
    )
    (project / "model.py").write_text(text)
    findings = rows(capsys, "model.py", "--dim", "N=2")
    assert [each["code"] for row in findings.values() for each in row["findings"]] == []
    (project / "model.py").write_text(text.replace("TP101", "TP301"))
    findings = rows(capsys, "model.py", "--dim", "N=2")
    assert [(each["code"], each["line"]) for row in findings.values() for each in row["findings"]] == [
        ("TP601", 16),
        ("TP101", 16),
    ]
    assert [each["code"] for each in rows(capsys, "model.py:observed")["model.py:observed"]["findings"]] == ["TP101"]


def test_an_off_comment_switches_a_pattern_off_on_its_line_and_an_unused_one_is_told(project, capsys):
    line = "    return nn.conv2d(image, weight, padding=1)"
    (project / "model.py").write_text(MODEL.replace(line, line + "  # topos: off[convolution]"))
    found = rows(capsys, "model.py", "--dim", "N=2", "--cost", "always")
    plain = found["model.py:plain"]
    assert [(each["pattern"], each["verdict"], each["code"]) for each in plain["regions"]] == [
        ("convolution", "declined", "TP208")
    ]
    assert "TP601" not in [each["code"] for each in plain["findings"]]
    (project / "model.py").write_text(MODEL.replace(line, line + "  # topos: off[window_reduce]"))
    found = rows(capsys, "model.py", "--dim", "N=2", "--cost", "always")["model.py:plain"]
    assert "TP601" in [each["code"] for each in found["findings"]]
    (project / "model.py").write_text(MODEL.replace(line, line + "  # topos: off[convolutoin]"))
    found = rows(capsys, "model.py", "--dim", "N=2")["model.py:plain"]
    told = [each["headline"] for each in found["findings"] if each["code"] == "TP601"]
    assert told == ["no pattern is called 'convolutoin'; did you mean convolution?"]


def test_plan_prints_words_or_one_document_a_line(project, capsys):
    assert "model.py:plain" in check(capsys, "plan", "model.py:plain")
    lines = check(capsys, "plan", "model.py", "--json", "--dim", "N=2").splitlines()
    documents = [json.loads(line) for line in lines]
    assert [each["target"] for each in documents] == ["model.py:plain", "model.py:observed", "model.py:scaled"]
    assert all(each["schema"] == "topos.plan/1" and "sources" not in each for each in documents)
    assert {path for each in documents for path in each["paths"]} >= {"model.py"}


def test_plan_observes_what_it_is_asked_to(project, capsys):
    (document,) = check(capsys, "plan", "model.py:plain", "--json", "--observe", "0").splitlines()
    assert 0 in [each["value"] for each in json.loads(document)["observations"]]


def test_plan_shows_another_consumer_and_the_projects_own_choice(project, capsys):
    assert (
        json.loads(check(capsys, "plan", "model.py:plain", "--json", "--consumer", "stablehlo"))["consumer"]
        == "stablehlo"
    )
    (project / "pyproject.toml").write_text("[tool.topos]\nconsumer = 'stablehlo'\ncost = 'always'\n")
    document = json.loads(check(capsys, "plan", "model.py:plain", "--json", "--cost", "model"))
    assert (document["consumer"], document["cost"], document["machine"]) == ("stablehlo", "model", "reference")


def test_equal_runs_print_equal_documents(project, capsys):
    first = check(capsys, "plan", "model.py:observed", "--json")
    assert check(capsys, "plan", "model.py:observed", "--json") == first


def test_emit_prints_the_module_or_writes_it(project, capsys):
    text = check(capsys, "emit", "model.py:plain")
    assert text.count("stablehlo.convolution") == 1
    assert check(capsys, "emit", "model.py:plain", "-o", "out.mlir") == ""
    assert (project / "out.mlir").read_text() == text


def test_emit_wants_one_entry(project, capsys):
    check(capsys, "emit", "model.py", "--dim", "N=2", status=2, err="name one of model.py:plain, model.py:observed")


def test_emit_verifies_on_real_compilers(project, capsys):
    pytest.importorskip("jax", reason="needs jax (the jax extra)")
    out = check(capsys, "emit", "model.py:plain", "--verify")
    assert "parsed, verified" in out
    assert "run on XLA: largest difference from the recorded ops" in out
    assert "run on StableHLO's reference interpreter: largest difference from the recorded ops" in out


def test_run_gives_figures_of_each_result(project, capsys):
    result = json.loads(
        check(capsys, "run", "model.py:scaled", "--dim", "N=3", "--backend", "interpreter", "--compare", "--json")
    )
    assert [(each["name"], each["type"]) for each in result["outputs"]] == [
        ("result['scaled']", "f32[3,4]"),
        ("result['sum']", "f32[]"),
    ]
    assert result["inputs"] == "seed 0"
    assert result["compare"]["inside"]
    assert [each["absolute"] for each in result["compare"]["outputs"]] == [0, 0]


def test_run_clocks_the_interpreter_as_it_clocks_the_backend(project, capsys):
    arguments = ("run", "model.py:plain", "--compare")
    result = json.loads(check(capsys, *arguments, "--json"))
    assert result["seconds"].keys() == result["compare"]["seconds"].keys() == {"first", "median"}
    backend, interpreter = (line for line in check(capsys, *arguments).splitlines() if "(measured)" in line)
    assert re.fullmatch(r"  first run \S+ \S+, then \S+ \S+ \(measured\)", backend)
    assert re.fullmatch(r"  interpreter: first run \S+ \S+, then \S+ \S+ \(measured\)", interpreter)


def test_run_compares_home_with_the_interpreter(project, capsys):
    arguments = ("run", "model.py:plain", "--compare", "--cost", "always", "--threads", "1")
    result = json.loads(check(capsys, *arguments, "--json"))
    assert (result["backend"], result["taken"], result["compare"]["inside"]) == ("home", 1, True)
    assert 0 <= result["compare"]["outputs"][0]["absolute"] <= result["compare"]["outputs"][0]["bound"]
    exact = json.loads(check(capsys, *arguments, "--fidelity", "exact", "--json"))
    assert (exact["taken"], exact["compare"]["outputs"][0]["bound"], exact["compare"]["outputs"][0]["absolute"]) == (
        0,
        0,
        0,
    )


def test_run_fails_where_an_output_leaves_its_envelope(project, capsys, monkeypatch):
    run = Agent.run

    def worse(agent, target, **arguments):
        reply = run(agent, target, **arguments)
        (row,) = reply["result"]["compare"]["outputs"]
        assert (row["rule"], row["sentence"]) == ("bits", "equal to the interpreter bit for bit")
        reply["result"]["compare"]["inside"] = row["inside"] = False
        row["sentence"] = "differs by at most 1: outside the envelope"
        return reply

    monkeypatch.setattr(Agent, "run", worse)
    arguments = ("run", "model.py:plain", "--compare", "--backend", "interpreter")
    assert "result against interpreter: differs by at most 1: outside" in check(capsys, *arguments, status=1)


def test_run_reads_inputs_from_a_file(project, capsys):
    np.savez(project / "x.npz", x=np.full((3, 4), 2, np.float32))
    arguments = ("run", "model.py:scaled", "--dim", "N=3", "--inputs", "x.npz", "--backend", "interpreter")
    result = json.loads(check(capsys, *arguments, "--json"))
    assert result["outputs"][1]["mean"] == 24
    assert "result['sum']: f32[], 24 to 24" in check(capsys, *arguments)
    check(capsys, *arguments[:3], "N=2", *arguments[4:], status=2, err="is f32[3,4], the entry takes x f32[2,4]")


def test_run_uses_the_entrys_example_and_metric(project, capsys):
    (project / "example.py").write_text(EXAMPLE)
    result = json.loads(
        check(capsys, "run", "example.py", "--backend", "interpreter", "--seed", "3", "--compare", "--json")
    )
    assert (result["inputs"], result["metric"], result["compare"]["metric"]) == ("example", 6, 6)


def test_an_example_that_does_not_fit_or_raises_is_told(project, capsys):
    (project / "example.py").write_text(EXAMPLE.replace("(2, 3), seed", "(3, 2), seed"))
    check(
        capsys,
        "run",
        "example.py",
        "--backend",
        "interpreter",
        status=2,
        err="x of example is f32[3,2], the entry takes x f32[2,3]",
    )
    (project / "example.py").write_text(EXAMPLE.replace("(2, 3), seed", "(2, 3), seed / 0"))
    check(capsys, "run", "example.py", "--backend", "interpreter", status=3, err="example.py:6:")


def test_explain_tells_of_a_line_and_of_a_pattern(project, capsys):
    out = check(capsys, "explain", "model.py:observed:17", "--cost", "always")
    assert "convolution" in out
    assert "model.py:16:5" in out
    assert re.search(r"\n +time before: [\d.]+ us \(modelled, reference\)\n", out)
    assert re.search(r"\n +calls before: \d+ calls \(counted\)\n +calls after: 1 call \(counted\)\n", out)
    at_the_reader = check(capsys, "explain", "model.py:observed:16", "--cost", "always")
    assert "blocked" in at_the_reader
    check(capsys, "explain", "model.py:plain:2", err="no op comes from model.py:2")
    assert "Recognises" in check(capsys, "explain", "convolution")


@pytest.mark.parametrize("command", [("explain", "norm.py:norm:9"), ("check", "norm.py")], ids=["explain", "check"])
def test_of_a_near_miss_is_told_what_held_once_and_where_it_differs(project, capsys, command):
    (project / "norm.py").write_text(
        """\
import numpy as np
import topos_core as tp


@tp.model(x=tp.f32[8, 16])
def norm(x):
    centred = x - x.mean(-1, keepdims=True)
    variance = (centred**2).sum(-1, keepdims=True) / 15
    return centred / np.sqrt(variance + 1e-5)
"""
    )
    out = check(capsys, *command)
    assert (
        out.count("steps held; expected a mean over all 16 elements, divided by 16, found a divisor of 15 = n - 1") == 1
    )
    assert "norm.py:8:16: the first difference stands here" in out


def test_explain_asks_the_expression_at_a_column_alone(project, capsys):
    out = check(capsys, "explain", "model.py:plain:10:12", "--cost", "always")
    assert "convolution" in out
    check(capsys, "explain", "model.py:plain:10:5", "--cost", "always", err="nothing was recognised at model.py:10:5")


CHAIN = """\
import numpy as np
import topos_core as tp


@tp.model(x=tp.f32[32, 40], b=tp.f32[40])
def chain(x, b):
    return np.sqrt(np.abs(x * b)) - b
"""


def test_phases_show_three_forms_of_what_runs_as_text_and_as_differences(project, capsys):
    (project / "chain.py").write_text(CHAIN)
    out = check(capsys, "explain", "chain.py:chain:7", "--phases", "--cost", "always")
    recorded = [
        "%2 = broadcast(%1) : f32[32,40]", "%3 = mul(%0, %2) : f32[32,40]", "%4 = abs(%3) : f32[32,40]",
        "%5 = sqrt(%4) : f32[32,40]", "%6 = broadcast(%1) : f32[32,40]", "%7 = sub(%5, %6) : f32[32,40]",
    ]  # fmt: skip
    assert out.splitlines() == [
        "chain.py:chain",
        "  chain.py:7:12: elementwise_chain@7, 6 ops",
        "    recorded",
        *(f"        {line}" for line in recorded),
        "    grouped",
        "      + %7 = elementwise_chain(%0, %1) {",
        *(f"          {line}" for line in recorded),
        "      + }",
        "    fused loop nest",
        "      - %7 = elementwise_chain(%0, %1) {",
        *(f"      -   {line}" for line in recorded),
        "      + for a in 0..32 {  // dealt to threads",
        "      +   for i in 0..40 {  // in whole registers",
        "      +     %3 = %0[a, i] * %1[i]",
        "      +     %4 = abs(%3)",
        "      +     %5 = sqrt(%4)",
        "      +     %7[a, i] = %5 - %1[i]",
        "          }",
        "      + }",
    ]
    whole = check(capsys, "explain", "model.py:plain", "--phases", "--cost", "always")
    assert (
        whole.count(
            "fused loop nest: one kernel that was written by hand runs it; `topos view` shows its text under Kernel"
        )
        == 1
    )


def test_phases_of_equal_blocks_are_shown_once(project, capsys):
    twice = CHAIN.replace(
        "return np.sqrt(np.abs(x * b)) - b",
        "for _ in range(3):\n        x = np.sqrt(np.abs(x * b)).sum(0) - x\n    return x",
    )
    (project / "chain.py").write_text(twice)
    out = check(capsys, "explain", "chain.py:chain", "--phases", "--cost", "always", "--fidelity", "exact")
    assert "      and 1 more like it: %19\n" in out


def test_phases_are_of_a_line_or_of_all_and_as_json(project, capsys):
    def found(*arguments):
        told = json.loads(check(capsys, "explain", *arguments, "--phases", "--json", "--cost", "always"))
        assert told["schema"] == "topos.phases/1"
        return told["targets"]

    (plain,) = found("model.py:plain")
    assert (plain["target"], plain["error"]) == ("model.py:plain", None)
    (convolution,) = [group for group in plain["phases"] if group["region"]]
    assert (convolution["path"], convolution["line"], convolution["column"]) == ("model.py", 10, 11)
    assert [line["sign"] for line in convolution["grouped_changes"]].count("+") == len(convolution["grouped"])
    entries = found("model.py:23", "--dim", "N=32")
    assert [bool(entry["phases"]) for entry in entries] == [False, False, True]
    check(capsys, "explain", "model.py:plain:2", "--phases", err="nothing runs at model.py:2")
    for subject in ("softmax", "TP101"):
        check(capsys, "explain", subject, "--phases", status=2, err=f"{subject} is none; name a target")


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("24", "model.py has lines 1 to 23, not 24"), ("0", "not 0"),
        ("10:99", "line 10 of model.py has columns 1 to 47, not 99"), ("10:0", "not 0"),
    ],
)  # fmt: skip
def test_explain_refuses_a_place_that_the_file_has_not(project, capsys, place, said):
    assert check(capsys, "explain", f"model.py:{place}", status=2, err=said) == ""


def test_what_code_prints_goes_nowhere_near_the_data(project, capsys):
    assert "tracing scaled" not in check(capsys, "plan", "model.py:scaled", "--json", "--dim", "N=2")


def test_an_unsettled_extent_is_told(project, capsys):
    check(capsys, "plan", "model.py:scaled", status=2, err="--dim N=4")


def test_a_configured_entry_needs_no_mark(project, capsys):
    (project / "bare.py").write_text("class Net:\n    def __call__(self, x):\n        return x + x\n")
    (project / "pyproject.toml").write_text("[tool.topos.entries]\n'bare.py:Net' = 'f32[2]'\n")
    assert list(rows(capsys, "bare.py")) == ["bare.py:Net"]
    assert len(rows(capsys, ".", "--dim", "N=2")) == 4


def test_packages_relative_imports_and_siblings_work(project, capsys):
    (project / "package/inner").mkdir(parents=True)
    for folder in ("package", "package/inner"):
        (project / folder / "__init__.py").write_text("")
    (project / "package/layers.py").write_text("def twice(x):\n    return x + x\n")
    code = "from ..layers import twice\nfrom package import layers\nassert layers.twice is twice\nassert __name__ == 'package.inner.net'\n"
    (project / "package/inner/net.py").write_text(
        code + "# topos: entry inputs=f32[2]\ndef main(x):\n    return twice(x)\n"
    )
    assert rows(capsys, "package/inner/net.py")["package/inner/net.py:main"]["traced"]
    (project / "sibling.py").write_text(
        "from model import SCALE\n# topos: entry inputs=f32[4]\ndef main(x):\n    return x * SCALE\n"
    )
    assert rows(capsys, "sibling.py")["sibling.py:main"]["traced"]


def test_doctor_says_which_python_runs_the_code(project, capsys):
    out = check(capsys, "doctor")
    assert "code runs in" in out
    assert "numpy" in out


def test_doctor_says_who_runs_the_code_without_being_told(project, capsys, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(project / "config"))
    told = "editors ask first: "
    assert told + "you trust no folder yet" in check(capsys, "doctor")
    trust(str(project / "elsewhere"))
    assert told + "it is not in the one folder that you trust" in check(capsys, "doctor")
    trust(str(project))
    assert "commands and editors run this project's code: you trust its folder" in check(capsys, "doctor")


def test_paths_below_the_working_directory_are_told_from_there(project, capsys, monkeypatch):
    (project / "pyproject.toml").write_text("[tool.topos]\nconsumer = 3\n")
    assert main(["plan", "model.py"]) == 2
    assert capsys.readouterr().err.startswith("pyproject.toml:2")
    monkeypatch.chdir(project.parent)
    assert main(["plan", f"{project.name}/model.py"]) == 2
    assert capsys.readouterr().err.startswith(f"{project.name}/pyproject.toml:2")


def test_a_path_elsewhere_is_told_whole():
    here = os.getcwd()
    text = f"{here}/a.py, {here}x/b.py, /other{here}/c.py and {here}"
    assert from_here(text) == f"a.py, {here}x/b.py, /other{here}/c.py and {here}"


def test_doctor_refuses_a_path_that_is_not_there(project, capsys):
    assert check(capsys, "doctor", "nowhere", status=2, err="nowhere does not exist") == ""


def test_check_proves_what_it_found_where_asked(project, capsys):
    text = check(capsys, "check", "model.py:plain", "--prove")
    assert "proofs: 1 proved\n" in text
    (target,) = json.loads(check(capsys, "check", "model.py:plain", "--prove", "--format", "json"))["targets"]
    (proof,) = target["proofs"]
    assert (proof["pattern"], proof["verdict"], proof["answer"]) == ("convolution", "proved", "true")
    (plain,) = json.loads(check(capsys, "check", "model.py:plain", "--format", "json"))["targets"]
    assert "proofs" not in plain


def test_check_says_how_many_declined_regions_it_does_not_list(empty_project, capsys):
    (empty_project / "pyproject.toml").write_text("[tool.topos]\n")
    (empty_project / "small.py").write_text(
        "import numpy as np\nimport topos_core as tp\n\n\n"
        "@tp.model(x=tp.f32[3])\ndef small(x):\n    return np.exp(x) * 2.0 + np.tanh(x)\n"
    )
    assert main(["check", "small.py"]) == 0
    out = capsys.readouterr().out
    assert "1 declined, 1 of the declined runs as fast as recorded and is not listed" in out
    assert "TP202" not in out
