"""From what was found on a shorter tape to what is on the whole one: every period gets the matches of the searched one.

Nothing is taken on trust: keys, answers and what belongs together in the searched period must be those of the period before
it, value by value, moved by one period; else the whole tape is searched.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache
from typing import Any, Final, cast

from topos_core.matching.answers import keys_of
from topos_core.matching.context import Context
from topos_core.matching.core import Keys
from topos_core.matching.facts import Layout, Window
from topos_core.matching.func import Func
from topos_core.matching.match import Match, NearMiss
from topos_core.matching.pool import Pool
from topos_core.matching.shortened import Gap, Shortened, name_mark
from topos_core.matching.together import goes_on, parts
from topos_core.matching.view import View

Move = Callable[[int], int]
"""Gives the value that plays a value's part elsewhere."""

_MARK: Final = re.compile(r"(\w+) \(\x01(\d+)\x02\)|\x01(\d+)\x02")
"""A name that stands for itself, and a hole before one, which is told without it where both are one word."""


def unrolled(short: Shortened, context: Context, pool: Pool, names: Mapping[int, str]) -> Pool | None:
    """Gives the pool of the whole tape; None where the searched period is not like the one before it."""
    places = [_Place.of(short, gap) for gap in short.gaps]
    if not all(_same_keys(keys_of(context), place) for place in places):
        return None
    if not all(_same_answers(pool, place) for place in places):
        return None
    together = parts(context, pool.matches)
    if not all(goes_on(together, place.zone, place.gap.period, place.later) for place in places):
        return None
    teller = _Teller(short, places, names)
    found: list[tuple[int, int, Match, int]] = []
    for number, match in enumerate(pool.matches):
        if not teller.stays_near(match):
            return None
        found += [(moved.root, number, moved, time) for time, moved in teller.matches(match)]
    found.sort(key=lambda one: one[:2])
    first = {number: place for place, (_, number, _, time) in enumerate(found) if time == 0}
    misses = [moved for miss in pool.near_misses for moved in teller.misses(miss)]
    misses.sort(key=lambda miss: miss.root)
    return Pool(
        tuple(one[2] for one in found), tuple(misses), pool.effort, tuple(first[number] for _, number, _, _ in found)
    )


@dataclass(frozen=True, slots=True)
class _Place:
    """A gap by values of the shorter tape; `step` maps a period's own sources to the next one's."""

    gap: Gap
    searched: int
    near: int
    edge: frozenset[int]
    step: Mapping[int, int]

    @staticmethod
    def of(short: Shortened, gap: Gap) -> _Place:
        place = {value: k for k, value in enumerate(short.home)}
        return _Place(
            gap,
            place[gap.searched],
            place[gap.near],
            frozenset(place[value] for value in gap.edge),
            {place[one]: place[other] for one, other in gap.step.items()},
        )

    @property
    def end(self) -> int:
        """Gives the first value behind the searched period."""
        return self.searched + self.gap.period

    @property
    def zone(self) -> range:
        """Gives what can see from the period before the searched one into that: by reading it, or by being read."""
        reach = max(self.gap.period, self.gap.back)
        return range(max(self.near, self.searched - reach), self.searched + self.gap.back)

    def later(self, value: int) -> int:
        """Gives the value that plays a value's part one period on."""
        moves = value >= self.near or value in self.edge
        return value + self.gap.period if moves else self.step.get(value, value)


def _same_keys(keys: Keys, place: _Place) -> bool:
    """Says whether keys are those of a period before: one function each, told by the same operands.

    Asked of the searched period and of all that it reads itself: what follows is then made from the same by the same rules.
    """
    period = place.gap.period
    known: dict[int, int] = {}

    def first(func: Func) -> int:
        made = keys.made.get(func.number)
        return made[0] if made else func.maker

    def same(f: Func, g: Func) -> bool:
        if f is g:
            return first(f) < place.near + period  # the first period made it, or what comes before
        if known.get(f.number) == g.number:
            return True
        one, other = first(f), first(g)
        return place.step.get(one) == other or (one >= place.near and one + period == other)

    for value in range(max(place.near, place.searched - period - place.gap.back), place.searched):
        later = value + period
        f, g = keys.funcs[value], keys.funcs[later]
        a, b = keys.views[value], keys.views[later]
        if keys.coefficients[value] != keys.coefficients[later] or a._replace(base=0) != b._replace(base=0):
            return False
        if a.bounds and repr(a.bounds) != repr(b.bounds):
            return False  # -0.0 and 0.0 are different fills
        if f is g:
            continue
        if _told(f) != _told(g):
            return False
        for mine, other in zip((*f.kids, *f.written), (*g.kids, *g.written), strict=True):
            if (mine.map, mine.weight) != (other.map, other.weight) or not same(mine.func, other.func):
                return False
        if known.setdefault(f.number, g.number) != g.number:
            return False
    return True


def _told(func: Func) -> tuple[Any, ...]:
    shape = func.shape, func.reduced, func.width, len(func.kids), len(func.written)
    return func.kind, func.name, func.constant, shape, func.heads, func.reach


def _same_answers(pool: Pool, place: _Place) -> bool:
    """Says whether the searched period was answered as the one before it."""
    period, later = place.gap.period, place.later

    def between(found: Sequence[Any], start: int) -> list[Any]:
        return [one for one in found if start <= one.root < start + period]

    start = place.searched
    matches = [moved_match(match, later, _marked(later)) for match in between(pool.matches, start - period)]
    misses = [moved_miss(miss, later, _marked(later)) for miss in between(pool.near_misses, start - period)]
    return matches == between(pool.matches, start) and misses == between(pool.near_misses, start)


class _Teller:
    """Tells what was found on the shorter tape by values of the whole one, once for every period that it stands for."""

    def __init__(self, short: Shortened, places: Sequence[_Place], names: Mapping[int, str]) -> None:
        self._home = short.home
        self._places = places
        self._names = names

    def stays_near(self, match: Match) -> bool:
        """Says whether a match reaches no further through a run than what stayed of it on either side."""
        values = {*match.interior, *match.produced, *match.bindings.values()}
        if max(values) > match.root:
            return False
        for place in self._places:
            if match.root >= place.searched:
                oldest = min((value for value in values if value >= place.near), default=match.root)
                spans = oldest < place.end and match.root - oldest > place.end - place.near
                if spans or not place.edge.isdisjoint(values):
                    return False
        return True

    def matches(self, match: Match) -> Iterable[tuple[int, Match]]:
        """Gives the match, and its repetitions with the number of each."""
        stayed, place = self._stayed(match.root), self._place(match.root)
        yield 0, moved_match(match, stayed, self._named(stayed))
        if place is None:
            return
        whole = moved_match(match, stayed, lambda value: name_mark(stayed(value)))
        yield from enumerate(_repetitions(whole, place.gap, self._names), 1)

    def misses(self, miss: NearMiss) -> Iterable[NearMiss]:
        """Gives the near miss and its repetitions."""
        stayed, place = self._stayed(miss.root), self._place(miss.root)
        yield moved_miss(miss, stayed, self._named(stayed))
        if place is None:
            return
        whole = moved_miss(miss, stayed, lambda value: name_mark(stayed(value)))
        for time in range(1, place.gap.times + 1):
            move = _further(place.gap, time)
            yield moved_miss(whole, move, _naming(self._names, move))

    def _place(self, root: int) -> _Place | None:
        return next((place for place in self._places if place.searched <= root < place.end), None)

    def _stayed(self, root: int) -> Move:
        """Gives the whole tape's value by the shorter one's, for what is found at a root.

        Behind a gap, the run's last values that stayed before it stand for the left-out ones that are read there; before
        it, the first ones behind it do (a note on a match may name what reads it).
        """
        home = self._home
        distances = [(place, place.gap.period * place.gap.times) for place in self._places]
        behind = [
            (place.near, place.end, distance, place.gap.own[-1]) for place, distance in distances if root >= place.end
        ]
        ahead = [(place.end, distance) for place, distance in distances if root < place.end]

        def stayed(value: int) -> int:
            if value > root:
                return home[value] - sum(distance for end, distance in ahead if value >= end)
            kept = home[value]
            for near, end, distance, own in behind:
                if near <= value < end:
                    return kept + distance
                if kept in own:
                    return own[kept]
            return kept

        return stayed

    def _named(self, move: Move) -> Callable[[int], str | None]:
        return _naming(self._names, move)


def _naming(names: Mapping[int, str], move: Move) -> Callable[[int], str | None]:
    return lambda value: names.get(move(value))


def _further(gap: Gap, time: int) -> Move:
    """Moves values of the searched period to a later one."""
    near, distance, own = gap.near, gap.period * time, gap.own[time - 1]
    return lambda value: value + distance if value >= near else own.get(value, value)


def _repetitions(match: Match, gap: Gap, names: Mapping[int, str]) -> Iterable[Match]:
    """Gives what a match is in every left-out period; most of the work of unrolling, hence set by set."""
    near = gap.near
    fixed = not _names_values(match.facts)
    sets = [
        ([value for value in values if value >= near], [value for value in values if value < near])
        for values in (match.interior, match.computing)
    ]
    for time, own in enumerate(gap.own, 1):
        distance = gap.period * time
        move = _further(gap, time)
        interior, computing = (
            frozenset([value + distance for value in run] + ([own.get(value, value) for value in old] if own else old))
            for run, old in sets
        )
        yield Match(
            match.pattern,
            match.root + distance,
            {role: move(value) for role, value in match.bindings.items()},
            interior,
            computing,
            {role: tuple(map(move, values)) for role, values in match.named.items()} if match.named else {},
            match.facts if fixed else _moved_facts(match.facts, move),
            tuple(moved_miss(miss, move, _naming(names, move)) for miss in match.stopped) if match.stopped else (),
            match.nearer,
        )


def _marked(move: Move) -> Callable[[int], str | None]:
    return lambda value: name_mark(move(value))


def moved_match(match: Match, move: Move, name: Callable[[int], str | None]) -> Match:
    """Gives a match by other values; `name` gives the name that a marked value has there."""
    return Match(
        match.pattern,
        move(match.root),
        {role: move(value) for role, value in match.bindings.items()},
        frozenset(map(move, match.interior)),
        frozenset(map(move, match.computing)),
        {role: tuple(map(move, values)) for role, values in match.named.items()},
        _moved_facts(match.facts, move),
        tuple(moved_miss(miss, move, name) for miss in match.stopped),
        match.nearer,
    )


def moved_miss(miss: NearMiss, move: Move, name: Callable[[int], str | None]) -> NearMiss:
    """Gives a near miss by other values."""

    def told(found: re.Match[str]) -> str:
        hole, beside, alone = found.groups()
        own = name(int(beside or alone))
        if hole is None:
            return own or ""
        return hole if own is None or own == hole else f"{hole} ({own})"

    sentence, expected, found = (_MARK.sub(told, text) for text in (miss.sentence, miss.expected, miss.found))
    return replace(
        miss, root=move(miss.root), at=move(miss.at), sentence=sentence, expected=expected, found=found
    )  # fmt: skip


def _moved_facts(facts: Any, move: Move) -> Any:
    """Gives facts by other values: only views name any; facts without them stay the same object."""
    if not _names_values(facts):
        return facts
    if isinstance(facts, View):
        return facts._replace(base=move(facts.base))
    if isinstance(facts, Mapping):
        return {name: _moved_facts(part, move) for name, part in facts.items()}
    return replace(
        facts, **{name: _moved_facts(getattr(facts, name), move) for name in _fields_of(cast(Any, type(facts)))}
    )


def _names_values(facts: Any) -> bool:
    """Says whether a view of some value is in facts."""
    kind: Any = type(facts)
    if kind in _WITHOUT_VIEWS:
        return False
    if kind is View:
        return bool(facts.base >= 0)
    if isinstance(facts, Mapping):
        return any(map(_names_values, facts.values()))
    return any(_names_values(getattr(facts, name)) for name in _fields_of(kind))


_WITHOUT_VIEWS: Final = frozenset((str, int, float, bool, tuple, type(None), Layout, Window))


@cache
def _fields_of(kind: Any) -> tuple[str, ...]:
    """Lists the fields of a class of facts; none of what is no such class."""
    return tuple(field.name for field in fields(kind)) if is_dataclass(kind) else ()
