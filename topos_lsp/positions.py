r"""Maps offsets in a text to the positions that editors count, in all three encodings, and back.

Lines end at `\r\n`, `\n` and `\r`, as LSP and Python have it; a form feed or U+2028 ends none. Documents count columns in code
points, `ast` in UTF-8 bytes, editors in whatever was agreed: here everything is an offset in code points until it leaves.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cached_property
from typing import Final

from lsprotocol import types as lsp

Encoding = lsp.PositionEncodingKind

_FEED: Final = re.compile(r"\n")
_RETURN: Final = re.compile(r"\r\n?")


class Text:
    """One text and its lines. Offsets and columns count code points."""

    def __init__(self, source: str) -> None:
        self.source = source

    @cached_property
    def starts(self) -> list[int]:
        """Lists the offset of each line's first character."""
        return [0, *(end for _, end in self._breaks())]

    @cached_property
    def ends(self) -> list[int]:
        """Lists the offset behind each line's last character, before its line end."""
        return [*(start for start, _ in self._breaks()), len(self.source)]

    def _breaks(self) -> list[tuple[int, int]]:
        """Lists where each line end starts and stops. A search for what begins with one letter takes a 50th of one for either."""
        returns = [match.span() for match in _RETURN.finditer(self.source)]
        feeds = [match.span() for match in _FEED.finditer(self.source)]
        if not returns:
            return feeds
        return sorted([*returns, *(span for span in feeds if not self.source.endswith("\r", 0, span[0]))])

    def line(self, number: int) -> str:
        """Gives a line, counted from 0, without its end; empty past the last one."""
        if not 0 <= number < len(self.starts):
            return ""
        return self.source[self.starts[number] : self.line_end(number)]

    def line_end(self, number: int) -> int:
        """Gives the offset behind a line's last character, before its line end."""
        return self.ends[number] if number < len(self.ends) else len(self.source)

    def line_of(self, offset: int) -> int:
        """Gives the line, counted from 0, that an offset stands on."""
        return bisect_right(self.starts, offset) - 1

    def offset(self, line: int, column: int) -> int:
        """Gives the offset of a line counted from 0 and a column in code points; past an end it is that end."""
        if line < 0:
            return 0
        if line >= len(self.starts):
            return len(self.source)
        return min(self.starts[line] + max(column, 0), self.line_end(line))

    def place(self, line: int, column: int, end_line: int, end_column: int) -> tuple[int, int]:
        """Gives the offsets of a document's place, whose lines count from 1; an end at the start of a line keeps the line end."""
        start = self.offset(line - 1, column)
        if end_column == 0 and 0 < end_line <= len(self.starts):
            end = self.starts[end_line - 1]
        else:
            end = self.offset(end_line - 1, end_column)
        return start, max(start, end)

    def position(self, offset: int, encoding: Encoding) -> lsp.Position:
        """Gives an offset as the editor counts it."""
        line = self.line_of(offset)
        before = self.source[self.starts[line] : min(offset, self.line_end(line))]
        return lsp.Position(line=line, character=units(before, encoding))

    def range(self, start: int, end: int, encoding: Encoding) -> lsp.Range:
        """Gives two offsets as the editor counts them."""
        return lsp.Range(start=self.position(start, encoding), end=self.position(end, encoding))

    def offset_at(self, position: lsp.Position, encoding: Encoding) -> int:
        """Gives the offset of an editor's position; one inside of a character is that character's start."""
        line = self.line(position.line)
        return self.offset(position.line, column(line, position.character, encoding))

    def newline(self) -> str:
        """Gives the line end that the text uses first."""
        return self.source[self.ends[0] : self.starts[1]] if len(self.starts) > 1 else "\n"


def units(text: str, encoding: Encoding) -> int:
    """Counts a text in the units of an encoding."""
    if encoding == Encoding.Utf32 or text.isascii():
        return len(text)
    if encoding == Encoding.Utf8:
        return len(text.encode("utf-8", "surrogatepass"))
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def column(line: str, character: int, encoding: Encoding) -> int:
    """Gives the code points before a character of a line that the editor counts in its units."""
    if encoding == Encoding.Utf32 or line.isascii():
        return min(max(character, 0), len(line))
    count = 0
    for index, each in enumerate(line):
        count += units(each, encoding)
        if count > character:
            return index
    return len(line)
