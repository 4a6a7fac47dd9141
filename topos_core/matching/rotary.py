"""Rotary embedding, read off functions: a value times cosines plus the same value, its pairs turned, times sines.

It is no term: the same value is read at two places of one axis, which no label can say. What is checked is exact: the
turned value is `-x` at the other half of each pair for its first half, `x` at the other half for its second, or both with the
other sign.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from topos_core.matching.attempt import Attempt
from topos_core.matching.core import FACTOR, Keys
from topos_core.matching.func import Form, Func, Kid, Map, composed, digits_of, form
from topos_core.matching.solving import close, factors_of
from topos_core.matching.template import COUNT, Template

PAIR = 2
SAME = 1e-9


class Turn(NamedTuple):
    """`factor * (x * cos + turned(x) * sin)`, each used by a map over the root's digits; `pair` tells the halves apart.

    `backwards` says that the sign is the other half's: the gradient's turn, by minus the angle.
    """

    x: Kid
    cos: Kid
    sin: Kid
    pair: int
    factor: float
    backwards: bool


def read_turn(func: Func) -> Turn | None:
    """Reads a function as a rotary embedding; None where it is none."""
    if func.kind == "sum" and len(func.kids) == 2 and func.constant is None:
        return next(_whole(func), None)
    if func.kind == "apply" and func.name == "stack" and len(func.kids) == PAIR:
        return next(_halves(func), None)
    return None


def attempt_of(turn: Turn, template: Template, func: Func, keys: Keys) -> Attempt | None:
    """Gives the try that a term would have ended with: holes, digits by label, factors."""
    attempt = Attempt(template, func)
    bound = {"x": turn.x, "cos": turn.cos, "sin": turn.sin}
    attempt.bound = {hole: (kid.func, kid.map) for hole, kid in bound.items()}
    if not any(close(turn.factor, one, SAME) for one in factors_of(keys, turn.x.func.number)):
        return None
    axis = next(one for one in turn.x.map if turn.pair in digits_of((one,)))
    halves = [digit for digit in digits_of((axis,)) if digit != turn.pair]
    rest = [digit for digit in range(len(func.shape)) if digit != turn.pair and digit not in halves]
    attempt.labels = {"k": rest, "p": [turn.pair], "h": halves}
    counts = {COUNT + label: float(_size(func, digits)) for label, digits in attempt.labels.items()}
    attempt.known = {FACTOR + "x": turn.factor, FACTOR + "cos": 1.0, FACTOR + "sin": 1.0, **counts}
    return attempt


def _whole(func: Func) -> Iterator[Turn]:
    """`x * cos + stack(-x2, x1) * sin`, both halves at once."""
    for plain, turned in (func.kids, func.kids[::-1]):
        for stack, sine in _pairs(turned):
            if stack.func.name != "stack" or stack.func.kind != "apply" or len(stack.func.kids) != PAIR:
                continue
            pair = stack.map[-1]
            if not isinstance(pair, int) or func.shape[pair] != PAIR:
                continue
            first, second = (Kid(k.func, composed(k.map, stack.map), k.weight) for k in stack.func.kids)
            for x, cosine in _pairs(plain):
                if not (first.func is second.func is x.func):
                    continue
                if first.map != _at(x.map, pair, 1) or second.map != _at(x.map, pair, 0):
                    continue
                factor = plain.weight
                signs = turned.weight * first.weight, turned.weight * second.weight
                for backwards in (False, True):
                    ahead = -factor if backwards else factor
                    if isinstance(factor, float) and close(signs[0], -ahead, SAME) and close(signs[1], ahead, SAME):
                        yield Turn(x, cosine, sine, pair, factor, backwards)


def _halves(func: Func) -> Iterator[Turn]:
    """`stack(x1 * cos - x2 * sin, x2 * cos + x1 * sin)`, half by half; cos and sin have one number per pair."""
    pair = len(func.shape) - 1
    sums = []
    for kid in func.kids:
        inner = kid.func
        if inner.kind != "sum" or len(inner.kids) != 2 or inner.constant is not None:
            return
        sums.append([Kid(k.func, composed(k.map, kid.map), k.weight * kid.weight) for k in inner.kids])
    for own, crossed in _both(sums[0]):
        for other, back in _both(sums[1]):
            factor = own.weight
            if not isinstance(factor, float) or not close(other.weight, factor, SAME):
                continue
            backwards = close(crossed.weight, factor, SAME) and close(back.weight, -factor, SAME)
            if not backwards and not (close(back.weight, factor, SAME) and close(crossed.weight, -factor, SAME)):
                continue
            for x1, cosine in _pairs(own):
                for x2, sine in _pairs(crossed):
                    whole = _joined(x1, x2, pair)
                    if whole is None:
                        continue
                    if (x2, cosine) in _pairs(other) and (x1, sine) in _pairs(back):
                        yield Turn(whole, cosine, sine, pair, factor, backwards)


def _both(kids: Sequence[Kid]) -> tuple[Sequence[Kid], Sequence[Kid]]:
    return kids, kids[::-1]


def _pairs(product: Kid) -> list[tuple[Kid, Kid]]:
    """Gives the two factors of a product, either way round, over the digits of the frame."""
    func = product.func
    if func.kind != "product" or len(func.kids) != 2 or any(kid.weight != 1 for kid in func.kids):
        return []
    a, b = (Kid(kid.func, composed(kid.map, product.map), 1.0) for kid in func.kids)
    return [(a, b), (b, a)]


def _at(map_: Map, digit: int, value: int) -> Map:
    """Puts a number for a digit."""
    out: list[Form] = []
    for one in map_:
        offset, terms = (0, ((one, 1),)) if isinstance(one, int) else one
        out.append(form(offset + sum(c * value for d, c in terms if d == digit), (t for t in terms if t[0] != digit)))
    return tuple(out)


def _joined(first: Kid, second: Kid, pair: int) -> Kid | None:
    """Gives the value of which two are the halves: they differ in one offset alone."""
    if first.func is not second.func:
        return None
    out: list[Form] = []
    apart = 0
    for a, b in zip(first.map, second.map, strict=True):
        offset, terms = (0, ((a, 1),)) if isinstance(a, int) else a
        other, same = (0, ((b, 1),)) if isinstance(b, int) else b
        if terms != same:
            return None
        apart += other != offset
        out.append(form(offset, (*terms, (pair, other - offset))))
    return Kid(first.func, tuple(out), 1.0) if apart == 1 else None


def _size(func: Func, digits: Sequence[int]) -> int:
    size = 1
    for digit in digits:
        size *= func.shape[digit]
    return size
