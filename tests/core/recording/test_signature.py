"""Arguments are found in a signature whatever stands around it, and a lone `return` where it stands."""

import pytest

from topos_core.recording.signature import arguments_of, code_of, returned_at
from topos_core.recording.source import SourceSnapshot

TEXT = """
def marked(*things, **named):
    return lambda function: function

@marked(
    lambda x: x, {"a": 1})
def several(x: "dict[str, int]" = 1,
            *, y=(lambda q: q)) -> dict[1:2]:
    if x:
        return y
    return x

class Layer:
    def __call__(self, é, width): return é + width
"""


def place(text, span):
    line = text.split("\n")[span.line - 1]
    return span.line, line[span.column : span.end_column]


@pytest.mark.parametrize(("name", "line"), [("x", 7), ("y", 8), ("é", 14), ("width", 14)])
def test_an_argument_stands_in_the_signature(name, line):
    scope = {}
    exec(compile(TEXT, "model.py", "exec"), scope)
    code = code_of(scope["several"] if line < 14 else scope["Layer"]())
    span = arguments_of(code, SourceSnapshot({"model.py": TEXT}))(name).frames[0].span
    assert place(TEXT, span) == (line, name)


def test_a_return_has_a_place_where_it_is_the_only_one():
    scope = {}
    exec(compile(TEXT, "model.py", "exec"), scope)
    sources = SourceSnapshot({"model.py": TEXT})
    assert returned_at(code_of(scope["several"]), sources) is None
    span = returned_at(code_of(scope["Layer"]()), sources).frames[0].span
    assert place(TEXT, span) == (14, "return é + width")


def test_topos_reads_no_more_of_a_function_than_its_signature():
    head = "def long(x, w):\n"
    text = head + "    x = (\n" + "        x +\n" * 3 + "        w)\n    return x\n    '''not closed\n"
    code = compile("def long(x, w):\n    return x\n", "model.py", "exec").co_consts[0]
    span = arguments_of(code, SourceSnapshot({"model.py": text}))("w").frames[0].span
    assert place(text, span) == (1, "w")
