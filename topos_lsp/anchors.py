"""Places in a buffer that move with its edits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from topos_lsp.edits import Edit, moved_end, moved_start


@dataclass(slots=True)
class Anchors:
    """Spans of one text as offsets; a span whose text is gone stays as an empty one and is `gone`."""

    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    _known: dict[tuple[int, int], int] = field(default_factory=dict)
    _empty: set[int] = field(default_factory=set)

    def add(self, start: int, end: int) -> int:
        """Adds a span, before any move; equal ones have one index."""
        index = self._known.get((start, end))
        if index is None:
            index = self._known[start, end] = len(self.starts)
            self.starts.append(start)
            self.ends.append(end)
            if start == end:
                self._empty.add(index)
        return index

    def move(self, edits: Sequence[Edit]) -> None:
        """Moves every span on."""
        if edits:
            self.starts = [moved_start(offset, edits) for offset in self.starts]
            self.ends = [moved_end(offset, edits) for offset in self.ends]
            self._known = {}

    def gone(self, index: int) -> bool:
        """Says whether what stood there was removed."""
        return self.starts[index] >= self.ends[index] and index not in self._empty

    def covers(self, index: int, offset: int) -> bool:
        """Says whether an offset is inside of a span, its end included: a cursor stands between characters."""
        return self.starts[index] <= offset <= self.ends[index]

    def length(self, index: int) -> int:
        """Gives the characters of a span."""
        return self.ends[index] - self.starts[index]
