"""Laws of positions over drawn texts: every kind of line end, form feeds, U+2028, astral characters and lone surrogates."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topos_lsp.edits import differences, moved_end, moved_start
from topos_lsp.positions import Encoding, Text

ENCODINGS = [Encoding.Utf8, Encoding.Utf16, Encoding.Utf32]
WIDTHS = {
    Encoding.Utf8: lambda c: len(c.encode("utf-8", "surrogatepass")),
    Encoding.Utf16: lambda c: 2 if ord(c) > 0xFFFF else 1,
    Encoding.Utf32: lambda c: 1,
}
PIECES = [
    "\r\n",
    "\r",
    "\n",
    "\x0c",
    "\x0b",
    "\x85",
    "\u2028",
    "\u2029",
    "😀",
    "é",
    "漢",
    "e\u0301",
    "\ud800",
    "a",
    " ",
]
texts = st.lists(st.one_of(st.sampled_from(PIECES), st.characters()), max_size=30).map("".join)


def line_start(source, offset):
    """Gives where the line of an offset begins, by reading the text from its start, as the specification has it."""
    start = number = at = 0
    while at < offset:
        size = 2 if source[at : at + 2] == "\r\n" else 1
        if source[at] in "\r\n":
            if at + size > offset:
                break
            start, number = at + size, number + 1
        at += size
    return number, start


def between(source, offset):
    """Says whether an offset stands inside of a CRLF, where no editor can."""
    return source[max(offset - 1, 0) : offset + 1] == "\r\n" and offset > 0


@pytest.mark.parametrize("encoding", ENCODINGS)
@given(source=texts, share=st.floats(0, 1))
@settings(max_examples=150, deadline=None)
def test_an_offset_is_counted_as_the_specification_counts_it_and_comes_back(encoding, source, share):
    offset = round(share * len(source))
    if between(source, offset):
        offset += 1
    text = Text(source)
    found = text.position(offset, encoding)
    number, start = line_start(source, offset)
    assert (found.line, found.character) == (number, sum(map(WIDTHS[encoding], source[start:offset])))
    assert text.offset_at(found, encoding) == offset


@given(source=texts, share=st.floats(0, 1))
@settings(max_examples=150, deadline=None)
def test_all_encodings_mean_the_same_place(source, share):
    offset = round(share * len(source))
    text = Text(source)
    back = {text.offset_at(text.position(offset, encoding), encoding) for encoding in ENCODINGS}
    assert len(back) == 1


@given(old=texts, new=texts)
@settings(max_examples=200, deadline=None)
def test_offsets_move_in_order_and_stay_in_the_new_text(old, new):
    edits = differences(old, new)
    for move in (moved_start, moved_end):
        moved = [move(offset, edits) for offset in range(len(old) + 1)]
        assert moved == sorted(moved)
        assert moved[0] >= 0
        assert moved[-1] <= len(new)
    untouched = [k for k in range(len(old)) if not any(edit.start <= k < edit.end for edit in edits)]
    assert all(new[moved_start(k, edits)] == old[k] for k in untouched)
