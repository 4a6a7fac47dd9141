"""Fingerprints: what stays of a match when extents, values, scopes and lines are left out.

The roles of digits and the pattern's own facts are the op structure that a match stands for, so two spellings of one
convolution have one fingerprint: the layouts of kernel and result are the spelling's and count only as sets of roles.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache, lru_cache
from typing import Any

from topos_core.digest import Encoded, digest_of, encoded, write
from topos_core.errors import InternalError
from topos_core.matching.facts import Layout, Window
from topos_core.matching.match import Match, NearMiss
from topos_core.tape.tape import Tape

LENGTH = 16
"""Hex digits kept."""


def fingerprint(tape: Tape, match: Match) -> str:
    """Identifies a match's structure: pattern, digit roles, dtypes, which bindings and named results it has."""
    dtypes = {name: tape.type_of(value).dtype for name, value in match.bindings.items()}
    return digest_of(
        match.pattern,
        sorted(dtypes.items()),
        tape.type_of(match.root).dtype,
        sorted(match.named),
        _structure(match.facts),
    )[:LENGTH]


def fold(tape: Tape, match: Match, structure: str) -> str:
    """Identifies a match with its extents and the ops it was spelled with: displays collapse regions where it is equal.

    `structure` is the match's fingerprint.
    """
    inside = Counter(tape.ops[value].name for value in match.interior)
    return digest_of(
        structure,
        sorted((name, str(tape.type_of(value))) for name, value in match.bindings.items()),
        str(tape.type_of(match.root)),
        Encoded(_whole(match.facts)),
        sorted(inside.items()),
    )[:LENGTH]


def near_miss_fingerprint(tape: Tape, miss: NearMiss) -> str:
    """Identifies a near miss: pattern, code, and the op and dtype at which it would have rooted."""
    op = tape.ops[miss.root]
    return digest_of("near_miss", miss.pattern, miss.code, op.name, op.type.dtype)[:LENGTH]


def _structure(facts: Any) -> Any:
    """Keeps roles, words and flags; drops numbers, which are extents or values."""
    if isinstance(facts, Layout):
        return sorted(set(facts.roles))
    if isinstance(facts, Window):
        kinds = (facts.size, facts.stride, facts.dilation, facts.base_dilation)
        return [*(number > 1 for number in kinds), facts.reversed]
    if isinstance(facts, bool | str) or facts is None:
        return facts
    if isinstance(facts, int | float):
        return "number"
    return _parts(facts, _structure)


def _whole(facts: Any) -> bytes:
    """Encodes facts as `_parts` lists them."""
    parts: list[bytes] = []
    _write_whole(facts, parts)
    return b"".join(parts)


def _write_whole(facts: Any, parts: list[bytes]) -> None:
    kind: Any = type(facts)
    if kind is Layout:
        parts.append(_layout(facts))
    elif facts is None or isinstance(facts, bool | str | int | float):
        write(facts, parts)
    elif kind is tuple or kind is list:
        parts.append(b"(%d:" % len(facts))
        for value in facts:
            _write_whole(value, parts)
    elif is_dataclass(facts):
        count, rows = _rows(kind)
        parts.append(count)
        for name, written in rows:
            parts.append(written)
            _write_whole(getattr(facts, name), parts)
    else:
        parts.append(encoded(_parts(facts, lambda value: Encoded(_whole(value)))))


@lru_cache(maxsize=4096)
def _layout(layout: Layout) -> bytes:
    """Encodes a layout; a program has few of them, each in many facts."""
    return encoded([(name, getattr(layout, name)) for name in ("shape", "roles", "rank")])


@cache
def _rows(kind: type) -> tuple[bytes, tuple[tuple[str, bytes], ...]]:
    """Gives a dataclass's fields with the bytes before each value: facts are of a few classes, and there are thousands."""
    found = fields(kind)
    return b"(%d:" % len(found), tuple((each.name, b"(2:" + encoded(each.name)) for each in found)


def _parts(facts: Any, of: Any) -> Any:
    if is_dataclass(facts):
        return [(f.name, of(getattr(facts, f.name))) for f in fields(facts)]
    if isinstance(facts, Mapping):
        return sorted((str(name), of(value)) for name, value in facts.items())
    if isinstance(facts, frozenset | set):
        return sorted((of(value) for value in facts), key=repr)
    if isinstance(facts, tuple | list):
        return [of(value) for value in facts]
    raise InternalError(f"facts hold a {type(facts).__name__}, which has no fingerprint")
