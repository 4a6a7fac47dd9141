"""What changed between two texts, and where an offset of the older one stands in the newer one."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from topos_lsp.positions import Text

_MAX_COMPARED: Final = 400  # lines; the comparison is quadratic, and past this one edit over all of it does


class Edit(NamedTuple):
    """The characters from `start` to `end` became `length` others."""

    start: int
    end: int
    length: int


def differences(old: str, new: str) -> list[Edit]:
    """Lists the edits that lead from one text to another, in order and in offsets of the old one.

    One edit is what a keystroke makes. Where both texts differ over several lines (a formatter, a branch switched), the lines
    between the first and the last difference are compared.
    """
    if old == new:
        return []
    first = _common_prefix(old, new)
    last = _common_suffix(old, new, first)
    if "\n" in old[first : len(old) - last] or "\n" in new[first : len(new) - last]:
        start = old.rfind("\n", 0, first) + 1
        end = old.find("\n", len(old) - last) + 1 or len(old)
        found = _by_line(old[start:end], new[start : len(new) - (len(old) - end)])
        if found is not None:
            return [Edit(start + each.start, start + each.end, each.length) for each in found]
    return [Edit(first, len(old) - last, len(new) - last - first)]


def moved_start(offset: int, edits: Sequence[Edit]) -> int:
    """Moves the start of something: what is written exactly there pushes it on."""
    for start, end, length in reversed(edits):
        if offset >= end:
            offset += length - (end - start)
        elif offset > start:
            offset = start + min(offset - start, length)
    return offset


def moved_end(offset: int, edits: Sequence[Edit]) -> int:
    """Moves the end of something: what is written exactly there does not become a part of it."""
    for start, end, length in reversed(edits):
        if offset <= start:
            continue
        if offset >= end:
            offset += length - (end - start)
        else:
            offset = start + min(offset - start, length)
    return offset


def _by_line(old: str, new: str) -> list[Edit] | None:
    before, after = Text(old), Text(new)
    old_lines, new_lines = _lines(before), _lines(after)
    if max(len(old_lines), len(new_lines)) > _MAX_COMPARED:
        return None
    matcher = difflib.SequenceMatcher(None, old_lines, new_lines, autojunk=False)
    found = []
    for tag, i, j, k, m in matcher.get_opcodes():
        if tag == "equal":
            continue
        start, end = _at(before, i), _at(before, j)
        text = new[_at(after, k) : _at(after, m)]
        prefix = _common_prefix(old[start:end], text)
        suffix = _common_suffix(old[start:end], text, prefix)
        found.append(Edit(start + prefix, end - suffix, len(text) - prefix - suffix))
    return found


def _lines(text: Text) -> list[str]:
    bounds = [*text.starts, len(text.source)]
    return [text.source[start:end] for start, end in pairwise(bounds)]


def _at(text: Text, line: int) -> int:
    return text.starts[line] if line < len(text.starts) else len(text.source)


def _common_prefix(a: str, b: str) -> int:
    """Counts equal characters at the start, by halving: comparing slices is as fast as memory."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _common_suffix(a: str, b: str, prefix: int) -> int:
    """Counts equal characters at the end that do not belong to the common start."""
    low, high = 0, min(len(a), len(b)) - prefix
    while low < high:
        middle = (low + high + 1) // 2
        if a[len(a) - middle : len(a) - low] == b[len(b) - middle : len(b) - low]:
            low = middle
        else:
            high = middle - 1
    return low
