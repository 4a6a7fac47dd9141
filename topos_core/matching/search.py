"""The search: every pattern at every value that can be its root, once, with no policy. Linear in the tape."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from topos_core.matching.answers import keys_of, nearer, tried
from topos_core.matching.context import Context
from topos_core.matching.match import Match, NearMiss
from topos_core.matching.pattern import Pattern
from topos_core.matching.pool import Effort, Pool
from topos_core.matching.shortened import shortened
from topos_core.matching.unrolled import unrolled
from topos_core.tape.tape import Tape

__all__ = ["Context", "Pool", "search"]


def search(tape: Tape, patterns: Iterable[Pattern], *, repeats: bool = True, remember: bool = True) -> Pool:
    """Tries every pattern at every live value whose op can be its root.

    Args:
        tape: What is searched.
        patterns: What is tried.
        repeats: Whether a run of identical blocks is searched once; the pool is the same either way.
        remember: Whether functions that look alike are tried once; the pool is the same either way.
    """
    patterns = tuple(patterns)
    with _collector_frozen():
        short = shortened(tape) if repeats else None
        if short is not None:
            context = Context(short.tape, patterns, remember=remember)
            found = _searched(context)
            pool = unrolled(short, context, found, tape.names)
            if pool is not None:
                return pool
        return _searched(Context(tape, patterns, remember=remember))


def _searched(context: Context) -> Pool:
    """Searches for what is elected last once all others have answered: only then is known what they leave."""
    found: list[tuple[int, int, Match | NearMiss]] = []
    attempts = 0
    for last in (False, True):
        chosen = [k for k, pattern in enumerate(context.patterns) if pattern.last is last]
        for value, asked in _asked(context, chosen):
            for k in asked:
                attempts += 1
                answer = context.answer(context.patterns[k], value)
                if answer is not None:
                    found.append((value, k, answer))
    found.sort(key=lambda one: one[:2])
    matches: list[Match] = []
    for _, _, answer in found:
        if isinstance(answer, Match):
            other = nearer(context, answer)
            matches += (answer,) if other is None else (answer, other)
    near = [answer for _, _, answer in found if isinstance(answer, NearMiss)]
    return _settled(context, matches, near, attempts)


def _asked(context: Context, chosen: Sequence[int]) -> Iterator[tuple[int, Sequence[int]]]:
    """Gives live values with the numbers of the chosen patterns that can root there."""
    by_op: dict[str, list[int]] = {}
    by_value: dict[int, list[int]] = {}
    for k in chosen:
        pattern = context.patterns[k]
        if pattern.where is None:
            for name in pattern.roots:
                by_op.setdefault(name, []).append(k)
            continue
        for value in pattern.where(context):
            by_value.setdefault(value, []).append(k)
    ops = context.tape.ops
    for value in sorted({*context.made_by(by_op), *by_value}):
        asked: Sequence[int] = by_op.get(ops[value][0], ())
        if value in by_value:
            asked = sorted((*asked, *by_value[value])) if asked else by_value[value]
        if asked and context.is_live(value):
            yield value, asked


def _settled(context: Context, matches: list[Match], near: list[NearMiss], attempts: int) -> Pool:
    """Turns near misses right above a full match of the same pattern into that match's `stopped` notes."""
    places = {(match.pattern, match.root): k for k, match in enumerate(matches) if not match.nearer}
    alone: list[NearMiss] = []
    for miss in near:
        place = next((places[at] for at in _below(context, miss) if at in places), None)
        if place is None:
            alone.append(miss)
        else:
            matches[place] = replace(matches[place], stopped=(*matches[place].stopped, miss))
    effort = Effort(attempts, *tried(context), context.walked + keys_of(context).walked)
    return Pool(tuple(matches), tuple(alone), effort)


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
