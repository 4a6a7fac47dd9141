"""Cuts: the same index maps, read over bases nearer to the root."""

from __future__ import annotations

from topos_core.matching.movement import moved
from topos_core.matching.view import View, Views, identity
from topos_core.tape.tape import Tape


class Cut:
    """Views that stop at chosen values: the same index maps, read over a base nearer to the root."""

    def __init__(self, tape: Tape, views: Views | Cut, at: frozenset[int]) -> None:
        self._tape = tape
        self._views = views
        self._first = min(at)
        self._own: dict[int, View] = {value: identity(value, tape.ops[value].type.shape) for value in at}

    def of(self, value: int) -> View:
        """Gives a value's view over the cut, or its own view where no cut lies on its way."""
        stack = [value]
        while stack:  # no recursion: a chain of movement may be longer than Python's stack
            at = stack[-1]
            waiting = [] if at in self._own or self._ends(at) else self._missing(at)
            if waiting:
                stack.extend(waiting)
                continue
            stack.pop()
            if at not in self._own:
                self._own[at] = self._views.of(at) if self._ends(at) else self._view(at)
        return self._own[value]

    def _ends(self, value: int) -> bool:
        return value < self._first or self._views.of(value).base == value

    def _missing(self, value: int) -> list[int]:
        return [o for o in self._tape.ops[value].operands if o not in self._own]

    def _view(self, value: int) -> View:
        op = self._tape.ops[value]
        if all(self._own[o] is self._views.of(o) for o in op.operands):
            return self._views.of(value)
        return moved(self._tape, op, self._own.__getitem__) or identity(value, op.type.shape)
