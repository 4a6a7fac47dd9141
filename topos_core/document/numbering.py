"""Keys of regions: pattern, fingerprint and scope, and which of those that are alike it is.

What is decided where nobody asks for anything else is numbered first; what a request adds goes on from there. So no region
changes its name because another one came or went before it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from topos_core.tape.span import Span

Numbered = tuple[str, int]
"""A region's key, and how many of its pattern stand at its place before it."""


@dataclass(slots=True)
class Numbering:
    """Numbers of what was met, by its name; equal names are one region."""

    known: dict[Hashable, Numbered] = field(default_factory=dict)
    _keys: Counter[str] = field(default_factory=Counter)
    _places: Counter[tuple[str, Span]] = field(default_factory=Counter)

    def of(self, name: Hashable, pattern: str, print_: str, scope: Sequence[str], span: Span) -> Numbered:
        """Gives the number of a region; the next one where it was not met before."""
        found = self.known.get(name)
        if found is None:
            prefix, place = f"{pattern}/{print_}/{'.'.join(scope)}", (pattern, span)
            found = self.known[name] = f"{prefix}/{self._keys[prefix]}", self._places[place]
            self._keys[prefix] += 1
            self._places[place] += 1
        return found

    def onward(self) -> Numbering:
        """Gives a numbering that goes on from here and leaves this one as it is."""
        return Numbering(dict(self.known), self._keys.copy(), self._places.copy())
