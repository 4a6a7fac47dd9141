"""Between which numbers a recorded index lies: looked up on the tape through movement and simple arithmetic."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from topos_core.recording.value import Value
from topos_core.tape.op import Op
from topos_core.tape.type import numpy_dtype

_THROUGH_FIRST: Final = frozenset(
    ("reshape", "permute", "broadcast", "slice", "reverse", "unfold", "strided", "gather")
)
_MAY_WRAP: Final = frozenset(("add", "mul", "sum", "cumsum", "cast"))
_DEEPEST: Final = 64


class Bounds(NamedTuple):
    """The least and the greatest value; infinite where none is known."""

    low: float
    high: float


ANYTHING: Final = Bounds(-math.inf, math.inf)
NEVER_NEGATIVE: Final = Bounds(0, math.inf)


def is_never_negative(x: Value) -> bool:
    """Tells whether no element can be below 0; False where it cannot be known."""
    return bounds_of(x).low >= 0


def bounds_of(x: Value) -> Bounds:
    """Gives between which numbers all elements lie. Overflow of integers is not considered."""
    return Reading(x.recorder.ops, x.recorder.ranges).bounds(x.index)


class Reading:
    """What a program says of the numbers in its values.

    Args:
        ops: The program's.
        ranges: Of integer inputs, the least number and the one past the greatest.
        wraps: Whether integers may overflow, so that nothing is known of a sum or product that does not fit its dtype.
    """

    def __init__(self, ops: Sequence[Op], ranges: Mapping[int, tuple[int, int]], *, wraps: bool = False) -> None:
        self._ops, self._ranges, self._wraps = ops, ranges, wraps
        self._known: dict[int, Bounds] = {}

    def bounds(self, index: int, depth: int = 0) -> Bounds:
        """Gives between which numbers all elements of a value lie."""
        if index not in self._known:
            self._known[index] = ANYTHING if depth > _DEEPEST else self._read(index, depth + 1)
        return self._known[index]

    def _read(self, index: int, depth: int) -> Bounds:
        ops = self._ops
        op = ops[index]

        def of(operand: int) -> Bounds:
            return self.bounds(op.operands[operand], depth)

        if op.name in _THROUGH_FIRST:
            return of(0)
        match op.name:
            case "input":
                declared = self._ranges.get(index)
                found = ANYTHING if declared is None else Bounds(declared[0], declared[1] - 1)
            case "constant":
                found = _of_numbers(op)
            case "iota":
                found = Bounds(0, max(op.type.shape[op.attributes["axis"]] - 1, 0))
            case "argmax":
                found = Bounds(0, max(ops[op.operands[0]].type.shape[op.attributes["axis"]] - 1, 0))
            case "within":
                found = _both(of(0), Bounds(op.attributes["low"], op.attributes["high"] - 1))
            case "select":
                extent = _from_end(ops, op)
                found = _either((of(1), of(2))) if extent is None else _counted(of(2), extent)
            case "concat":
                found = _either([of(operand) for operand in range(len(op.operands))])
            case "pad":
                fill = float(op.attributes["fill"])
                found = _either((of(0), Bounds(fill, fill)))
            case "cast":
                found = _cast(of(0), op)
            case "minimum" | "maximum":
                pick = min if op.name == "minimum" else max
                (low, high), (least, most) = of(0), of(1)
                found = Bounds(pick(low, least), pick(high, most))
            case "remainder":  # has the divisor's sign
                divisor = of(1)
                found = (
                    Bounds(0, divisor.high - 1) if divisor.low > 0 else NEVER_NEGATIVE if divisor.low >= 0 else ANYTHING
                )
            case "add":
                (low, high), (least, most) = of(0), of(1)
                found = Bounds(low + least, high + most)
            case "mul" if min(of(0).low, of(1).low) >= 0:
                (low, high), (least, most) = of(0), of(1)
                found = Bounds(low * least, high * most if max(high, most) < math.inf else math.inf)
            case "div" | "and" if min(of(0).low, of(1).low) >= 0:
                found = NEVER_NEGATIVE
            case "sum" | "cumsum" if of(0).low >= 0:
                found = NEVER_NEGATIVE
            case _:
                found = ANYTHING
        held = _of_dtype(op.type.dtype)
        if self._wraps and op.name in _MAY_WRAP and not held.low <= found.low <= found.high <= held.high:
            return held
        return _both(found, held)


def _of_dtype(name: str) -> Bounds:
    dtype = numpy_dtype(name)
    if dtype.kind == "b":
        return Bounds(0, 1)
    return Bounds(float(np.iinfo(dtype).min), float(np.iinfo(dtype).max)) if dtype.kind in "iu" else ANYTHING


def _from_end(ops: Sequence[Op], op: Op) -> int | None:
    """Gives the extent where a select counts what is below 0 from the end: `where(x < 0, x + extent, x)`."""
    condition, moved, _ = (ops[operand] for operand in op.operands)
    if (condition.name, moved.name) != ("compare", "add") or condition.attributes["kind"] != "lt":
        return None
    zero, extent = (ops[each.operands[1]].attributes.get("value") for each in (condition, moved))
    same = condition.operands[0] == moved.operands[0] == op.operands[2]
    if not same or not isinstance(zero, np.generic) or not isinstance(extent, np.integer) or zero != 0:
        return None
    return int(extent)


def _counted(bounds: Bounds, extent: int) -> Bounds:
    """Gives where indices lie after those below 0 were counted from the end."""
    below = Bounds(bounds.low + extent, min(bounds.high, -1) + extent)
    above = Bounds(max(bounds.low, 0), bounds.high)
    return _either([part for part in (below, above) if part.low <= part.high])


def _of_numbers(op: Op) -> Bounds:
    numbers = np.asarray(op.attributes["value"])
    if not numbers.size:
        return Bounds(0, 0)
    low, high = float(numbers.min()), float(numbers.max())
    return Bounds(low, high) if low <= high else ANYTHING


def _cast(bounds: Bounds, op: Op) -> Bounds:
    """Integers keep their values where the dtype holds all of them; fractions are cut off towards 0."""
    if numpy_dtype(op.type.dtype).kind not in "iu":
        return bounds
    held = _of_dtype(op.type.dtype)
    if bounds.low < held.low or bounds.high > held.high:
        return NEVER_NEGATIVE if bounds.low >= 0 else ANYTHING
    return Bounds(math.trunc(bounds.low), math.trunc(bounds.high))


def _either(parts: Sequence[Bounds]) -> Bounds:
    return Bounds(min(part.low for part in parts), max(part.high for part in parts))


def _both(one: Bounds, other: Bounds) -> Bounds:
    return Bounds(max(one.low, other.low), min(one.high, other.high))
