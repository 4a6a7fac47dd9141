"""What the norms share: facts out of labels, and which axis is the batch's."""

from __future__ import annotations

import math
from collections.abc import Sequence

from topos_core.matching.attempt import Attempt
from topos_core.matching.binding import Found
from topos_core.matching.core import Keys
from topos_core.matching.facts import NormFacts
from topos_core.matching.func import DEPTH, Func, composed, digits_of, is_cast, reduces, uncast
from topos_core.matching.ideal import recorded
from topos_core.matching.rows import order_of
from topos_core.matching.solving import close

ROLES = {"n": "n", "c": "c"}


def norm_facts(found: Found, vectors: Sequence[str]) -> NormFacts | None:
    """Gives the facts of a norm with labels n and c; None where two vectors order the channels differently.

    Args:
        found: The match.
        vectors: Holes with one element per channel, the one that decides the order of channels first.
    """
    shown = [found.rows[hole] for hole in vectors if hole in found.rows]
    for values in found.named.values():
        shown += [rows for value in values if (rows := found.named_rows(value)) is not None]
    labels = found.attempt.labels
    channels = order_of(shown, labels["c"])
    if channels is None:
        return None
    order = {**channels, **{digit: len(channels) + k for k, digit in enumerate(labels["n"])}}
    dtype = found.keys.tape.ops[found.root].type.dtype
    return NormFacts(
        found.layout(found.rows["x"], ROLES, order),
        found.layout(found.root_rows, ROLES, order),
        found.count("c"),
        found.count("n"),
        recorded(found.constant("epsilon"), dtype),
    )


def reduces_first_axis(found: Found, label: str = "n") -> bool:
    """Says whether the statistics of x run over its batch axis: axis 0 of x as it is bound or moved to where it is read.

    A batch of one counts where the recorded reduction names it: without that, the axis behind it is no batch either.
    """
    keys, ops = found.keys, found.keys.tape.ops
    inside = found.interior | {found.root} | {v for values in found.named.values() for v in values}
    read = {operand for value in inside if not keys.is_movement(value) for operand in ops[value].operands}
    moved = [value for value in found.moved["x"] if value == found.bindings["x"] or value in read]
    alone = any(len(shape := ops[value].type.shape) > 2 and shape[0] == 1 for value in moved)
    for value in () if alone else moved:
        rows = found.rows_of(value, "x")
        if rows and rows[0] and all(found.label_of(part.digit) == label for part in rows[0]):
            return True
    for value in sorted(found.interior | {v for values in found.named.values() for v in values}):
        op = ops[value]
        if op.name == "sum" and 0 in op.attributes["axes"]:
            shape = ops[op.operands[0]].type.shape
            if len(shape) > 1 and shape[0] == 1:
                return True
    return False


def sums_first_axis(keys: Keys, attempt: Attempt) -> bool:
    """Says of a failed try whether some sum in it runs over axis 0: else it was never meant as a norm over a batch."""
    top = attempt.top
    known = keys.over_first.get(top.number)
    if known is None:
        known = keys.over_first[top.number] = _sums_first_axis(keys, top)
    return known


def _sums_first_axis(keys: Keys, top: Func) -> bool:
    ops, seen, level = keys.tape.ops, {top}, [top]
    for left in range(DEPTH, -1, -1):
        following: list[Func] = []
        for func in level:
            op = ops[func.maker] if func.kind == "reduce" and func.maker >= 0 else None
            if op is not None and op.name == "sum" and 0 in op.attributes["axes"]:
                return True
            for kid, _, _ in func.kids:
                if left and kid not in seen and reduces(kid, left - 1):
                    seen.add(kid)
                    following.append(kid)
        level = following
    return False


def is_centred(found: Found) -> bool:
    """Says whether the x of a match is some value minus its own mean over the axes that the match reduces."""
    func, map_ = found.attempt.bound["x"]
    if func.kind != "sum" or len(func.kids) != 2:
        return False
    for mean, value in (func.kids, func.kids[::-1]):
        inner, factor = mean.func, mean.weight
        while is_cast(inner.kind, inner.name):  # a mean that was rounded is one too
            inner, factor = inner.kids[0].func, factor * inner.kids[0].weight
        if (
            inner.kind != "reduce"
            or inner.name != "sum"
            or len(inner.kids) != 1
            or uncast(inner.kids[0].func) is not value.func
        ):
            continue
        ratio = factor / value.weight
        if not isinstance(ratio, float) or not close(ratio * math.prod(inner.reduced), -1.0, 1e-6):
            continue
        kept = len(inner.shape)
        gone = [k for k, one in enumerate(inner.kids[0].map) if any(digit >= kept for digit in digits_of((one,)))]
        over = composed(tuple(value.map[k] for k in gone), map_)
        return {found.label_of(found.attempt.root_of(digit)) for digit in digits_of(over)} == {"n"}
    return False
