from __future__ import annotations

import pytest

from topos_core.session.entries import find
from topos_core.session.switches import Place, switching_off

MODEL = '''\
import topos_core as tp

@tp.model(x=tp.f32[4])
def f(x):
    y = x + 1
    z = g(
        y,
    )
    # said above
    w = y * 2  # said beside
    v = h(y)  # topos: off[softmax]
    return """
      # topos: not this
    """, v, w, z
'''


def switched(*places: tuple[str, int, int]) -> tuple[str, list[str], int]:
    edits, lost = switching_off(MODEL, "model.py", [Place(*place) for place in places])
    lines = MODEL.split("\n")
    for edit in edits:
        at = edit.place
        assert (at.line, at.column) == (at.end_line, at.end_column)
        lines[at.line - 1] = lines[at.line - 1][: at.column] + edit.text + lines[at.line - 1][at.column :]
    return "\n".join(lines), [lines[edit.place.line - 1].strip() for edit in edits], len(lost)


@pytest.mark.parametrize(
    ("place", "line"),
    [
        (("gelu", 5, 5), "y = x + 1  # topos: off[gelu]"),
        (("gelu", 6, 8), ")  # topos: off[gelu]"),
        (("gelu", 10, 10), "w = y * 2  # topos: off[gelu] # said beside"),
        (("gelu", 11, 11), "v = h(y)  # topos: off[softmax, gelu]"),
    ],
)
def test_a_comment_is_written_where_it_is_read_as_one(place: tuple[str, int, int], line: str) -> None:
    text, lines, lost = switched(place)
    assert lines == [line]
    assert lost == 0
    assert any(
        comment.kind == "off" and "gelu" in comment.names and place[1] <= comment.line <= place[2]
        for comment in find(text, "model.py").comments
    )


def test_patterns_of_one_line_share_a_comment() -> None:
    _, lines, _ = switched(("gelu", 5, 5), ("linear", 5, 5), ("gelu", 5, 5))
    assert lines == ["y = x + 1  # topos: off[gelu, linear]"]


def test_a_line_inside_a_string_takes_no_comment() -> None:
    text, lines, lost = switched(("gelu", 13, 13), ("gelu", 99, 99))
    assert (text, lines, lost) == (MODEL, [], 2)
