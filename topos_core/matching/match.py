"""What recognition finds: matches and near misses. Structural truth, no policy, no consumer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any


@dataclass(frozen=True, slots=True)
class Match:
    """This pattern roots at this value.

    Args:
        pattern: The pattern's identifier.
        root: The value that the match produces.
        bindings: Values that the formula reads, by the pattern's own names (`x`, `kernel`, `scale`); none is interior.
        interior: Every value between the root and the bindings, root excluded: arithmetic, movement, constants.
        computing: The part of `interior` that carries arithmetic, plus the root; movement and constants are shared
            freely, so only these are claimed.
        named: Inner values that the match also produces and writes back, by name. A name may have several producers
            (a mean computed twice is one mean); none of them is in `interior`.
        facts: What a kernel or raise needs to know, in the pattern's own frozen dataclass (see `matching/facts.py`).
        stopped: Why the match did not go further ("why not with the bias too"), as near misses; never findings.
        nearer: Whether it stands in for the other match of its pattern and root, which takes in the factors of what it binds
            (`q * 0.125`), where somebody else reads what these give.
    """

    pattern: str
    root: int
    bindings: Mapping[str, int]
    interior: frozenset[int]
    computing: frozenset[int]
    named: Mapping[str, tuple[int, ...]]
    facts: Any
    stopped: tuple[NearMiss, ...] = ()
    nearer: bool = False
    _id: list[str] = field(default_factory=list, init=False, repr=False, compare=False)  # written once it is asked for

    @property
    def id(self) -> str:
        """Names the match; the same for every consumer and every plan of one tape."""
        if not self._id:
            parts = ",".join(f"{name}=%{value}" for name, value in sorted(self.bindings.items()))
            self._id.append(f"{self.pattern}@%{self.root}({parts})")
        return self._id[0]

    @property
    def produced(self) -> frozenset[int]:
        """Collects the root and every producer of a named result."""
        if not self.named:
            return frozenset((self.root,))
        return frozenset((self.root, *chain.from_iterable(self.named.values())))


@dataclass(frozen=True, slots=True)
class NearMiss:
    """The match that almost was.

    Args:
        pattern: The pattern's identifier.
        root: The value at which the pattern would have rooted.
        at: The value at which the first difference stands.
        code: A stable word for the kind of difference (`divisor`, `eps-outside-root`, `pad-fill`).
        sentence: What differs and what it means, in the user's axis names and numbers.
        expected: What the pattern needs there.
        found: What the tape has there.
        steps_held: How many steps of the pattern held.
        steps: How many steps the pattern has.
        numbers: The values that decided, by name.
    """

    pattern: str
    root: int
    at: int
    code: str
    sentence: str
    expected: str
    found: str
    steps_held: int
    steps: int
    numbers: Mapping[str, float] = field(default_factory=dict)
