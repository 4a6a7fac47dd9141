"""What a pattern file must say. `catalog.patterns()` walks `topos_core/patterns/`; no list is edited."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from topos_core.cost.work import Work
from topos_core.matching.match import Match, NearMiss
from topos_core.tape.tape import Tape

if TYPE_CHECKING:
    from topos_core.matching.declared import Term


class Find(Protocol):
    """Tries the pattern at one value; `context` is the `matching.search.Context` of the pass."""

    def __call__(self, context: Any, root: int, /) -> Match | NearMiss | None: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class Example:
    """A marked program: a function over recorded values, its input specs, and what the pattern must answer there."""

    name: str
    function: Callable[..., Any]
    specs: Mapping[str, str]
    code: str | None = None


@dataclass(frozen=True, slots=True)
class Pattern:
    """A formula plus what may be said about it.

    Args:
        identifier: Public and stable.
        documentation: The file's docstring with the headings Recognises / Why it pays / Declines when / Not
            recognised / Source; `topos explain PATTERN` and `docs/patterns/` are made from it.
        roots: Names of ops at which the pattern can root; the search calls `find` only there.
        find: Tries the pattern at one value.
        work: Counts what the match's own formula costs when it is run as one piece.
        named: Names of results that the match writes back.
        last: Elected last, on computing ops that no taken match claims.
        examples: Programs in which it matches exactly once.
        counterexamples: Programs in which it must not match; `code` is the near miss or decline that must be told.
        evaluate: Computes `root` (row-major, up to reshape) and named results from the facts and the arrays of the
            bindings alone, with NumPy.
        where: Gives the values at which `find` can answer, where something knows them all at once; the search then asks
            nowhere else. `roots` where left out.
        term: Its formula, where it is a scalar core: all terms of a search are tried at once, and `find` looks up.
    """

    identifier: str
    documentation: str
    roots: frozenset[str]
    find: Find
    work: Callable[[Tape, Match], Work]
    named: tuple[str, ...] = ()
    last: bool = False
    examples: tuple[Example, ...] = ()
    counterexamples: tuple[Example, ...] = ()
    evaluate: Callable[[Any, Mapping[str, np.ndarray]], Mapping[str, np.ndarray]] | None = None
    where: Callable[[Any], Collection[int]] | None = None
    term: Term | None = None
