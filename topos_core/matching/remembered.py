"""Tries remembered by what they read: functions of one local structure are tried once, whatever their extents and numbers.

A try reads functions one after the other, and whatever it does next follows from what it has read: a function's kind, its
operands' kinds, maps and exponents, which operands were met before, and whether two extents are one. What was read is kept
as a path of such readings, and its end says how the try ended. A coefficient is no part of a reading: a try passes it on
into equations, which are kept as expressions of coefficients and are worked out, step by step as a try would, for each
function anew. A try at a function whose readings lead to a known end is therefore not made: its digits, bindings and equations
are those of the known one with other functions in their places.
"""

from __future__ import annotations

from typing import Any, Final

from topos_core.matching.attempt import Attempt
from topos_core.matching.func import Func
from topos_core.matching.met import Locals, Met, Reach, extents
from topos_core.matching.passed import length
from topos_core.matching.recalled import Outcome, Recalled, Refusal, Script
from topos_core.matching.template import Template
from topos_core.matching.tracing import Tracing, fits_anchor, structured

MOST: Final = 10_000
"""Readings and tries that are kept at most: 2.6 kilobytes for a try, 26 MB in all. A transformer of 10,000 ops in which no two
blocks are alike takes 1,560 of them and 4.1 MB, one of 50,000 ops 2,500 and 5.7 MB (`tracemalloc`)."""


class Memory:
    """The tries of a set of templates, in whatever search: what is read of one function is known of all that look alike.

    The first function that looks as none before is tried and nothing more; the second is what is kept. On a long tape most
    will look like others, and the first is kept.

    Args:
        off: Makes every try; the answers are the same.

    Attributes:
        at_once: Whether a try is kept when it is made first: it costs 1.7 times as much as one that is not.
        made: How many tries were made.
        kept: How much is kept: readings that were met once, and tries. With `MOST` of it nothing more is.
    """

    def __init__(self, *, off: bool = False) -> None:
        self.made = self.kept = 0
        self.at_once = False
        self._off = off
        self._paths: dict[Any, _Node] = {}
        self._locals = Locals()
        self._recent: Reach | None = None

    def trim(self) -> None:
        """Forgets everything where there is not much room left."""
        if self.kept > MOST // 2:
            self.kept = 0
            self._paths.clear()
            self._locals = Locals()

    def leave(self) -> None:
        """Lets go of the last function, and of the program with it."""
        self._recent = None

    def tried(self, template: Template, func: Func, script: Script) -> Attempt | Refusal:
        """Tries a template's structure at a function, and sorts its digits."""
        if not self._off:
            known, met = self._recalled(template, script, func)
            if known is not None:
                return (Recalled if known.fits else Refusal)(known, template, met, script)
        self.made += 1
        attempt = Attempt(template, func, script)
        structured(attempt)
        return attempt

    def is_anchor(self, template: Template, func: Func) -> tuple[bool, int]:
        """Says whether a function is the anchor of a template, and how many functions were compared."""
        if not self._off:
            known, _ = self._recalled(template, None, func)
            if known is not None:
                return known.fits, known.compared
        self.made += 1
        attempt = Attempt(template, func)
        return fits_anchor(attempt), attempt.compared

    def _recalled(self, template: Template, script: Script | None, func: Func) -> tuple[Outcome | None, Met]:
        """Follows the readings of a try to its end; None where it is not known, or cannot be kept."""
        reach = self._locals.first(func)
        if reach is not self._recent:
            if self._recent is not None:
                self._recent.next.clear()  # tries at one function follow each other
            self._recent = reach
        start = self._paths.get((template, script))
        if start is None:
            start = self._paths[template, script] = _Node()
            if not self.at_once:
                return None, reach.met
        node: _Node | None = start if start.ask is not None else None
        is_first = True
        told: Any = None
        while node is not None:
            ask = node.ask
            if type(ask) is int:
                if not is_first:
                    reach = reach.next.get(ask) or self._locals.after(reach, ask)
                is_first, told = False, reach.reading
            elif ask is None:
                return node.outcome, reach.met
            else:
                told = _compared(ask, reach.met)
            following = node.next
            node = following.get(told, _NOT_MET)
            if node is _NOT_MET:
                if self.at_once:
                    break
                if self.kept < MOST:
                    self.kept += 1
                    following[told] = None
                return None, reach.met
        if self.kept >= MOST:
            return None, reach.met
        return self._traced(start, Tracing(self._locals, func, template, script))

    def _traced(self, node: _Node, tracing: Tracing) -> tuple[Outcome | None, Met]:
        """Makes a try and keeps it."""
        outcome = tracing.outcome()
        self.made += 1
        self.kept += 1
        for ask, reading in tracing.trail.readings:
            node.ask = ask
            following = node.next.get(reading)
            if following is None:
                following = node.next[reading] = _Node()
            node = following
        node.outcome = outcome
        return outcome, tracing.met


def _compared(ask: Any, met: Met) -> Any:
    """Says how two strides, or two extents, that were met compare."""
    if len(ask) == 3:
        is_less, first, second = ask
        a, b = length(first, met.coefficients), length(second, met.coefficients)
        return a < b if is_less else a == b
    (k, i), (n, j) = ask
    return extents(met.order[k], k)[i] == extents(met.order[n], n)[j]


class _Node:
    """A place on the path of readings: what is read next, and where each reading leads; an end has an outcome."""

    __slots__ = ("ask", "next", "outcome")

    def __init__(self) -> None:
        self.ask: Any = None
        self.next: dict[Any, _Node | None] = {}  # None where a reading was met once
        self.outcome: Outcome | None = None


_NOT_MET: Final = _Node()
"""Where a reading leads that was never met."""
