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
from topos_core.matching.met import Locals, Met, extents
from topos_core.matching.passed import length
from topos_core.matching.recalled import Outcome, Recalled, Refusal, Script
from topos_core.matching.template import Template
from topos_core.matching.tracing import Tracing, fits_anchor, structured

MOST: Final = 20_000
"""Tries that are kept at most, of a few kilobytes each; a network of 10,000 ops in which no two blocks are alike makes 1,100."""


class Memory:
    """The tries of a set of templates, in whatever search: what is read of one function is known of all that look alike.

    The first function that looks as none before is tried and nothing more; the second is what is kept.

    Args:
        off: Makes every try; the answers are the same.

    Attributes:
        made: How many tries were made.
        kept: How many of them are kept.
    """

    def __init__(self, *, off: bool = False) -> None:
        self.made = self.kept = 0
        self._off = off
        self._paths: dict[Any, _Node] = {}
        self._locals = Locals()

    def trim(self) -> None:
        """Forgets everything where there is too much of it."""
        if self.kept > MOST:
            self.kept = 0
            self._paths.clear()

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
        reading, met = self._locals.first(func)
        start = self._paths.get((template, script))
        if start is None:
            self._paths[template, script] = _Node()
            return None, met
        following = start.next
        if start.ask is None:
            node: _Node | None = None
        elif reading in following:
            node = following[reading]
        else:
            following[reading] = None
            return None, met
        is_own = False
        while node is not None:
            ask = node.ask
            if ask is None:
                return node.outcome, met
            told: Any
            if type(ask) is int:
                if not is_own:
                    met, is_own = met.copy(), True
                one = met.order[ask]
                if one.local < 0:
                    self._locals.read(one)
                told = met.reading(one)
            elif len(ask) == 3:
                is_less, first, second = ask
                a, b = length(first, met.coefficients), length(second, met.coefficients)
                told = a < b if is_less else a == b
            else:
                (a, i), (b, j) = ask
                told = extents(met.order[a], a)[i] == extents(met.order[b], b)[j]
            following = node.next
            if told not in following:
                following[told] = None
                return None, met
            node = following[told]
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


class _Node:
    """A place on the path of readings: what is read next, and where each reading leads; an end has an outcome."""

    __slots__ = ("ask", "next", "outcome")

    def __init__(self) -> None:
        self.ask: Any = None
        self.next: dict[Any, _Node | None] = {}  # None where a reading was met once
        self.outcome: Outcome | None = None
