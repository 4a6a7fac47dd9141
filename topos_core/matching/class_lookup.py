"""One element of every row, looked up by a class number, and what a loss makes of them: signs, factors, a sum over all.

NumPy's `x[np.arange(rows), target]` and `take_along_axis` record a gather of the flattened rows at `row * columns + target`.
A number outside of its row would read another row, so only targets that are known to lie inside are read.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from topos_core.recording.bounds import Reading
from topos_core.tape.op import Op

if TYPE_CHECKING:
    from topos_core.matching.context import Context

LONGEST: Final = 12
"""Ops behind a lookup that are followed."""


class Lookup(NamedTuple):
    """A value made of one element per row.

    Args:
        base: The value whose rows are read.
        target: The class numbers, one per row in row-major order.
        factor: What every element is multiplied by.
        summed: Whether they are added up.
        logged: Whether the logarithm is taken of what is looked up.
        between: The values between base, target and this one.
    """

    base: int
    target: int
    factor: float
    summed: bool
    logged: bool
    between: frozenset[int]


def lookups(context: Context) -> dict[int, Lookup]:
    """Gives every value that is made of one element per row by a logarithm, signs, factors, reshapes and a sum over all rows."""
    found: dict[int, Lookup] = {}
    for value in context.made_by(("gather",)):
        if context.is_live(value):
            first = _read(context, context.op(value))
            if first is not None:
                found[value] = first
                found.update(_behind(context, value, first))
    return found


def _read(context: Context, op: Op) -> Lookup | None:
    """Reads a gather of flattened rows."""
    flat, index = op.operands
    between: set[int] = set()
    index = _unmoved(context, index, between)
    rows = context.op(index)
    base = _unmoved(context, flat, between)
    shape = context.op(base).type.shape
    if rows.name != "add" or len(context.op(flat).type.shape) != 1 or len(shape) < 2:
        return None
    count = rows.type.size
    columns = context.op(flat).type.size // count if count else 0
    if count == 0 or columns * count != context.op(flat).type.size or op.type.size != count:
        return None
    between.add(index)
    for table, target in (rows.operands, reversed(rows.operands)):
        known = context.op(table).attributes.get("value") if context.op(table).name == "constant" else None
        if not isinstance(known, np.ndarray) or not (known.reshape(-1) == np.arange(count) * columns).all():
            continue
        through = {table}
        target = _unmoved(context, target, through)
        if context.op(target).type.size == count and is_below(context, target, columns):
            return Lookup(base, target, 1.0, False, False, frozenset(between | through))
    return None


def _unmoved(context: Context, value: int, through: set[int]) -> int:
    """Gives the value whose elements one has in the same row-major order; what lies between is added to `through`."""
    while True:
        below, order = value, list(range(len(context.op(value).type.shape)))
        passed = set()
        while context.op(below).name == "permute":
            passed.add(below)
            order = [context.op(below).attributes["order"][axis] for axis in order]
            (below,) = context.op(below).operands
            if _keeps_order(context, below, order):
                break
        if not passed and context.op(value).name == "reshape":
            passed.add(value)
            (below,) = context.op(value).operands
        elif not passed or not _keeps_order(context, below, order):
            return value
        through |= passed
        value = below


def _keeps_order(context: Context, value: int, order: list[int]) -> bool:
    """Says whether permuting a value's axes leaves its elements in row-major order: axes of extent 1 may go anywhere."""
    shape = context.op(value).type.shape
    long = [axis for axis in order if shape[axis] != 1]
    return long == sorted(long)


def is_below(context: Context, value: int, columns: int) -> bool:
    """Says whether integers are known to lie in `[0, columns)`."""
    low, high = Reading(context.tape.ops, context.tape.ranges, wraps=True).bounds(value)
    return low >= 0 and high <= columns - 1


def is_count(op: Op, count: int) -> bool:
    """Says whether an op gives 0, 1, ... up to a count."""
    if op.name == "iota":
        return True
    table = op.attributes["value"] if op.name == "constant" else None
    return isinstance(table, np.ndarray) and table.size == count and bool((table.reshape(-1) == np.arange(count)).all())


def _behind(context: Context, value: int, known: Lookup) -> Iterator[tuple[int, Lookup]]:
    """Follows whatever reads a lookup: who reads a value on the way too is told of when the match is decided."""
    todo = deque([(value, known)])
    followed = 0
    while todo:
        value, known = todo.popleft()
        for reader in dict.fromkeys(context.readers[value]):
            is_log = context.op(reader).name == "log" and known.factor == 1 and not known.summed and not known.logged
            factor = 1.0 if is_log else _factor(context, context.op(reader), value)
            if factor is None:
                continue
            followed += 1
            if followed > LONGEST:
                return
            op = context.op(reader)
            operands = {operand for operand in op.operands if operand != value}
            summed = known.summed or (op.name == "sum" and context.op(value).type.size > 1)
            more = known._replace(
                factor=known.factor * factor, summed=summed, logged=known.logged or is_log,
                between=known.between | {value} | operands,
            )  # fmt: skip
            todo.append((reader, more))
            yield reader, more


def _factor(context: Context, op: Op, value: int) -> float | None:
    """Gives what an op multiplies by; 1 where it only moves or adds up; None where it does something else."""
    match op.name:
        case "neg":
            return -1.0
        case "reshape":
            return 1.0
        case "permute":
            return 1.0 if _keeps_order(context, value, list(op.attributes["order"])) else None
        case "sum":
            return 1.0 if op.type.size == 1 else None
        case "mul" | "div":
            other = op.operands[1] if op.operands[0] == value else op.operands[0]
            number = context.op(context.view(other).base)
            if number.name != "constant" or np.ndim(number.attributes["value"]):
                return None
            scale = float(number.attributes["value"])
            if op.name == "mul":
                return scale
            return 1 / scale if op.operands[0] == value and scale else None
    return None
