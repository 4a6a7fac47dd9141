"""What recognition found on a tape: the one pool that every consumer elects from."""

from __future__ import annotations

from dataclasses import dataclass

from topos_core.matching.match import Match, NearMiss


@dataclass(frozen=True, slots=True)
class Effort:
    """What a search did, in counts that grow with the tape and with nothing else; tests hold it to that.

    Args:
        attempts: How many times a pattern was asked.
        tries: How many templates were tried, anchors included.
        compared: How many functions of a template were compared with one of the program.
        walked: How many values were looked at between roots and bindings.
    """

    attempts: int
    tries: int
    compared: int
    walked: int


@dataclass(frozen=True, slots=True)
class Pool:
    """What recognition found on a tape: the one pool that every consumer elects from.

    Args:
        matches: In the order of their roots, then of `order.ORDER`; one that stands in for another is right behind it.
        near_misses: Those that stand above no full match of the same pattern.
        effort: What finding them took.
        repeats: For each match the number of the match that it repeats, in another period of a run; its own where it
            was searched for. Empty where nothing was left out.
    """

    matches: tuple[Match, ...]
    near_misses: tuple[NearMiss, ...]
    effort: Effort
    repeats: tuple[int, ...] = ()

    @property
    def attempts(self) -> int:
        """Counts how many times a pattern was asked."""
        return self.effort.attempts
