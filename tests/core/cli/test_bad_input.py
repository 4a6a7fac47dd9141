"""Bad input gets the right exit code and a message that names the place and the remedy, from every command that runs code."""

import os
import subprocess
import sys

import pytest

from topos_core.cli.main import main

MARK = "import topos_core as tp\n# topos: entry inputs=f32[2]\ndef entry(x):\n    return x\n"


@pytest.fixture
def project(empty_project):
    (empty_project / "pyproject.toml").write_text("[tool.topos]\nseconds = 1\nmemory = '700 MiB'\n")
    return empty_project


def check(capsys, arguments, status, *words):
    """Runs a command and gives what it wrote; every word stands somewhere in it."""
    assert main(arguments) == status
    written = capsys.readouterr()
    text = written.out + written.err
    for word in words:
        assert word in text
    assert "Traceback" not in text
    return written


CODE = {
    "a syntax error": ("def f(:\n", 3, "model.py:5:7", "TP403", "syntax error"),
    "a module that is not there": ("import nope\n", 3, "model.py:5:1", "TP404", "no module named 'nope'"),
    "an exception": ("1 / 0\n", 3, "model.py:5:1", "TP402", "ZeroDivisionError"),
    "an endless loop": ("while True:\n    pass\n", 3, "model.py:", "TP405", "longer than 1 s", "seconds"),
    "os._exit": ("import os\nos._exit(5)\n", 3, "TP407", "status 5", "__main__"),
    "a dtype that topos has not": ("spec = tp.f33[2]\n", 2, "model.py:5:8", "TP503", "unknown dtype tp.f33", "bf16"),
    "a name that topos has not": ("tp.nosuch(3)\n", 3, "model.py:5:1", "TP402", "no 'nosuch'"),
    "sys.exit": ("import sys\nsys.exit(5)\n", 3, "model.py:6:1", "TP407", "status 5", "__main__"),
    "thirty gigabytes": ("import numpy\nx = numpy.ones(30 * 2**27)\n", 3, "model.py:6:5", "TP406"),
    "a flood of prints": (
        "while True:\n    print('x' * 100)\n",
        3,
        "model.py:",
        "TP405",
        "xxx",
    ),
    "a comment that is none": ("# topos: ignore[TP]\n", 2, "model.py:5:1", "TP501", "codes look like"),
    "an unknown dtype": ("# topos: entry inputs=f33[2]\ndef other(x):\n    return x\n", 2, "TP503", "f33", "bf16"),
    "a spec that is none": ("# topos: entry inputs=f32(2)\ndef other(x):\n    return x\n", 2, "TP502", "f32(2)"),
    "too few inputs": ("# topos: entry inputs=f32[2]\ndef other(x, y):\n    return x\n", 2, "TP502", "other(x, y)"),
    "a wrong shape": (
        "# topos: entry inputs=f32[2],f32[3]\ndef other(x, y):\n    return x + y\n",
        3,
        "model.py:7:12",
        "TP401",
        "f32[2]",
        "f32[3]",
    ),
    "a branch on a value": (
        "# topos: entry inputs=f32[2]\ndef other(x):\n    if x.sum() > 0:\n        return x\n    return -x\n",
        3,
        "model.py:7:8",
        "TP401",
        "where",
    ),
    "an error in the entry": (
        "# topos: entry inputs=f32[2]\ndef other(x):\n    return x + {}['a']\n",
        3,
        "model.py:7:16",
        "TP402",
        "KeyError: 'a'",
    ),
    "a name that is gone": ("del entry\n", 3, "TP408", "no 'entry'"),
}


@pytest.mark.parametrize(("body", "status", "words"), [(b, s, w) for b, s, *w in CODE.values()], ids=CODE.keys())
def test_code_that_cannot_be_traced(project, capsys, body, status, words):
    (project / "model.py").write_text(MARK + body)
    check(capsys, ["check", "model.py"], status, "model.py", *words)


ARGUMENTS = {
    "no such file": (["check", "nope.py"], 2, "TP505", "nope.py does not exist", "path/model.py:name", "model.onnx"),
    "a line of a file": (["check", "model.py:5"], 2, "TP505", "model.py:5 names a line", "topos explain model.py:5"),
    "a line of an entry": (["plan", "model.py:entry:5:4"], 2, "TP505", "topos explain model.py:entry:5:4"),
    "no such folder": (["plan", "nope/net.py:main"], 2, "TP505"),
    "no entry in the file": (["plan", "plain.py"], 3, "TP408", "plain.py has no marked entry", "@tp.model"),
    "no such entry": (["plan", "model.py:main"], 3, "TP408", "no entry 'main'; it has entry"),
    "no such entry of a model file": (
        ["plan", "net.onnx:foo"],
        3,
        "TP408",
        "no entry 'foo'; a model file has one, main",
    ),
    "an entry that is not marked": (["run", "plain.py:f"], 3, "TP408", "no entry 'f'"),
    "a folder without marks": (["check", "empty"], 2, "TP505", "no marked file"),
    "another kind of file": (["plan", "notes.txt"], 2, "TP505", "notes.txt", ".onnx"),
    "a module file without a module": (["plan", "net.mlir"], 3, "TP402", "net.mlir"),
    "a model file without a model": (["plan", "net.onnx"], 3, "TP402", "net.onnx"),
    "no command": (["chek"], 2, "TP504", "'chek'", "check"),
    "no target": (["plan"], 2, "TARGET", "--help"),
    "an unknown option": (["plan", "model.py", "--fast"], 2, "--fast", "--help"),
    "another consumer": (["plan", "model.py", "--consumer", "gpu"], 2, "'gpu'", "home, stablehlo"),
    "another machine": (["plan", "model.py", "--machine", "abacus"], 2, "TP504", "abacus", "reference"),
    "a dim with two numbers": (["plan", "model.py", "--dim", "N=4=5"], 2, "'N=4=5'", "--dim N=4"),
    "a dim of no form": (["plan", "model.py", "--dim", "N"], 2, "'N'", "N=4"),
    "an observed value that is none": (["plan", "model.py", "--observe", "nope"], 2, "TP504", "'nope'"),
    "codes of no form": (["check", "model.py", "--fail-on", "101"], 2, "'101'", "TP101"),
    "another format": (["check", "model.py", "--format", "xml"], 2, "'xml'", "text, json"),
    "two formats on one stream": (["check", "model.py", "--format", "json", "--format", "text"], 2, "TP504"),
    "a format into nowhere": (["check", "model.py", "--format", "json=nope/x.json"], 2, "TP505", "nope/x.json"),
    "inputs that are not there": (["run", "model.py:entry", "--inputs", "nope.npz"], 2, "TP505", "nope.npz"),
    "another backend": (["run", "model.py", "--backend", "cuda"], 2, "'cuda'", "home"),
    "nothing to explain": (["explain", "convolutio"], 2, "TP505", "convolution"),
}


@pytest.mark.parametrize(
    ("arguments", "status", "words"), [(a, s, w) for a, s, *w in ARGUMENTS.values()], ids=ARGUMENTS.keys()
)
def test_arguments_that_cannot_be_used(project, capsys, arguments, status, words):
    (project / "model.py").write_text(MARK)
    (project / "plain.py").write_text("raise SystemExit('imported')\ndef f(x):\n    return x\n")
    (project / "notes.txt").write_text("topos\n")
    (project / "net.onnx").write_bytes(b"")
    (project / "net.mlir").write_bytes(b"")
    (project / "empty").mkdir()
    check(capsys, arguments, status, *words)


def test_a_configuration_that_cannot_be_used_is_told_with_its_line(project, capsys):
    (project / "model.py").write_text(MARK)
    (project / "pyproject.toml").write_text("[tool.topos]\n\nconsumer = 'gpu'\n")
    check(capsys, ["plan", "model.py"], 2, "pyproject.toml:3:1", "TP501", "'gpu'", "home")


def test_an_untrusted_file_is_not_run(project, capsys):
    (project / "model.py").write_text(MARK + f"open({str(project / 'ran')!r}, 'w')\n")
    for command in ("check", "plan", "run", "emit", "explain"):
        check(capsys, [command, "model.py", "--untrusted"], 3, "TP410", "model.py was not run")
    assert not (project / "ran").exists()


def test_a_trusted_folder_is_run_all_the_same(project, capsys):
    from topos_core.session.settings import trust

    trust(str(project), {"XDG_CONFIG_HOME": str(project / "config")})
    (project / "model.py").write_text(MARK + f"open({str(project / 'ran')!r}, 'w')\n1 / 0\n")
    check(capsys, ["check", "model.py", "--untrusted"], 3, "TP402")
    assert (project / "ran").exists()


def test_a_file_without_a_mark_is_never_imported(project, capsys):
    (project / "model.py").write_text(f"import topos_core\nopen({str(project / 'ran')!r}, 'w')\n")
    check(capsys, ["check", "model.py"], 3, "TP408")
    assert not (project / "ran").exists()


def test_the_highest_exit_code_wins_and_every_target_is_told(project, capsys):
    (project / "a.py").write_text(MARK + "1 / 0\n")
    (project / "b.py").write_text(MARK + "# topos: ignore[]\n")
    written = check(capsys, ["check", "a.py", "b.py"], 3, "a.py", "TP402", "b.py", "TP501")
    assert written.err == ""


def test_errors_of_a_json_check_stand_in_the_document_and_on_standard_error(project, capsys):
    import json

    (project / "model.py").write_text(MARK + "print('so far')\n1 / 0\n")
    written = check(capsys, ["check", "model.py", "--format", "json"], 3)
    (row,) = json.loads(written.out)["targets"]
    assert (row["traced"], row["error"]["code"], row["error"]["line"], row["error"]["output"]) == (
        False,
        "TP402",
        6,
        "so far\n",
    )
    assert "model.py:6:1" in written.err


def test_control_characters_in_what_code_says_cannot_reach_the_terminal(project, capsys):
    (project / "model.py").write_text(MARK + "print('\\x1b[2J')\nraise ValueError('\\x1b[31mred\\u202e')\n")
    written = check(capsys, ["check", "model.py"], 3, "\\x1b[31mred\\u202e", "\\x1b[2J")
    assert "\x1b" not in written.out + written.err


def test_the_command_runs_as_a_module_and_knows_its_version(project):
    done = subprocess.run(
        [sys.executable, "-m", "topos_core.cli", "--version"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert (done.returncode, done.stdout) == (0, "topos 0.1.0\n")


NAMED = (
    "import topos_core as tp\n"
    "@tp.model(x=tp.f32[2])\ndef fixed(x):\n    return x * 2\n"
    "@tp.model(x='f32[M,3]')\ndef named(x):\n    return x * 2\n"
)


@pytest.mark.parametrize("command", ["plan", "check", "run", "emit", "explain"])
def test_an_extent_that_no_input_has_is_refused_with_those_that_there_are(project, capsys, command):
    (project / "named.py").write_text(NAMED)
    where = [command, "named.py:named:7" if command == "explain" else "named.py:named"]
    check(capsys, [*where, "--dim", "M=4", "--dim", "N=4"], 2, "TP504", "no extent is called N", "named.py:named has M")
    where[1] = where[1].replace(":named", ":fixed").replace(":7", ":4")
    check(capsys, [*where, "--dim", "N=4"], 2, "TP504", "named.py:fixed has no named extents; drop --dim N")


def test_an_extent_that_one_of_several_entries_has_is_none_too_many(project, capsys):
    (project / "named.py").write_text(NAMED)
    for command in ("plan", "check"):
        check(capsys, [command, "named.py", "--dim", "M=4"], 0)
        check(capsys, [command, "named.py", "--dim", "M=4", "--dim", "N=4"], 2, "TP504", "the 2 entries have M")


def test_check_tells_the_others_where_one_file_is_missing(project, capsys):
    (project / "model.py").write_text(MARK)
    for order in (["model.py", "nofile.py"], ["nofile.py", "model.py"]):
        check(
            capsys, ["check", *order], 2, "model.py:entry", "TP505", "nofile.py does not exist", "1 could not be traced"
        )
    (project / "broken.py").write_text("import topos_core as tp\n@tp.model(x=tp.f32[2])\ndef f(x):\n    1 / 0\n")
    check(capsys, ["check", "nofile.py", "broken.py"], 3, "TP505", "TP402", "2 targets")
