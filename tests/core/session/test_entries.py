"""Entries and comments are found by syntax alone."""

import pytest

from topos_core.errors import ConfigurationError, ToposError, TraceError
from topos_core.session.entries import find


def check(text: str, expected: dict[str, str | None]) -> None:
    assert {entry.name: entry.specs for entry in find(text, "model.py").entries} == expected


DECORATED = {
    "by the usual alias": "import topos_core as tp\n@tp.model(x=tp.f32[2])\ndef f(x): ...\n",
    "by the full name": "import topos_core\n@topos_core.model(x=topos_core.f32[2])\ndef f(x): ...\n",
    "by an imported name": "from topos_core import model, f32\n@model(x=f32[2])\ndef f(x): ...\n",
    "by a renamed import": "from topos_core import model as entry, f32\n@entry(x=f32[2])\ndef f(x): ...\n",
    "by a star import": "from topos_core import *\n@model(x=f32[2])\ndef f(x): ...\n",
    "through a submodule import": "import topos_core.nn\n@topos_core.model(x=1)\ndef f(x): ...\n",
    "below another decorator": "import topos_core as tp\n@other\n@tp.model(x=tp.f32[2])\ndef f(x): ...\n",
    "inside a condition": "import topos_core as tp\nif True:\n    @tp.model(x=tp.f32[2])\n    def f(x): ...\n",
    "by a name bound to one mark": "import topos_core as tp\nshared = tp.model(x=tp.f32[2])\n@shared\ndef f(x): ...\n",
    "with Windows line ends": "import topos_core as tp\r\n@tp.model(x=tp.f32[2])\r\ndef f(x): ...\r\n",
    "after a byte order mark": "\ufeffimport topos_core as tp\n@tp.model(x=tp.f32[2])\ndef f(x): ...\n",
}


@pytest.mark.parametrize("text", DECORATED.values(), ids=DECORATED.keys())
def test_a_decorated_function_is_an_entry_whose_specs_stand_in_the_decorator(text):
    check(text, {"f": None})


UNMARKED = {
    "another package's model": "import other as tp\n@tp.model(x=1)\ndef f(x): ...\n",
    "a topos decorator that is not model": "import topos_core as tp\n@tp.jit\ndef f(x): ...\n",
    "a name bound to another call": "import topos_core as tp\nshared = tp.scope('x')\n@shared\ndef f(x): ...\n",
    "a mark in a string": "text = '''\n# topos: entry inputs=f32[2]\ndef f(x): ...\n'''\n",
    "a sentence about topos": "# topos: the tape stays the spec\ndef f(x): ...\n",
    "no word of topos": "def f(x): ...\n",
}


@pytest.mark.parametrize("text", UNMARKED.values(), ids=UNMARKED.keys())
def test_what_only_looks_like_a_mark_is_none(text):
    check(text, {})


COMMENTED = {
    "over a function": ("# topos: entry inputs=f32[1,3,8,8]\ndef f(x): ...\n", {"f": "f32[1,3,8,8]"}),
    "over a class": ("#topos:entry inputs=f32[2]\nclass Net: ...\n", {"Net": "f32[2]"}),
    "over decorators": ("# topos: entry inputs=f32[2]\n@a\n@b\ndef f(x): ...\n", {"f": "f32[2]"}),
    "between decorators and the name": ("@a\n# topos: entry inputs=f32[2]\ndef f(x): ...\n", {"f": "f32[2]"}),
    "with blank lines and comments between": (
        "# topos: entry inputs=f32[2]\n\n# note\ndef f(x): ...\n",
        {"f": "f32[2]"},
    ),
    "at the end of the line": ("def f(x): ...  # topos: entry inputs=f32[2]\n", {"f": "f32[2]"}),
    "with keyword inputs": ("# topos: entry x=f32[2], n=i64[3]<10\ndef f(x, n): ...\n", {"f": "x=f32[2], n=i64[3]<10"}),
    "with keywords after inputs=": ("# topos: entry inputs=x=f32[2]\ndef f(x): ...\n", {"f": "x=f32[2]"}),
    "with a framework": (
        "# topos: entry framework=jax inputs=f32[2]\ndef f(x): ...\n",
        {"f": "framework=jax inputs=f32[2]"},
    ),
    "without inputs": ("# topos: entry\ndef f(): ...\n", {"f": ""}),
    "inside a class": ("class A:\n    # topos: entry inputs=f32[2]\n    def f(x): ...\n", {"A.f": "f32[2]"}),
    "twice, the later definition wins": (
        "# topos: entry inputs=f32[2]\ndef f(x): ...\n# topos: entry inputs=f32[3]\ndef f(x): ...\n",
        {"f": "f32[3]"},
    ),
}


@pytest.mark.parametrize(("text", "expected"), COMMENTED.values(), ids=COMMENTED.keys())
def test_a_comment_marks_the_function_or_class_below_it(text, expected):
    check(text, expected)


def test_spans_count_code_points_and_cover_the_name_and_the_mark():
    entry = find("import topos_core as tp\n@tp.model(x='🜁é')\ndef Übung(x): ...\n", "model.py").entries[0]
    assert (entry.span.line, entry.span.column, entry.span.end_column) == (3, 4, 9)
    assert (entry.mark.line, entry.mark.column, entry.mark.end_column) == (2, 1, 17)


def test_form_feeds_and_line_separators_in_strings_shift_no_line():
    text = "import topos_core as tp\n\x0ca = 'x\u2028y\x1c'\n@tp.model(x=1)\ndef f(x): ...\n"
    assert find(text, "model.py").entries[0].span.line == 4


def test_ignore_and_off_keep_their_names_reason_and_line():
    text = "# topos: off[convolution, linear]\ny = f(x)\nz = g(y)  # topos: ignore[TP202] slower on purpose\n"
    off, ignore = find(text, "model.py").comments
    assert (off.kind, off.names, off.line) == ("off", ("convolution", "linear"), 2)
    assert (ignore.kind, ignore.names, ignore.text, ignore.line) == ("ignore", ("TP202",), "slower on purpose", 3)
    assert (ignore.span.column, ignore.span.end_column) == (10, 50)


WRONG = {
    "a misspelt kind": ("x = 1  # topos: ignor[TP202]\n", "ignor[TP202]", 7),
    "no code": ("x = 1  # topos: ignore\n", "ignore", 7),
    "an empty list": ("x = 1  # topos: ignore[]\n", "ignore[]", 7),
    "no such form of code": ("x = 1  # topos: ignore[202]\n", "TP202", 7),
    "an entry over nothing": ("# topos: entry inputs=f32[2]\nx = 1\n", "neither a function nor a class", 0),
}


@pytest.mark.parametrize(("text", "words", "column"), WRONG.values(), ids=WRONG.keys())
def test_a_comment_that_cannot_be_meant_is_told_with_its_place(text, words, column):
    with pytest.raises(ConfigurationError) as caught:
        find(text, "model.py")
    assert caught.value.code == "TP501"
    assert words in caught.value.message
    assert caught.value.span is not None
    assert caught.value.span.column == column


def test_a_syntax_error_has_its_place():
    with pytest.raises(TraceError) as caught:
        find("import topos_core\ndef f(:\n    pass\n", "model.py")
    assert (caught.value.code, caught.value.span.line, caught.value.span.column) == ("TP403", 2, 6)


@pytest.mark.parametrize("text", ["topos\0", "topos = " + "(" * 5000, "topos = 'unended"])
def test_what_no_parser_follows_is_a_syntax_error(text):
    with pytest.raises(ToposError) as caught:
        find(text, "model.py")
    assert caught.value.code == "TP403"
