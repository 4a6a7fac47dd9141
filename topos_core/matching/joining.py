"""Larger patterns out of matches: a match whose binding is another match's root."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from topos_core.matching.catalog import pattern
from topos_core.matching.closure import computing
from topos_core.matching.match import Match

if TYPE_CHECKING:
    from topos_core.matching.context import Context


def match_at(context: Context, identifier: str, value: int) -> Match | None:
    """Gives the full match of another pattern at a value; the pattern must be part of the search."""
    if identifier not in context.identifiers:
        return None
    answer = context.answer(pattern(identifier), value)
    return answer if isinstance(answer, Match) else None


def joined(
    context: Context,
    identifier: str,
    root: int,
    parts: Iterable[Match],
    bindings: Mapping[str, int],
    facts: object,
    between: Iterable[int] = (),
    named: Mapping[str, tuple[int, ...]] | None = None,
) -> Match:
    """Gives one match of several: what lies inside any of them, their roots, and what lies between them.

    Args:
        parts: The matches, in any order; one of them may root at `root`.
        bindings: What the whole reads.
        between: Values between the parts that none of them has.
        named: Named results of the whole.
    """
    inside: set[int] = set(between)
    for part in parts:
        inside |= part.interior | part.produced
    named = named or {}
    inside -= {root, *bindings.values(), *(value for values in named.values() for value in values)}
    return Match(
        identifier, root, dict(bindings), frozenset(inside), computing(context.tape, root, inside), named, facts
    )


def chain(context: Context, root: int, stops: Iterable[int]) -> set[int]:
    """Collects the values between a root and some values below it."""
    end = set(stops)
    inside: set[int] = set()
    todo = list(context.op(root).operands)
    while todo:
        value = todo.pop()
        if value in inside or value in end:
            continue
        inside.add(value)
        todo += context.op(value).operands
    return inside


def movement(context: Context, value: int, base: int) -> set[int]:
    """Collects the movement from a base to a value that is a view of it, the base left out."""
    inside: set[int] = set()
    todo = [value]
    while todo:
        one = todo.pop()
        if one not in inside and one != base:
            inside.add(one)
            todo += context.op(one).operands
    return inside
