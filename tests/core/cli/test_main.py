"""The command itself: help, dispatch, exit codes, colour and progress."""

import io
import os
import signal
import subprocess
import sys
import time
from importlib.metadata import EntryPoint

import pytest

from topos_core.cli import main as command
from topos_core.cli.main import COMMANDS, exit_code_of, main
from topos_core.cli.terminal import Terminal, open_terminal

MODEL = "# topos: entry inputs=f32[2]\ndef entry(x):\n    return x + x\n"


def check(capsys, arguments, status, out="", err=""):
    assert main(arguments) == status
    written = capsys.readouterr()
    assert out in written.out
    assert err in written.err
    return written


def test_help_lists_every_command_and_its_exit_codes(capsys):
    written = check(capsys, ["--help"], 0, out="exit codes: 0 fine, 1 findings")
    assert all(f"  {name} " in written.out for name in COMMANDS)
    check(capsys, [], 2, out="usage: topos COMMAND")
    check(capsys, ["--version"], 0, out="topos 0.1.0")


@pytest.mark.parametrize("name", [name for name, row in COMMANDS.items() if row.module])
def test_every_command_explains_its_arguments(capsys, name):
    check(capsys, [name, "--help"], 0, out=f"usage: topos {name}")


def test_the_codes_of_one_family_have_one_exit_code():
    assert [exit_code_of(code) for code in ("TP401", "TP410", "TP501", "TP507", "internal")] == [3, 3, 2, 2, 4]


def test_front_ends_are_found_by_their_entry_points(capsys, monkeypatch):
    seen = []
    entry = EntryPoint("view", "somewhere:main", "topos.front_ends")
    monkeypatch.setattr(EntryPoint, "load", lambda self: lambda arguments: seen.append(arguments) or 3)
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group, name: [entry] if name == "view" else [])
    check(capsys, ["view", "model.py", "--port", "1"], 3)
    assert seen == [["model.py", "--port", "1"]]
    check(capsys, ["lsp"], 2, err="TP506")


def test_a_bug_of_ours_exits_with_4_and_shows_where(capsys, monkeypatch):
    def broken(arguments, terminal):
        raise ZeroDivisionError("ours")

    monkeypatch.setattr(command, "_dispatch", broken)
    written = check(capsys, ["plan"], 4, err="please report this")
    assert "in broken" in written.err


def test_an_interrupt_ends_quietly(capsys, monkeypatch):
    def interrupted(arguments, terminal):
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "_dispatch", interrupted)
    assert check(capsys, ["plan"], 130).err == "interrupted\n"


@pytest.mark.parametrize(
    ("command", "module", "number", "status", "err"),
    [
        ("plan", "topos_core.cli.terminal", signal.SIGINT, 130, "interrupted\n"),
        ("plan", "topos_core.session.client", signal.SIGTERM, 143, ""),
        ("check", "topos_core.session.warm_process", signal.SIGINT, 130, "interrupted\n"),
        ("view", "topos_core.cli.terminal", signal.SIGINT, 0, ""),
        ("view", "topos_web.__main__", signal.SIGTERM, 0, ""),
        ("view", "uvicorn", signal.SIGINT, 0, ""),
        ("lsp", "topos_lsp.serving", signal.SIGINT, 1, ""),
        ("lsp", "topos_lsp.server", signal.SIGTERM, 1, ""),
    ],
)
def test_a_signal_meets_any_import_and_ends_the_command_the_same_way(tmp_path, command, module, number, status, err):
    """The process signals itself when it first looks for a module, so that no clock decides."""
    (tmp_path / "model.py").write_text(MODEL)
    code = f"""
import os, sys
class Signal:
    def find_spec(self, name, *rest):
        if name == {module!r}:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), {int(number)})
sys.meta_path.insert(0, Signal())
from topos_core.cli.main import main
sys.exit(main({[command, *(["model.py"] if command != "lsp" else [])]!r}))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, env=environment())
    assert (done.returncode, done.stdout, done.stderr) == (status, "", err)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_command_that_is_told_to_stop_leaves_no_process_behind(tmp_path, number, status):
    (tmp_path / "model.py").write_text(
        MODEL + "open('began', 'w').write(str(__import__('os').getpid()))\nwhile True: pass\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "topos_core.cli", "check", "model.py"], stderr=subprocess.PIPE, text=True, cwd=tmp_path, env=environment(),
        start_new_session=True,
    )  # fmt: skip
    began, deadline = tmp_path / "began", time.monotonic() + 60
    while not (began.exists() and began.read_text()) and time.monotonic() < deadline:
        time.sleep(0.01)
    os.killpg(process.pid, number)
    assert process.communicate(timeout=20)[1] == ("interrupted\n" if number == signal.SIGINT else "")
    assert process.returncode == status
    assert not os.path.exists(f"/proc/{began.read_text()}")


def environment():
    return {**os.environ, "PYTHONPATH": os.pathsep.join([os.getcwd(), *filter(None, sys.path)])}


def test_a_reader_that_has_enough_is_no_error(tmp_path):
    (tmp_path / "model.py").write_text(MODEL)
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", f"{sys.executable} -m topos_core.cli plan model.py --json | true"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment(),
    )
    assert done.stderr == ""
    assert done.returncode in (0, 141)


class Screen(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("variables", "colour"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)],
)
def test_colour_is_for_terminals_that_want_it(monkeypatch, variables, colour):
    monkeypatch.setattr(sys, "stdout", Screen())
    assert open_terminal(variables).colour is colour
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    assert open_terminal(variables).colour is False


def test_progress_is_drawn_on_a_terminal_after_a_second_and_taken_away_before_text():
    screen = Screen()
    terminal = Terminal(io.StringIO(), screen, show_progress=True)
    terminal.progress("model.py", 0, 2)
    assert screen.getvalue() == ""
    terminal._started -= 2
    terminal.progress("model.py", 1, 2)
    assert screen.getvalue() == "\r[##########..........] 1/2 model.py"
    terminal.message("done")
    assert screen.getvalue().endswith("\r" + " " * 35 + "\rdone\n")


def test_progress_is_not_drawn_into_a_file():
    stream = io.StringIO()
    terminal = Terminal(io.StringIO(), stream)
    terminal._started -= 2
    terminal.progress("model.py", 1, 2)
    assert stream.getvalue() == ""
