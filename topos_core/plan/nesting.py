"""Which decisions of a family are told, and which are named inside another one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from topos_core.matching.match import Match
from topos_core.plan.decision import Verdict
from topos_core.plan.precedence import rank


class Draft(NamedTuple):
    """A verdict that is not yet told.

    Args:
        verdict: taken, declined or blocked.
        code: The TP code.
        observations: Rows that block.
        winner: The number of the match that covers it, where a family has something blocked.
    """

    verdict: Verdict
    code: str | None = None
    observations: tuple[int, ...] = ()
    winner: int | None = None


def nested(
    matches: Sequence[Match], claims: Mapping[int, frozenset[int]], drafts: Mapping[int, Draft], last: frozenset[int]
) -> Iterator[tuple[int, Sequence[int], int | None]]:
    """Gives the number of each match that is told, those that it contains, and its parent: the larger before the smaller.

    A match inside a taken one is listed in `contains`, unless both are of one pattern. One that a blocked match would
    have covered is listed there. A match inside a larger one of its own pattern that says the same thing says nothing new.
    Of two on the same ops the one that the catalogue lists first is told, even where the other was taken in its place.
    Those elected last speak for ops that nobody else has: they are told where they are taken, or where no other decision, and
    no larger one of their own kind, is about any of their ops.
    """
    if len(drafts) == 1:
        (number,) = drafts
        yield number, (), None
        return
    by_claim: dict[int, list[int]] = {}
    for number in drafts:
        for claim in claims[number]:
            by_claim.setdefault(claim, []).append(number)
    contains: dict[int, list[int]] = {}
    around: dict[int, list[int]] = {}
    hidden: set[int] = set()
    for number, draft in drafts.items():
        match, mine = matches[number], claims[number]
        larger = [n for n in by_claim[match.root] if n != number and mine <= claims[n]]
        if len(larger) > 1:
            larger.sort(key=lambda n: (len(claims[n]), matches[n].root, n))
        around[number] = larger
        if draft.verdict == "taken":
            continue
        for holder in larger:
            named = number not in last and holder in last  # it has a name for what the taken one only groups
            if drafts[holder].verdict == "taken" and not (
                mine == claims[holder] and (named or _outranks(match, draft, matches[holder]))
            ):
                break
        else:
            holder = draft.winner if draft.winner in larger and drafts[draft.winner].verdict == "blocked" else -1
        if holder >= 0:
            hidden.add(number)
            if matches[holder].pattern != match.pattern:
                contains.setdefault(holder, []).append(number)
        elif number not in last and any(_says_the_same(matches, drafts, n, number) for n in larger):
            hidden.add(number)
    quiet = [n for n in drafts if n in last and n not in hidden and drafts[n].verdict != "taken"]
    for number in sorted(quiet, key=lambda n: -len(claims[n])):  # a larger one hides only where it is told itself
        mine = claims[number]
        beside = {n for claim in mine for n in by_claim[claim]} - {number}
        others = beside - last
        if matches[number].named and all(drafts[n].verdict != "taken" and claims[n] < mine for n in others):
            others = set()  # siblings say more than each of them does
        if others or any(n in last and n not in hidden and mine < claims[n] for n in beside):
            hidden.add(number)
    for number in drafts:
        if number not in hidden:
            parents = (n for n in around[number] if n not in hidden and drafts[n].verdict == "blocked")
            parent = next((n for n in parents if _wraps(matches[n], matches[number])), None)
            yield number, contains.get(number, ()), parent


def _outranks(match: Match, draft: Draft, taken: Match) -> bool:
    """Tells whether a match on the same ops as a taken one is more to tell: listed earlier, or blocked and reaching further."""
    return rank(match.pattern) < rank(taken.pattern) or (draft.verdict == "blocked" and _wraps(match, taken))


def _wraps(larger: Match, smaller: Match) -> bool:
    """Tells whether a match holds everything of another and more."""
    return smaller.interior | smaller.produced < larger.interior | larger.produced


def _says_the_same(matches: Sequence[Match], drafts: Mapping[int, Draft], larger: int, smaller: int) -> bool:
    one, other = drafts[larger], drafts[smaller]
    return (
        matches[larger].pattern == matches[smaller].pattern
        and matches[larger].computing != matches[smaller].computing
        and one.code == other.code
        and set(other.observations) <= set(one.observations)
    )
