"""Puts the texts of two plans beside each other, aligned by lines: sources as they were traced, and what each plan emits."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Any, Final

from topos_web.payloads import Document

_VALUE: Final = re.compile(r"%v(\d+)")
_PLACE: Final = re.compile(r" loc\(.*$")


def sources(before: Document, after: Document) -> list[dict[str, Any]]:
    """Pairs the traced files by path, the targets' own whatever they are called; those that differ stand first."""
    left, right = _texts(before), _texts(after)
    own = before["target"].rpartition(":")[0], after["target"].rpartition(":")[0]
    pairs: list[tuple[str | None, str | None]] = [own] if own[0] in left and own[1] in right else []
    paired = {path for pair in pairs for path in pair}
    pairs += [(path if path in left else None, path if path in right else None)
              for path in dict.fromkeys((*right, *left)) if path not in paired]  # fmt: skip
    files = [
        _aligned(a, b, left[a].split("\n") if a is not None else [], right[b].split("\n") if b is not None else [])
        for a, b in pairs
    ]
    return sorted(files, key=lambda file: all(tag == "equal" for tag, *_ in file["blocks"]))


def emitted(before: str, after: str, of_before: Sequence[int], of_after: Sequence[int]) -> dict[str, Any]:
    """Aligns two emitted texts: values are compared by the partners of their ops, and places in the source not at all."""
    left, right = before.split("\n"), after.split("\n")
    keys = [_comparable(line, of_before) for line in left], [_comparable(line, of_after) for line in right]
    return _aligned("StableHLO", "StableHLO", left, right, *keys)


def _aligned(
    before: str | None,
    after: str | None,
    left: list[str],
    right: list[str],
    keys_before: list[str] | None = None,
    keys_after: list[str] | None = None,
) -> dict[str, Any]:
    blocks = SequenceMatcher(None, keys_before or left, keys_after or right).get_opcodes()
    texts = {"before": "\n".join(left), "after": "\n".join(right)}
    return {"path_before": before, "path_after": after, **texts, "blocks": [list(block) for block in blocks]}


def _comparable(line: str, numbers: Sequence[int]) -> str:
    def renamed(found: re.Match[str]) -> str:
        value = int(found[1])
        return f"%v{numbers[value]}" if value < len(numbers) else found[0]

    return _VALUE.sub(renamed, _PLACE.sub("", line))


def _texts(document: Document) -> dict[str, str]:
    return {path: text for path, text in zip(document["paths"], document["sources"], strict=True) if text}
