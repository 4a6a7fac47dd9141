"""What planning needs to know of a tape and its pool, whatever is asked: readers, kinds of ops, borders, families.

Matches that share claims, directly or through others, are one family; what is decided of a family depends on no other one,
but for cycles and for the nearest free place to observe.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from topos_core.matching.match import Match, NearMiss
from topos_core.plan.contraction import read_before_root
from topos_core.plan.election import families
from topos_core.plan.kinds import Kinds, kinds
from topos_core.plan.precedence import rank
from topos_core.plan.reading import Boundary, Reading, asked, boundary, claims_of, disturbed, reading
from topos_core.plan.request import Request
from topos_core.tape.tape import Tape


class Pool(Protocol):
    """What one search of a tape found; every consumer elects from it."""

    @property
    def matches(self) -> Sequence[Match]: ...  # noqa: D102

    @property
    def near_misses(self) -> Sequence[NearMiss]: ...  # noqa: D102

    @property
    def repeats(self) -> Sequence[int]: ...  # noqa: D102


@dataclass(slots=True)
class Survey:
    """What is known of a tape and its pool.

    Attributes:
        users: The readers of every value.
        kinds: Ops that cost alike.
        reads: Who reads under the tape's own observations. Shares of movement are counted with these, whatever a request
            adds: a benefit must not change where what-if touches nothing.
        family: The family of each match, by its number.
        members: The matches of each family, ascending.
        ranks: The place of each pattern in the catalogue's order, among those of the pool.
    """

    tape: Tape
    pool: Pool
    users: list[list[int]] = field(init=False)
    kinds: Kinds = field(init=False)
    reads: Reading = field(init=False)
    family: Sequence[int] = field(init=False)
    members: dict[int, list[int]] = field(init=False, default_factory=dict)
    ranks: dict[str, int] = field(init=False)
    _borders: dict[int, Boundary] = field(init=False, default_factory=dict)
    _waits: dict[int, bool] = field(init=False, default_factory=dict)
    _waiting: list[tuple[int, int]] | None = field(init=False, default=None)
    _varies: list[bool] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        tape, matches = self.tape, self.pool.matches
        self.users = tape.users()
        self.kinds = kinds(tape)
        self.reads = reading(tape, self.users)
        self.family = families([claims_of(match) for match in matches])
        for number, family in enumerate(self.family):
            self.members.setdefault(family, []).append(number)
        self.ranks = {name: k for k, name in enumerate(sorted({match.pattern for match in matches}, key=rank))}

    def varies(self, value: int) -> bool:
        """Says whether an op of the run makes a value: from an input, directly or through others."""
        if not self._varies:
            for op in self.tape.ops:
                self._varies.append(any(self._varies[v] or self.tape.ops[v].name == "input" for v in op.operands))
        return self._varies[value]

    def border(self, number: int) -> Boundary:
        """Gives the border of a match."""
        found = self._borders.get(number)
        if found is None:
            found = self._borders[number] = boundary(self.tape, self.users, self.pool.matches[number])
        return found

    def waits(self, number: int) -> bool:
        """Tells whether a named result of a match is read before its root: only such a match can close a cycle."""
        found = self._waits.get(number)
        if found is None:
            found = self._waits[number] = read_before_root(self.users, self.pool.matches[number])
        return found

    def waiting_around(self, value: int) -> tuple[int, int] | None:
        """Gives the first and the last root of matches that can stand in a cycle of picks with one of this root, if any can.

        One whose results are all read behind its root leads to later roots alone, so a cycle climbs from an early result of
        a match that waits to the root of one that waits: it lies within the spans of such matches that overlap.
        """
        if self._waiting is None:
            self._waiting = []
            matches = self.pool.matches
            waiting = [match for number, match in enumerate(matches) if self.waits(number)]
            for low, high in sorted((min(match.produced), match.root) for match in waiting):
                if self._waiting and low <= self._waiting[-1][1]:
                    low, top = self._waiting.pop()
                    high = max(high, top)
                self._waiting.append((low, high))
        place = bisect_right(self._waiting, (value, len(self.tape.ops))) - 1
        return self._waiting[place] if place >= 0 and value <= self._waiting[place][1] else None

    def asked(self, request: Request) -> Reading:
        """Gives the readers of a request."""
        return asked(self.tape, self.reads, request)

    def touched(self, request: Request) -> frozenset[int]:
        """Collects the families that a request may decide otherwise than the tape's own observations do."""
        matches, family = self.pool.matches, self.family
        found: set[int] = set()
        if request.observe or request.ignore or request.beside:
            insides, roots = disturbed(self.tape, self.reads, request)
            found |= {
                family[number]
                for number, match in enumerate(matches)
                if not insides.isdisjoint(match.interior) or match.root in roots
            }
        if request.off or request.off_at:
            off, off_at = request.off, request.off_at
            found |= {
                family[number]
                for number, match in enumerate(matches)
                if match.pattern in off or (match.pattern, match.root) in off_at
            }
        return frozenset(found)
