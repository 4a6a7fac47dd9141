"""Errors stand where the person's code went wrong, with the other calls beside them."""

import json
import linecache
from pathlib import Path

import pytest

import topos_core
from topos_core.errors import ConfigurationError, RecordingError, TraceError
from topos_core.session.entries import split_lines
from topos_core.session.places import error_of, is_user_file, place_in_stack, relative_path
from topos_core.tape.span import Span

ROOT = "/project"
MODEL = "/project/model.py"
HELPER = "/project/helper.py"


def run(sources, start="main()"):
    """Runs made-up files by their names, the first one last, and gives what it raises."""
    scope = {"RecordingError": RecordingError, "Span": Span}
    try:
        for path, text in reversed(sources.items()):
            linecache.cache[path] = (len(text), None, [line + "\n" for line in split_lines(text)], path)
            exec(compile(text, path, "exec"), scope)
        exec(compile(start, "<start>", "exec"), scope)
    except BaseException as error:
        return error.with_traceback(error.__traceback__.tb_next)  # without this test's own frame
    raise AssertionError("nothing was raised")


def check(sources, code, place, related=(), words=""):
    found = error_of(run(sources), MODEL, ROOT)
    assert found["code"] == code
    assert words in found["message"]
    assert (found["path"], found["line"], found["column"], found["end_column"]) == place
    assert [(each["message"], each["path"], each["line"]) for each in found["related"]] == list(related)


def test_an_error_stands_at_its_expression_and_names_its_callers():
    text = "def main():\n    outer()\ndef outer():\n    x = 1 + {}['é'] + 2\n"
    check({MODEL: text}, "TP402", ("model.py", 4, 12, 19), [("called from here", "model.py", 2)], "KeyError: 'é'")


def test_columns_count_code_points():
    check({MODEL: "def main():\n    é = '🜁'; 1 / 0\n"}, "TP402", ("model.py", 2, 13, 18))


def test_an_error_in_a_helper_stands_at_the_files_own_call():
    sources = {MODEL: "def main():\n    helper(3)\n", HELPER: "def helper(x):\n    return x[0]\n"}
    check(sources, "TP402", ("model.py", 2, 4, 13), [("raised here", "helper.py", 2)], "not subscriptable")


def test_a_recording_error_in_a_helper_stands_at_the_files_own_call_too():
    helper = "def helper(x):\n    raise RecordingError('no', span=Span('/project/helper.py', 2, 4, 2, 9))\n"
    check(
        {MODEL: "def main():\n    helper(3)\n", HELPER: helper},
        "TP401",
        ("model.py", 2, 4, 13),
        [("raised here", "helper.py", 2)],
    )


def test_a_recording_errors_own_span_wins_in_the_file_itself():
    text = "def main():\n    raise RecordingError('no', span=Span('/project/model.py', 1, 2, 1, 3), related=(Span('/project/model.py', 7, 0, 7, 1),))\n"
    check(
        {MODEL: text},
        "TP401",
        ("model.py", 1, 2, 3),
        [("this belongs to it", "model.py", 7), ("called from here", "model.py", 2)],
    )


def test_what_the_recorder_wraps_is_told_as_it_was():
    error = TraceError("the function raised MemoryError", code="TP402", span=Span(MODEL, 1, 0, 1, 1))
    error.__cause__ = run({MODEL: "def main():\n    raise MemoryError\n"})
    found = error_of(error, MODEL, ROOT)
    assert (found["code"], found["line"]) == ("TP406", 2)


def test_a_syntax_error_in_another_file_stands_there():
    sources = {MODEL: "def main():\n    compile('x = (', '/project/helper.py', 'exec')\n"}
    check(sources, "TP403", ("helper.py", 1, 4, 5), [("called from here", "model.py", 2)])


@pytest.mark.parametrize(
    ("statement", "code", "words"),
    [
        ("import nowhere_at_all", "TP404", "no module named 'nowhere_at_all'"),
        ("import tensorflow.keras", "TP409", "has no tensorflow"),
        ("raise SystemExit('bye')", "TP407", "status 'bye'"),
        ("raise EOFError('no more')", "TP402", "standard input"),
        ("raise MemoryError('too much')", "TP406", "too much"),
        ("raise ValueError", "TP402", "ValueError: no message"),
        ("raise ValueError('a\\x1b[2Jb')", "TP402", "a\\x1b[2Jb"),
        (
            "raise type('E', (Exception,), {'__str__': lambda self: 3})",
            "TP402",
            "E: its message cannot be told, since its `__str__`",
        ),
        ("raise type('E', (BaseException,), {'__str__': lambda self: 1 / 0})", "TP402", "raises ZeroDivisionError"),
        ("raise type('E', (ImportError,), {'__str__': lambda self: 3})", "TP404", "raises TypeError"),
    ],
)
def test_every_kind_of_exception_has_its_code(statement, code, words):
    check({MODEL: f"def main():\n    {statement}\n"}, code, ("model.py", 2, 4, 4 + len(statement)), words=words)


def test_an_exception_out_of_our_own_code_is_internal():
    def bug():
        relative_path(None, ROOT)

    try:
        bug()
    except TypeError as error:
        found = error_of(error, MODEL, ROOT)
    assert found["code"] == "internal"
    assert "session/places.py" in found["message"]


@pytest.mark.parametrize("package", ["topos_core", "topos_lsp", "topos_web"])
def test_no_error_stands_in_topos_itself(package):
    home = Path(topos_core.__file__).parents[1]
    inside = str(home / package / "made_up.py")
    found = error_of(run({inside: "def main():\n    return {}['é']\n"}), MODEL, ROOT)
    assert (found["code"], found["path"]) == ("internal", None)
    assert f"({package}/made_up.py:2 in main)" in found["message"].replace("\\", "/")
    assert is_user_file(str(home / "examples" / "made_up.py"))


def test_an_error_without_a_place_has_none():
    found = error_of(ConfigurationError("no", code="TP504"), MODEL, ROOT)
    assert (found["path"], found["line"]) == (None, None)


STACK = f"""\
Stack (most recent call first):
  File "{json.__file__}", line 5 in decode
  File "/project/gone.py", line 2 in helper
  File "/project/model.py", line 3 in main
  File "/project/model.py", line 9 in <module>
"""


def test_a_stopped_process_stood_at_the_innermost_line_of_the_file():
    text = "a\nb\n    while True: pass  \nc\n"
    assert place_in_stack(STACK, MODEL, text) == Span(MODEL, 3, 4, 3, 20)
    assert place_in_stack(STACK, "/project/other.py") == Span("/project/gone.py", 2, 0, 2, 1)
    assert place_in_stack("", MODEL) is None
    assert place_in_stack('  File "/usr/lib/x', MODEL) is None


def test_paths_inside_the_project_are_relative():
    assert relative_path("/project/a/b.py", ROOT) == "a/b.py"
    assert relative_path("/project-of-others/b.py", ROOT) == "/project-of-others/b.py"
    assert relative_path("<string>", ROOT) == "<string>"
