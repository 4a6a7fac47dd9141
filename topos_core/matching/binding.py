"""From a match of functions to values of the tape: what is bound, what lies inside, and how bound values lie in memory."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, Final

from topos_core.matching.attempt import Attempt
from topos_core.matching.closure import computing
from topos_core.matching.core import FACTOR, Keys
from topos_core.matching.facts import Layout
from topos_core.matching.func import Func
from topos_core.matching.ideal import tolerance
from topos_core.matching.movement import RULES, moved
from topos_core.matching.rows import Repeated, Rows, rows_of
from topos_core.matching.solving import close
from topos_core.matching.symbol import Coefficient, Symbol
from topos_core.matching.template import COUNT, Template
from topos_core.matching.tuples import new_tuple
from topos_core.matching.view import identity

_SAME: Final = 1e-11
_NOISE: Final = 1e-14
"""What solving in float64 adds to a number; a decimal of 12 digits that is as near was meant."""


@dataclass(slots=True, eq=False)
class Found:
    """A template that matched at a value.

    Args:
        identifier: The pattern's.
        keys: The keys of the tape.
        template: What matched.
        root: The value.
        attempt: Digits and numbers.
        bindings: The value of each hole.
        rows: How each bound value lies, by hole; `root_rows` how the root does.
        interior: Values between root and bindings.
        moved: Interior movement of bound values, by hole, and the bound value itself: where an axis has other neighbours.
        named: Values that hold what the template names, by name.
        facts: The pattern's own facts; filled in once they are known.
    """

    identifier: str
    keys: Keys
    template: Template
    root: int
    attempt: Attempt
    bindings: Mapping[str, int]
    rows: Mapping[str, Rows]
    root_rows: Rows
    interior: frozenset[int]
    moved: Mapping[str, tuple[int, ...]]
    named: Mapping[str, tuple[int, ...]]
    facts: Any = None
    _labels: dict[int, str] | None = field(default=None, init=False)  # by digit, once they are asked for

    @property
    def computing(self) -> frozenset[int]:
        """Collects the root and what carries arithmetic."""
        return computing(self.keys.tape, self.root, self.interior)

    def constant(self, name: str) -> float:
        """Gives a constant of the pattern: as it was recorded, where one number of the match is it."""
        solved = self.attempt.known[name]
        for value in sorted(self.interior):
            own = self.keys.coefficients[value] if self.keys.is_one(value) else None
            if isinstance(own, float) and close(own, solved, _SAME):
                return own
        short = float(f"{solved:.12g}")
        return short if math.isclose(short, solved, rel_tol=_NOISE) else solved

    def count(self, label: str) -> int:
        """Counts the positions along a label."""
        return int(self.attempt.known[COUNT + label])

    def label_of(self, digit: int) -> str:
        """Gives the label of a digit."""
        return self.labels()[digit]

    def labels(self) -> Mapping[int, str]:
        """Gives the label of every digit."""
        if self._labels is None:
            self._labels = {digit: label for label, digits in self.attempt.labels.items() for digit in digits}
        return self._labels

    def exchanged(self, holes: Mapping[str, str], labels: Mapping[str, str]) -> Found:
        """Gives the same match with holes and labels by other names, where a formula is the same both ways."""
        attempt = copy(self.attempt)
        attempt.bound = {holes.get(hole, hole): bound for hole, bound in self.attempt.bound.items()}
        attempt.labels = {labels.get(label, label): digits for label, digits in self.attempt.labels.items()}
        names = {f"{FACTOR}{old}": f"{FACTOR}{new}" for old, new in holes.items()}
        names |= {f"{COUNT}{old}": f"{COUNT}{new}" for old, new in labels.items()}
        attempt.known = {names.get(name, name): number for name, number in self.attempt.known.items()}
        return replace(
            self,
            attempt=attempt,
            bindings={holes.get(hole, hole): value for hole, value in self.bindings.items()},
            rows={holes.get(hole, hole): rows for hole, rows in self.rows.items()},
            moved={holes.get(hole, hole): values for hole, values in self.moved.items()},
        )

    def labelled(self, labels: Mapping[str, list[int]]) -> Found:
        """Gives the same match with its digits sorted otherwise, where the term could not tell."""
        attempt = copy(self.attempt)
        attempt.labels = dict(labels)
        extents = self.attempt.extents
        counts = {COUNT + label: float(math.prod(extents[d] for d in digits)) for label, digits in labels.items()}
        attempt.known = {**self.attempt.known, **counts}
        return replace(self, attempt=attempt)

    def rows_of(self, value: int, hole: str) -> Rows | None:
        """Tells how a value that rearranges what a hole is bound to lies; None where it repeats or leaves out elements."""
        func, map_ = self.attempt.bound[hole]
        return rows_of(self.keys, self.attempt, value, func, map_)

    def named_rows(self, value: int) -> Rows | None:
        """Tells how a named value lies; None where it repeats elements or lies in no layout."""
        for held in self.attempt.held:
            if held.func is self.keys.funcs[value] and any(held.template is t for t, _ in self.template.named.values()):
                return rows_of(self.keys, self.attempt, value, held.func, held.map)
        return None

    def layout(
        self, rows: Rows, roles: Mapping[str, str], order: Mapping[int, int], apart: Collection[str] = ()
    ) -> Layout:
        """Gives a layout whose roles are those of labels.

        Args:
            rows: How the value lies.
            roles: The role of each label.
            order: Ranks digits, the most significant first.
            apart: Labels whose digits stay axes of their own; one that the value does not vary along gets extent 1.
        """
        labels = self.labels()
        flat = [part for row in rows for part in row]
        if not apart:
            shown_labels = {labels[digit]: extent for extent, digit, _ in flat}
            if len(shown_labels) == len(flat):  # each in one piece
                own_roles = tuple([roles[label] for label in shown_labels])
                return new_tuple(Layout, (tuple(shown_labels.values()), own_roles, (0,) * len(flat)))
        parts: list[tuple[int, str, tuple[int, int]]] = []
        ranks: dict[str, list[tuple[int, int]]] = {}  # of every part, by label
        for extent, digit, weight in flat:
            label, place = labels[digit], (order[digit], -weight)
            parts.append((extent, label, place))
            ranks.setdefault(label, []).append(place)
        pieces = parts
        if len(ranks) < len(parts):
            pieces = []
            for own in ranks.values():
                own.sort()
            for part in parts:
                extent, label, place = part
                if pieces and pieces[-1][1] == label and label not in apart:
                    before, own = pieces[-1], ranks[label]
                    if own.index(place) == own.index(before[2]) + 1:  # no part of the label lies between
                        pieces[-1] = before[0] * extent, label, place
                        continue
                pieces.append(part)
            ranks = {}
            for _, label, place in pieces:
                ranks.setdefault(label, []).append(place)
        if apart:
            pieces = pieces.copy()
            shown = {part.digit for row in rows for part in row}
            for label in sorted(apart):
                digits = self.attempt.labels[label]
                if shown & set(digits):
                    more = [(1, label, (order[digit], 0)) for digit in digits if digit not in shown]
                    pieces += more
                    ranks[label] += [place for _, _, place in more]
        if len(ranks) == len(pieces):
            rank: tuple[int, ...] = (0,) * len(pieces)
        else:
            for own in ranks.values():
                own.sort()
            rank = tuple([ranks[label].index(place) for _, label, place in pieces])
        return Layout(tuple([piece[0] for piece in pieces]), tuple([roles[piece[1]] for piece in pieces]), rank)


def found(identifier: str, keys: Keys, template: Template, root: int, attempt: Attempt) -> Found | None:
    """Binds values; None where a value lies in no layout, or the formula does not account for everything that is read."""
    relative = tolerance(keys.tape.ops[root].type.dtype)
    wanted = _wanted(template, attempt)
    candidates = _candidates(keys, template, attempt, root, wanted, relative)
    bindings: dict[str, int] = {}
    rows: dict[str, Rows] = {}
    root_rows = rows_of(keys, attempt, root, keys.funcs[root], tuple(range(attempt.root_digits)))
    for hole in template.holes:
        lying = _lying(keys, template, attempt, hole, candidates[hole], root_rows or ())
        if lying is None:
            return None
        bindings[hole], rows[hole] = lying
    inside = _interior(keys, attempt, root, bindings.values(), wanted, relative)
    if root_rows is None or inside is None:
        return None
    moved = {
        hole: tuple([v for v in candidates[hole] if v in inside or v == value]) for hole, value in bindings.items()
    }
    named = {name: _named(keys, attempt, inside, *wanted, relative) for name, wanted in template.named.items()}
    if named:
        inside -= {value for values in named.values() for value in values}
    return Found(identifier, keys, template, root, attempt, bindings, rows, root_rows, inside, moved, named)


Wanted = Mapping[Func, list[tuple[str, float]]]
"""By function what is bound to it: holes, and the factor with which each is."""


def _wanted(template: Template, attempt: Attempt) -> Wanted:
    out: dict[Func, list[tuple[str, float]]] = {}
    known = attempt.known
    for hole, name in template.factors.items():
        out.setdefault(attempt.bound[hole][0], []).append((hole, known[name]))
    return out


def _lying(
    keys: Keys, template: Template, attempt: Attempt, hole: str, candidates: Sequence[int], root_rows: Rows
) -> tuple[int, Rows] | None:
    """Gives the first value that lies in a layout, and how; what may broadcast may also have been computed repeated."""
    func, map_ = attempt.bound[hole]
    for value in candidates:
        own = rows_of(keys, attempt, value, func, map_)
        if own is not None:
            return value, own
    if hole in template.term.free:
        labels = template.owned[hole].split()
        for value in candidates:
            likely = _read_along(keys, attempt, value, candidates, root_rows)
            own = rows_of(keys, attempt, value, func, map_, Repeated(labels, likely))
            if own is not None:
                return value, own
    return None


def _read_along(keys: Keys, attempt: Attempt, value: int, candidates: Sequence[int], root_rows: Rows) -> list[set[int]]:
    """Lists by axis of a value the digits that it is read along, as broadcasting aligns axes: those of the root's axis, or of
    none of the root's. What the value repeats says nothing of which one, where several are as long.
    """
    shape = keys.tape.ops[value].type.shape
    views = {value: identity(value, shape)}
    for other in sorted(candidates):
        op = keys.tape.ops[other]
        if other not in views and op.name in RULES and op.operands[0] in views:
            view = moved(keys.tape, op, views.__getitem__) if set(op.operands) <= views.keys() else None
            if view is not None:
                views[other] = view
    last = views[max(views)]
    shown = {part.digit for parts in root_rows for part in parts}
    reduced = {digit for digits in attempt.labels.values() for digit in digits if digit not in shown}
    likely = [set(reduced) for _ in shape]
    for axis, parts in zip(reversed(last.axes), reversed(root_rows), strict=False):
        for digit in axis:
            for k, step in enumerate(digit.coefficients[: len(shape)]):
                if step:
                    likely[k] |= {part.digit for part in parts}
    return likely


def _candidates(
    keys: Keys, template: Template, attempt: Attempt, root: int, wanted: Wanted, relative: float
) -> dict[str, list[int]]:
    """Lists the values that are what a hole is bound to, between the root and the first op that computes it; the
    computed one first, then its movements."""
    out: dict[str, list[int]] = {hole: [] for hole in template.holes}
    ops, funcs, coefficients = keys.tape.ops, keys.funcs, keys.coefficients
    windows = {}
    if keys.windows:
        windows = {func.number: holes for func, holes in wanted.items() if func.kind == "window"}
    seen, todo = {root}, list(ops[root].operands)
    while todo:
        value = todo.pop()
        if value in seen:
            continue
        seen.add(value)
        func = funcs[value]
        holes = wanted.get(func)
        reads = windows.get(keys.windows.get(value, -1)) if windows else None
        if reads is not None:
            for hole, _ in reads:
                out[hole].append(value)
        if holes is not None:
            coefficient, hit = coefficients[value], False
            for hole, factor in holes:
                if coefficient == factor or close_to(keys, value, factor, relative):
                    out[hole].append(value)
                    hit = True
            if _stops(keys, value, hit):
                continue
        if reads is None:
            todo += ops[value][1]
    keys.walked += len(seen)
    moves = keys.moves
    for values in out.values():
        if len(values) > 1:
            values.sort(key=lambda value: (moves[value], value))
    return out


def _interior(
    keys: Keys, attempt: Attempt, root: int, bound: Iterable[int], wanted: Wanted, relative: float
) -> frozenset[int] | None:
    """Collects the values between root and bindings; None where an input is reached that nothing accounts for."""
    inside: set[int] = set()
    ops, funcs = keys.tape.ops, keys.funcs
    seen, todo = {root, *bound}, list(ops[root].operands)
    while todo:
        value = todo.pop()
        if value in seen:
            continue
        seen.add(value)
        func = funcs[value]
        holes = wanted.get(func)
        if holes is not None:
            hit = False
            for _, factor in holes:
                hit = hit or close_to(keys, value, factor, relative)
            if _stops(keys, value, hit):
                continue  # a twin of what is bound, or what it is computed from
        op = ops[value]
        if op[0] in _UNACCOUNTED:
            keys.walked += len(seen)
            return None
        inside.add(value)
        todo += op[1]
    keys.walked += len(seen)
    return frozenset(inside)


_UNACCOUNTED: Final = frozenset(("input", "parameter", "opaque", "pick"))


def _stops(keys: Keys, value: int, hit: bool) -> bool:
    """Says whether a walk towards the inputs ends at a value that is a multiple of what is bound."""
    if keys.moves[value]:  # a movement that is no view of anything, such as different values side by side
        return keys.funcs[keys.tape.ops[value].operands[0]] is not keys.funcs[value]
    return hit or keys.uses.source[value] == value


def close_to(keys: Keys, value: int, factor: float, relative: float) -> bool:
    """Says whether a value carries a factor."""
    coefficient = keys.coefficients[value]
    return isinstance(coefficient, float) and (coefficient == factor or close(coefficient, factor, relative))


def _named(
    keys: Keys, attempt: Attempt, inside: Iterable[int], template: Func, coefficient: Coefficient, relative: float
) -> tuple[int, ...]:
    """Lists the inner values that hold what a template names, whoever computed them."""
    out = []
    for held in attempt.held:
        if held.template is not template:
            continue
        factor, open_ = (Symbol.of(coefficient) / held.factor).reduced(attempt.known)
        if open_:
            continue
        for value in inside:
            computed = keys.funcs[value] is held.func and not keys.moves[value]
            if computed and close_to(keys, value, factor, relative):
                out.append(value)
    return tuple(sorted(set(out)))
