"""Elects, among matches that may run, those that do. Knows claims and weights; no tape, no kernels, no sentences.

The rules, in order: on equal claims the earlier identifier stands alone; what is not `last` is elected before what is;
per conflict component the greatest total weight wins, exactly up to `EXACT` candidates, else greedily; ties go to tape
order; picks that would contract to a cycle are refused and their component is elected again.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

EXACT: Final = 16  # 2^16 subsets bound the search; larger components are met in no model of the examples


class Candidate(NamedTuple):
    """One match that may run.

    Args:
        number: Its number in the pool.
        claims: Computing ops that it would own.
        weight: What taking it gains, as an integer so that sums are exact; at most 0 means that it does not pay.
        root: Its root; ties go to the smaller.
        rank: Its pattern's place in the catalogue's order.
        last: Elected on what the others leave.
    """

    number: int
    claims: frozenset[int]
    weight: int
    root: int
    rank: int
    last: bool


class Election(NamedTuple):
    """The outcome: who was picked, and who was refused because of which other pick (itself: its own cycle)."""

    picks: frozenset[int]
    refused: Mapping[int, int]

    def gain(self, candidates: Iterable[Candidate]) -> int:
        """Sums the weights of the picks."""
        return sum(c.weight for c in candidates if c.number in self.picks)


# Gives the pool numbers of picks that would contract to one cycle, or nothing.
FindCycle = Callable[[frozenset[int]], Sequence[int]]


@dataclass(slots=True)
class Elector:
    """Elects and remembers solved components, so that what-if solves only those that it touches.

    One elector serves one setting: the weight of a pool number never changes.

    Args:
        solved: How many components had to be solved so far.
        memory: What was picked of each component.
        told: What was picked of those that stand together.
    """

    solved: int = 0
    memory: dict[tuple[int, ...], tuple[int, ...]] = field(default_factory=dict)
    told: dict[tuple[int, ...], frozenset[int]] = field(default_factory=dict)

    def elect(self, candidates: Sequence[Candidate], find_cycle: FindCycle) -> Election:
        """Elects among candidates that share claims with nobody else; those that do not pay are never picked."""
        refused: dict[int, int] = {}
        while True:
            picks = self.picks(candidates, refused)
            loop = find_cycle(picks)
            if not loop:
                return Election(picks, refused)
            loser = yielding(c for c in candidates if c.number in loop)
            refused[loser] = next((i for i in loop if i != loser), loser)

    def picks(self, candidates: Iterable[Candidate], refused: Container[int] = ()) -> frozenset[int]:
        """Picks among candidates without those that are refused; whether picks make a cycle is for the caller to see."""
        paying = sorted([c for c in candidates if c.weight > 0 and c.number not in refused], key=_tape_order)
        key = tuple([c.number for c in paying])
        known = self.told.get(key)
        if known is None:
            known = self.told[key] = self._round(paying)
        return known

    def _round(self, paying: Sequence[Candidate]) -> frozenset[int]:
        # `last` patterns come second: a bare matmul never bids against the linear layer that contains it.
        first = self._solve([c for c in paying if not c.last])
        claimed = frozenset().union(*(c.claims for c in paying if c.number in first))
        second = self._solve([c for c in paying if c.last and c.claims.isdisjoint(claimed)])
        return first | second

    def _solve(self, candidates: Sequence[Candidate]) -> frozenset[int]:
        picks: set[int] = set()
        for component in components(earliest_of_equal_claims(candidates)):
            key = tuple([c.number for c in component])
            known = self.memory.get(key)
            if known is None:
                self.solved += 1
                if len(component) == 1:
                    known = key
                else:
                    known = solve_exactly(component) if len(component) <= EXACT else solve_greedily(component)
                self.memory[key] = known
            picks.update(known)
        return frozenset(picks)


def yielding(loop: Iterable[Candidate]) -> int:
    """Gives which pick of a loop gives way: the cheapest; ties: the later one, so that tape order wins here too."""
    return min(loop, key=lambda c: (c.weight, -c.root, -c.rank)).number


def _tape_order(candidate: Candidate) -> tuple[int, int, int]:
    number, _, _, root, rank, _ = candidate
    return root, rank, number


def earliest_of_equal_claims(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Keeps, of candidates that claim the same ops, the one whose pattern the catalogue lists first."""
    best: dict[frozenset[int], Candidate] = {}
    for candidate in candidates:
        known = best.get(candidate.claims)
        if known is None or (candidate.rank, candidate.root, candidate.number) < (known.rank, known.root, known.number):
            best[candidate.claims] = candidate
    return sorted(best.values(), key=_tape_order)


def components(candidates: Sequence[Candidate]) -> list[list[Candidate]]:
    """Splits candidates into groups that share no claim, in tape order within and without. Linear in the claims."""
    if len(candidates) == 1:
        return [[*candidates]]
    groups: dict[int, list[Candidate]] = {}
    for candidate, family in zip(candidates, families([candidate.claims for candidate in candidates]), strict=True):
        groups.setdefault(family, []).append(candidate)
    return list(groups.values())


def families(claims: Sequence[Iterable[int]]) -> list[int]:
    """Gives for each of several sets of claims the first one that it shares a claim with, directly or through others."""
    leader = list(range(len(claims)))
    claimed: dict[int, int] = {}
    for i, own in enumerate(claims):
        mine = i
        for claim in own:
            other = claimed.setdefault(claim, mine)
            if other == mine:
                continue
            while leader[other] != other:
                leader[other] = other = leader[leader[other]]
            if other < mine:
                leader[mine] = mine = other
            elif other > mine:
                leader[other] = mine
    for i, other in enumerate(leader):
        leader[i] = leader[other]  # those before are settled
    return leader


def by_claim(candidates: Iterable[Candidate]) -> dict[int, list[Candidate]]:
    """Lists, for every claimed op, the candidates that claim it."""
    found: dict[int, list[Candidate]] = {}
    for candidate in candidates:
        for claim in candidate.claims:
            found.setdefault(claim, []).append(candidate)
    return found


def touched(
    index: Mapping[int, Sequence[Candidate]], start: Sequence[Candidate], stands: Callable[[Candidate], bool]
) -> list[Candidate]:
    """Lists everything that the claims of `start` reach over overlapping candidates, `start` included, in tape order.

    `index` is `by_claim` of all that might stand; those that `stands` denies are passed by. Linear in what is reached.
    """
    found = {candidate.number: candidate for candidate in start}
    seen: set[int] = set()
    todo = list(start)
    while todo:
        for claim in todo.pop().claims:
            if claim in seen:
                continue
            seen.add(claim)
            for other in index.get(claim, ()):
                if other.number not in found and stands(other):
                    found[other.number] = other
                    todo.append(other)
    return sorted(found.values(), key=_tape_order)


def solve_exactly(component: Sequence[Candidate]) -> tuple[int, ...]:
    """Finds the non-overlapping subset of greatest weight, of candidates that all pay; ties go to tape order.

    A candidate is taken where that is worth as much as leaving it, so among equal subsets the one that takes the earliest
    candidate stands. What the free ones are worth is worked out once, whoever was taken before them.
    """
    count = len(component)
    claims, weights = [c.claims for c in component], [c.weight for c in component]
    conflicts = [  # with later ones
        sum([1 << j for j in range(i + 1, count) if not claims[i].isdisjoint(claims[j])]) for i in range(count)
    ]
    if conflicts == [(1 << count) - (2 << i) for i in range(count)]:  # one at most: the first of the heaviest
        return (component[weights.index(max(weights))].number,)
    best: dict[int, tuple[int, int]] = {0: (0, 0)}  # by the free ones: their worth, and who is taken

    def worth(free: int) -> tuple[int, int]:
        known = best.get(free)
        if known is None:
            first = free & -free
            i, later = first.bit_length() - 1, free ^ first
            left = free & ~conflicts[i] ^ first
            weight, picks = worth(left)
            known = weight + weights[i], picks | first
            if left != later:
                leaving = worth(later)
                if leaving[0] > known[0]:
                    known = leaving
            best[free] = known
        return known

    _, picks = worth((1 << count) - 1)
    return tuple([component[i].number for i in range(count) if picks >> i & 1])


def solve_greedily(component: Sequence[Candidate]) -> tuple[int, ...]:
    """Takes the greatest weight first, ties in tape order, and skips what overlaps."""
    claimed: set[int] = set()
    picks = []
    for candidate in sorted(component, key=lambda c: (-c.weight, *_tape_order(c))):
        if claimed.isdisjoint(candidate.claims):
            claimed |= candidate.claims
            picks.append(candidate.number)
    return tuple(picks)
