"""What a search pass knows: one tape and everything that patterns ask of it, made once and shared."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any, TypeVar

from topos_core.matching.closure import Region, live_readers, region
from topos_core.matching.contraction import Forms
from topos_core.matching.form import Form, OffGrid
from topos_core.matching.match import Match, NearMiss
from topos_core.matching.pattern import Pattern
from topos_core.matching.view import View, Views
from topos_core.tape.op import Op
from topos_core.tape.tape import Tape

T = TypeVar("T")


class Context:
    """A tape with its live readers, views and forms, and what patterns have answered so far.

    Nothing here is as long as the tape per candidate; everything is made once or on demand.

    Args:
        tape: What is searched.
        patterns: The patterns of the search: those that are terms are tried together.
        remember: Whether functions that look alike are tried once.

    Attributes:
        walked: How many values `region` has looked at.
    """

    def __init__(self, tape: Tape, patterns: Sequence[Pattern] = (), *, remember: bool = True) -> None:
        self.tape = tape
        self.remember = remember
        self.patterns = tuple(patterns)
        self.identifiers = frozenset(pattern.identifier for pattern in self.patterns)
        self.readers = live_readers(tape)
        self.views = Views(tape)
        self.forms = Forms(tape, self.readers, self.views)
        self.walked = 0
        watched = {o.value for o in tape.observations} | set(tape.results)
        self._live = [bool(readers) or value in watched for value, readers in enumerate(self.readers)]
        self.observed = frozenset(o.value for o in tape.observations if o.kind != "output")
        self._answers: defaultdict[str, dict[int, Match | NearMiss | None]] = defaultdict(dict)  # by pattern and value
        self._shared: dict[Callable[[Context], Any], Any] = {}
        self._by_name: defaultdict[str, list[int]] = defaultdict(list)
        for value, op in enumerate(tape.ops):
            self._by_name[op[0]].append(value)

    def op(self, value: int) -> Op:
        """Gives the op that makes a value."""
        return self.tape.ops[value]

    def made_by(self, names: Iterable[str]) -> list[int]:
        """Lists the values that an op of one of these names makes, ascending. Costs their number."""
        rows = [self._by_name[name] for name in names if name in self._by_name]
        return rows[0] if len(rows) == 1 else sorted(chain.from_iterable(rows))

    def is_live(self, value: int) -> bool:
        """Says whether a value leads to any observation; dead ops are nobody's reader and get no matches."""
        return self._live[value]

    def is_piece(self, value: int) -> bool:
        """Says whether a value only becomes a piece of a concat: a row of positions, stacked to an image."""
        while len(readers := self.readers[value]) == 1:
            (value,) = readers
            name = self.tape.ops[value].name
            if name == "concat":
                return True
            if name not in ("reshape", "permute"):
                return False
        return False

    def view(self, value: int) -> View:
        """Gives a value's view."""
        return self.views.of(value)

    def form(self, value: int) -> Form | OffGrid:
        """Gives a value's contraction or fold form."""
        return self.forms.of(value)

    def region(self, root: int, bindings: dict[str, int]) -> Region:
        """Collects what lies between a root and its bindings."""
        found = region(self.tape, root, frozenset(bindings.values()))
        self.walked += len(found.interior)
        return found

    def answer(self, pattern: Pattern, value: int) -> Match | NearMiss | None:
        """Tries a pattern at a value, once."""
        answers = self._answers[pattern.identifier]
        if value in answers:
            return answers[value]
        applies = self._live[value] and self.tape.ops[value][0] in pattern.roots
        answer = answers[value] = pattern.find(self, value) if applies else None
        return answer

    def matched(self) -> list[Match]:
        """Lists what the patterns that are not searched last have matched; complete when those that are begin."""
        last = {pattern.identifier for pattern in self.patterns if pattern.last}
        return [
            one
            for identifier, answers in self._answers.items()
            if identifier not in last
            for one in answers.values()
            if isinstance(one, Match)
        ]

    def once(self, build: Callable[[Context], T]) -> T:
        """Gives what `build` makes of this context, made once: tables that the patterns of a family share."""
        if build not in self._shared:
            self._shared[build] = build(self)
        known: T = self._shared[build]
        return known
