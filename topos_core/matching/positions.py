"""Which positions a layer's result belongs to: where a row of it, moved in any way, comes from in the layer's x.

A layer works at each position by itself, and its features are new. What joins several layers (a gate and what it gates,
queries with keys and values) must join what belongs to the same positions, and what projects their result must sum over
features alone. Extents say nothing of that: in a square they agree for rows that are reversed, turned or cut anew.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import accumulate, chain, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from topos_core.matching.affine import Digit, Digits, merged, regrouped
from topos_core.matching.arrangement import axes_of
from topos_core.matching.facts import CoreFacts, Layout
from topos_core.matching.joining import movement
from topos_core.matching.match import Match
from topos_core.matching.movement import RULES, moved
from topos_core.matching.tuples import new_tuple
from topos_core.matching.view import Bound, View
from topos_core.tape.signs import signs

if TYPE_CHECKING:
    from topos_core.matching.context import Context


class Positions(NamedTuple):
    """Where the elements of a value come from in the x of a layer.

    Args:
        source: The layer's x.
        features: The digits over which the layer sums there, least step first.
        numbers: Per role of a layout of the value its digits, with their steps in the flat x; a feature's are 0.
        offset, bounds: What else there is to it, as `View` has it.
    """

    source: int
    features: Digits
    numbers: Mapping[str, Digits]
    offset: tuple[int, ...]
    bounds: tuple[Bound, ...]

    def alike(self, other: Positions, roles: Mapping[str, str]) -> bool:
        """Says whether both come from the same positions of one x, role by role of this one and the other one."""
        return (self.source, self.features, self.offset, self.bounds) == (
            other.source, other.features, other.offset, other.bounds,
        ) and all(self.numbers.get(mine, ()) == other.numbers.get(theirs, ()) for mine, theirs in roles.items())  # fmt: skip

    def holds_features(self, role: str) -> bool:
        """Says whether a role counts features alone."""
        return all(not any(digit.coefficients) for digit in self.numbers.get(role, ()))


def positions(context: Context, layer: Match, value: int, layout: Layout) -> Positions | None:
    """Gives where `value`, a view of a linear layer's result, comes from; None where that fits no digits.

    Args:
        layout: How what reads the value looks at it.
    """
    path, ops, x = sorted(movement(context, value, layer.root)), context.tape.ops, layer.facts.layouts["x"]
    if any(len(ops[one].operands) != 1 for one in path):
        return _read(context, layer, path, value, layout)
    told, known = context.tape.once(signs), context.once(_known)
    key = x, layer.facts.result, ops[layer.root].type.shape, tuple([told[one] for one in path]), layout
    if key not in known:  # queries, keys and values of a block move alike
        known[key] = _read(context, layer, path, value, layout)
    found = known[key]
    return None if found is None else found._replace(source=layer.bindings["x"])


def _known(context: Context) -> dict[Any, Positions | None]:
    return {}


def _read(context: Context, layer: Match, path: Sequence[int], value: int, layout: Layout) -> Positions | None:
    rows = _rows(context, layer)
    if rows is None:
        return None
    views = {layer.root: rows}
    for one in path:
        op = context.op(one)
        if op.name in RULES:
            view = moved(context.tape, op, lambda each: views[each] if each in views else context.view(each))
            if view is None:
                return None
            views[one] = view
    seen = views[value]
    numbers = numbered(seen.digits, layout)
    if numbers is None or any(divisor != 1 for divisor in seen.divisors):
        return None
    x = layer.facts.layouts["x"]
    steps = _steps(x.shape)
    summed = sorted(
        (Digit(x.shape[axis], (steps[axis],)) for axis in axes_of(x, "r")), key=lambda d: -d.coefficients[0]
    )
    return Positions(layer.bindings["x"], merged(summed), numbers, seen.offsets, seen.bounds)


def numbered(digits: Sequence[Digit], layout: Layout) -> dict[str, Digits] | None:
    """Gives the digits of a value by the roles of a layout of it, each number's greatest first."""
    groups = regrouped(digits, layout.shape)
    if groups is None:
        return None
    roles = dict.fromkeys(layout.roles)
    return {role: merged(chain.from_iterable(groups[axis] for axis in axes_of(layout, role))) for role in roles}


def refined(first: Sequence[Digit], second: Sequence[Digit]) -> tuple[Digits, Digits] | None:
    """Cuts two numbers of one size so that their digits have the same extents; None where they do not fit."""
    inner = {1}
    for digits in (first, second):
        inner |= set(accumulate((digit.extent for digit in reversed(digits)), lambda a, b: a * b))
    cuts = sorted(inner, reverse=True)
    extents = [outer // one if outer % one == 0 else 0 for outer, one in pairwise(cuts)]
    if 0 in extents:
        return None
    one, other = (_cut(digits, extents) for digits in (first, second))
    return None if one is None or other is None else (one, other)


def sums_features(layer: CoreFacts, result: Layout, numbers: Mapping[str, Sequence[Digit]]) -> bool:
    """Says whether a layer sums over features alone, and over all of them.

    Args:
        layer: The facts of a linear layer whose x is `result`'s value.
        numbers: By role of `result` the digits, which move a position or nothing (a feature).
    """
    placed: dict[int, Digits] = {}
    for role, digits in numbers.items():
        axes = axes_of(result, role)
        groups = regrouped(digits, [result.shape[axis] for axis in axes])
        if groups is None:
            return False
        placed |= dict(zip(axes, groups, strict=True))
    read = numbered([digit for axis in sorted(placed) for digit in placed[axis]], layer.layouts["x"])
    if read is None:
        return False
    return not any(any(digit.coefficients) for digit in read.get("r", ())) and all(
        any(digit.coefficients) for digit in read.get("b", ())
    )


def _rows(context: Context, layer: Match) -> View | None:
    """Gives a layer's result as a view of its flat x, at the first feature: what counts outputs moves nothing there."""
    x, result = layer.facts.layouts["x"], layer.facts.result
    steps = _steps(x.shape)
    number = [Digit(x.shape[axis], (steps[axis],)) for axis in axes_of(x, "b")]
    groups = regrouped(number, [result.shape[axis] for axis in axes_of(result, "b")])
    if groups is None:
        return None
    placed: dict[int, Digits] = {axis: (Digit(extent, (0,)),) for axis, extent in enumerate(result.shape)}
    placed |= dict(zip(axes_of(result, "b"), groups, strict=True))
    axes = regrouped(list(chain.from_iterable(placed.values())), context.tape.type_of(layer.root).shape)
    if axes is None:
        return None
    return new_tuple(View, (layer.bindings["x"], (math.prod(x.shape),), axes, (0,), (1,), ()))


def _cut(digits: Sequence[Digit], extents: Sequence[int]) -> Digits | None:
    groups = regrouped(digits, extents)
    return None if groups is None or any(len(group) != 1 for group in groups) else tuple(chain.from_iterable(groups))


def _steps(shape: Sequence[int]) -> list[int]:
    """Lists what one step along each axis adds to the row-major number."""
    return [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
