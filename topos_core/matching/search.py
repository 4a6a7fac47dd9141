"""The search: every pattern at every value that can be its root, once, with no policy. Linear in the tape."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from topos_core.matching.context import Context
from topos_core.matching.match import Match, NearMiss
from topos_core.matching.pattern import Pattern
from topos_core.tape.tape import Tape

__all__ = ["Context", "Pool", "search"]


@dataclass(frozen=True, slots=True)
class Pool:
    """What recognition found on a tape: the one pool that every consumer elects from.

    Args:
        matches: In the order of their roots, then of `catalog.ORDER`.
        near_misses: Those that stand above no full match of the same pattern.
        attempts: How many times a pattern was tried; linear in the tape, and tests hold it to that.
    """

    matches: tuple[Match, ...]
    near_misses: tuple[NearMiss, ...]
    attempts: int


def search(tape: Tape, patterns: Iterable[Pattern]) -> Pool:
    """Tries every pattern at every live value whose op can be its root."""
    patterns = tuple(patterns)
    by_op: dict[str, list[Pattern]] = {}
    for pattern in patterns:
        for name in pattern.roots:
            by_op.setdefault(name, []).append(pattern)
    matches: list[Match] = []
    near: list[NearMiss] = []
    attempts = 0
    with _collector_frozen():
        context = Context(tape, patterns)
        for value, op in enumerate(tape.ops):
            candidates = by_op.get(op.name)
            if candidates is None or not context.is_live(value):
                continue
            for pattern in candidates:
                attempts += 1
                found = context.answer(pattern, value)
                if isinstance(found, Match):
                    matches.append(found)
                elif found is not None:
                    near.append(found)
        return _settled(context, matches, near, attempts)


def _settled(context: Context, matches: list[Match], near: list[NearMiss], attempts: int) -> Pool:
    """Turns near misses right above a full match of the same pattern into that match's `stopped` notes."""
    places = {(match.pattern, match.root): k for k, match in enumerate(matches)}
    alone: list[NearMiss] = []
    for miss in near:
        place = next((places[at] for at in _below(context, miss) if at in places), None)
        if place is None:
            alone.append(miss)
        else:
            matches[place] = replace(matches[place], stopped=(*matches[place].stopped, miss))
    return Pool(tuple(matches), tuple(alone), attempts)


def _below(context: Context, miss: NearMiss) -> Iterator[tuple[str, int]]:
    """Lists where a full match of the same pattern would root: the near miss's operands, seen through movement."""
    for operand in context.op(miss.root).operands:
        value = operand
        while True:
            yield miss.pattern, value
            op = context.op(value)
            if not op.operands or context.view(value).base == value:
                break
            value = op.operands[0]


@contextmanager
def _collector_frozen() -> Iterator[None]:
    """Stops the cyclic collector: matching builds many tuples and no cycles, and collections would walk them all."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
