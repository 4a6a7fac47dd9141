import ast
import random
from itertools import pairwise

import pytest
from lsprotocol import types as lsp

from topos_core.session.entries import split_lines
from topos_lsp.edits import differences, moved_end, moved_start
from topos_lsp.positions import Encoding, Text, column, units

ALPHABET = [
    "a",
    "é",
    "漢",
    "😀",
    "e\u0301",
    "\t",
    " ",
    "\x0c",
    "\u2028",
    "\x0b",
    "\x85",
    "\ud800",
    "\n",
    "\r\n",
    "\r",
    "#",
    "(",
    "x = 1",
]
ENCODINGS = [Encoding.Utf8, Encoding.Utf16, Encoding.Utf32]
REFERENCE = {
    Encoding.Utf8: lambda s: len(s.encode("utf-8", "surrogatepass")),
    Encoding.Utf16: lambda s: sum(2 if ord(c) > 0xFFFF else 1 for c in s),
    Encoding.Utf32: len,
}


def texts(count, seed=3):
    generator = random.Random(seed)
    for _ in range(count):
        yield "".join(generator.choice(ALPHABET) for _ in range(generator.randrange(40)))


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_every_offset_comes_back_from_its_position(encoding):
    for source in texts(300):
        text = Text(source)
        for offset in range(len(source) + 1):
            position = text.position(offset, encoding)
            if source[offset - 1 : offset + 1] == "\r\n" and offset > 0:
                continue  # no editor can stand between the two
            assert text.offset_at(position, encoding) == offset
            line = source[text.starts[position.line] : offset]
            assert position.character == REFERENCE[encoding](line)


def test_lines_are_those_of_the_session_and_of_the_parser():
    for source in texts(300, seed=5):
        text = Text(source)
        assert [text.line(number) for number in range(len(text.starts))] == split_lines(source)
    source = "a = 1\x0c\nb = '\x0c'\nc = 'x\u2028y'\r\nd = 2\re = 漢 = 3\n"
    text = Text(source)
    for statement in ast.parse(source).body:
        written = ast.get_source_segment(
            source.replace("\r\n", "\n").replace("\r", "\n").replace("\x0c\n", " \n"), statement
        )
        assert text.line(statement.lineno - 1).strip("\x0c ") == written.strip("\x0c ")


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_positions_past_an_end_and_inside_of_a_character_are_clamped(encoding):
    text = Text("😀a\r\nb")
    assert text.offset_at(lsp.Position(0, 99), encoding) == 2
    assert text.offset_at(lsp.Position(9, 0), encoding) == 5
    inside = {Encoding.Utf8: (1, 3), Encoding.Utf16: (1,), Encoding.Utf32: ()}[encoding]
    assert all(column("😀a", character, encoding) == 0 for character in inside)
    assert units("😀a", encoding) == {Encoding.Utf8: 5, Encoding.Utf16: 3, Encoding.Utf32: 2}[encoding]


def apply(source, edits, replacements):
    for (start, end, _), text in reversed(list(zip(edits, replacements, strict=True))):
        source = source[:start] + text + source[end:]
    return source


def test_differences_lead_from_one_text_to_the_other():
    generator = random.Random(7)
    for old in texts(400, seed=11):
        new = old
        for _ in range(generator.randrange(4)):
            at = generator.randrange(len(new) + 1)
            new = new[:at] + generator.choice(ALPHABET) + new[min(len(new), at + generator.randrange(3)) :]
        edits = differences(old, new)
        assert all(first.end <= second.start for first, second in pairwise(edits))
        taken, shift = [], 0
        for edit in edits:
            taken.append(new[edit.start + shift : edit.start + shift + edit.length])
            shift += edit.length - (edit.end - edit.start)
        assert apply(old, edits, taken) == new


def test_a_span_that_no_edit_touches_keeps_its_text():
    generator = random.Random(13)
    lines = [f"line{number} = value({number})\n" for number in range(40)]
    for _ in range(200):
        changed = list(lines)
        touched = set()
        for _ in range(generator.randrange(1, 4)):
            number = generator.randrange(len(lines))
            touched.add(number)
            changed[number] = generator.choice(
                ["", "new = 1\nother = 2\n", f"  {lines[number]}", lines[number][:-3] + "\n"]
            )
        old, new = "".join(lines), "".join(changed)
        edits = differences(old, new)
        for number, line in enumerate(lines):
            if number not in touched:
                start = old.index(line)
                moved = moved_start(start, edits), moved_end(start + len(line) - 1, edits)
                assert new[moved[0] : moved[1]] == line[:-1]


def test_what_is_typed_at_the_border_of_a_span_does_not_become_a_part_of_it():
    old = "y = f(x)"
    assert moved_start(4, differences(old, "y = -f(x)")) == 5
    assert moved_end(8, differences(old, "y = f(x) + 1")) == 8
