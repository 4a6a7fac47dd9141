"""What terms answer to a search: one pass over all terms of the search, then a look-up per value."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final, NamedTuple

from topos_core.matching.binding import Found
from topos_core.matching.context import Context
from topos_core.matching.core import Keys
from topos_core.matching.declared import Term
from topos_core.matching.match import Match, NearMiss
from topos_core.matching.near import sifted
from topos_core.matching.pattern import Find
from topos_core.matching.telling import near_miss
from topos_core.matching.term import Index, Named, recognise

ROOTS: Final = frozenset(
    [
        "add",
        "sub",
        "mul",
        "div",
        "neg",
        "sqrt",
        "rsqrt",
        "pow",
        "exp",
        "log",
        "tanh",
        "erf",
        "abs",
        "maximum",
        "minimum",
        "select",
        "cast",
        "sum",
        "max",
        "min",
        "matmul",
    ]
)
"""Ops at which a term can root: a factor or a sign may always be the last op of a spelling."""

Facts = Callable[[Found], Any]
"""Turns what was found into a pattern's facts; None where it is another pattern's business."""


def finder(identifier: str) -> Find:
    """Gives the `find` of a pattern that is a term."""

    def find(context: Context, root: int, /) -> Match | NearMiss | None:
        return context.once(answers).get((identifier, root))

    return find


def places(*identifiers: str) -> Callable[[Any], Collection[int]]:
    """Gives the `where` of a pattern that can answer only where one of these terms does."""

    def where(context: Context) -> Collection[int]:
        roots = context.once(_recognised).roots
        return {root for identifier in identifiers for root in roots.get(identifier, ())}

    return where


def answers(context: Context) -> Mapping[tuple[str, int], Match | NearMiss]:
    """Gives what every term of the search says of every value."""
    return context.once(_recognised).answers


def found_at(context: Context, identifier: str, root: int) -> Found | None:
    """Gives the functions and digits behind a term's match, for patterns that are made of several."""
    return context.once(_recognised).found.get((identifier, root))


def nearer(context: Context, match: Match) -> Match | None:
    """Gives the match that stands in for one, where there is one."""
    answers = context.once(_recognised)
    return answers.nearer.get((match.pattern, match.root)) if answers.nearer else None


def keys_of(context: Context) -> Keys:
    """Gives the keys of the tape."""
    return context.once(_keyed)


def tried(context: Context) -> tuple[int, int]:
    """Counts the templates that were tried, and their functions that were compared."""
    return context.once(_recognised).tried


class _Answers(NamedTuple):
    answers: Mapping[tuple[str, int], Match | NearMiss]
    found: Mapping[tuple[str, int], Found]
    roots: Mapping[str, list[int]]
    tried: tuple[int, int]
    nearer: Mapping[tuple[str, int], Match]


def _keyed(context: Context) -> Keys:
    return Keys(context.tape, context.views)


@lru_cache(4)
def index_of(terms: tuple[tuple[str, Term], ...]) -> Index:
    """Gives the index of terms; what tries of one search came to serves the next one."""
    return Index([Named(name, term) for name, term in terms])


def _recognised(context: Context) -> _Answers:
    """Recognises every term of the search at once."""
    terms = {pattern.identifier: pattern.term for pattern in context.patterns if pattern.term is not None}
    keys = keys_of(context)
    index = index_of(tuple(terms.items()))
    recognised = recognise(keys, index, remember=context.remember)
    missed, stopped = sifted(keys, recognised)
    index.memory.leave()
    out: dict[tuple[str, int], Match | NearMiss] = {}
    for miss in missed:
        told = near_miss(keys, miss)
        if told is not None:
            out[miss.identifier, miss.root] = told
    for found in recognised.found:
        at = found.identifier, found.root
        notes = [note for miss in stopped.get(at, ()) if (note := near_miss(keys, miss)) is not None]
        out[at] = _match(found, tuple(notes))
    roots: dict[str, list[int]] = {}
    for identifier, root in out:
        roots.setdefault(identifier, []).append(root)
    return _Answers(
        out,
        {(found.identifier, found.root): found for found in recognised.found},
        roots,
        (recognised.tries, recognised.compared),
        {(found.identifier, found.root): replace(_match(found), nearer=True) for found in recognised.nearer},
    )


def _match(found: Found, notes: tuple[NearMiss, ...] = ()) -> Match:
    named = {name: values for name, values in found.named.items() if values}
    inside = found.interior, found.computing
    return Match(found.identifier, found.root, dict(found.bindings), *inside, named, found.facts, notes)
