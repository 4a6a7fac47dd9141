"""What recognition found on a tape: the one pool that every consumer elects from."""

from __future__ import annotations

from dataclasses import dataclass

from topos_core.matching.match import Match, NearMiss


@dataclass(frozen=True, slots=True)
class Pool:
    """What recognition found on a tape: the one pool that every consumer elects from.

    Args:
        matches: In the order of their roots, then of `catalog.ORDER`.
        near_misses: Those that stand above no full match of the same pattern.
        attempts: How many times a pattern was tried; linear in the tape, and tests hold it to that.
        repeats: For each match the number of the match that it repeats, in another period of a run; its own where it
            was searched for. Empty where nothing was left out.
    """

    matches: tuple[Match, ...]
    near_misses: tuple[NearMiss, ...]
    attempts: int
    repeats: tuple[int, ...] = ()
