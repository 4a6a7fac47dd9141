"""Matches by hand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from topos_core.matching.match import Match
from topos_core.ops.catalog import definition
from topos_core.tape.tape import Tape


def match(
    tape: Tape,
    pattern: str,
    root: int,
    bindings: Mapping[str, int],
    named: Mapping[str, tuple[int, ...]] | None = None,
    inside: Iterable[int] | None = None,
) -> Match:
    """Builds the match that covers everything between the root and its bindings."""
    named = named or {}
    produced = {root, *(v for values in named.values() for v in values)}
    interior: set[int] = set(inside or ())
    if inside is None:
        todo = [o for v in produced for o in tape.ops[v].operands]
        while todo:
            value = todo.pop()
            if value in interior or value in bindings.values() or value in produced:
                continue
            interior.add(value)
            todo.extend(tape.ops[value].operands)
    movement = {v for v in interior if definition(tape.ops[v].name).kind in ("movement", "source")}
    return Match(pattern, root, bindings, frozenset(interior), frozenset((interior - movement) | {root}), named, None)
