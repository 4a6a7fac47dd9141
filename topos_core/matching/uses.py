"""Value numbers, live values and how often each value is read.

A value that is read twice is a name in its author's head: sums and products are flattened only through values with one
use. Twins count once, dead ops are nobody's reader, and movement or a factor passes its use on: `K * x` is a use of x.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final

import numpy as np

from topos_core.tape.op import Op
from topos_core.tape.tape import Tape

COMMUTES: Final = frozenset(("add", "mul", "maximum", "minimum", "and", "or", "xor"))
_ONE_OPERAND_MOVEMENT: Final = frozenset(
    ("reshape", "permute", "broadcast", "pad", "slice", "reverse", "unfold", "strided")
)
_NEVER_TWINS: Final = frozenset(("input", "parameter", "opaque"))


class Uses:
    """What one pass over a tape tells of every value.

    Attributes:
        live: Values that a result or an observation needs.
        number: Equal for values computed by equal ops from equally numbered values.
        source: The value behind movement and factors (itself where there is neither).
        count: How often the value behind it is read.
        splat: Values that hold one number everywhere.
        constant: Values that hold a table, a number or a count, moved in any way.
    """

    __slots__ = ("constant", "count", "live", "number", "source", "splat")

    def __init__(self, tape: Tape) -> None:
        self.live = live(tape)
        self.number: list[int] = []
        self.source: list[int] = []
        self.splat: list[bool] = []
        self.constant: list[bool] = []
        known: dict[Any, int] = {}
        read: dict[int, int] = {}
        counted: set[int] = set()
        roots: list[int] = []
        for value, op in enumerate(tape.ops):
            number = known.setdefault(self._key(value, op), value)
            self.number.append(number)
            through = self._through(op)
            moves = op.name in _ONE_OPERAND_MOVEMENT
            self.splat.append(_is_splat(op) or (moves and op.name != "pad" and self.splat[op.operands[0]]))
            self.constant.append(op.name in ("constant", "iota") or (moves and self.constant[op.operands[0]]))
            self.source.append(value if through is None else self.source[through])
            roots.append(number if through is None else roots[through])
            if through is None and number not in counted and value in self.live:
                counted.add(number)
                for operand in op.operands:
                    read[roots[operand]] = read.get(roots[operand], 0) + 1
        self.count = [read.get(root, 0) for root in roots]

    def _key(self, value: int, op: Op) -> Any:
        if op.name in _NEVER_TWINS:
            return value
        operands = [self.number[operand] for operand in op.operands]
        if op.name in COMMUTES:
            operands.sort()
        if op.name == "constant":
            return op.name, op.type, content(op.attributes["value"])
        if op.name == "pad":  # a fill of -0 equals one of 0, and is another number
            return op.name, tuple(operands), repr(op.attributes), op.type
        return op.name, tuple(operands), tuple(op.attributes.values()), op.type

    def _through(self, op: Op) -> int | None:
        """Gives the operand that an op only moves or scales."""
        if op.name in _ONE_OPERAND_MOVEMENT or op.name == "neg":
            return op.operands[0]
        if op.name == "gather":
            return op.operands[0] if self.constant[op.operands[1]] else None
        if op.name in ("mul", "div"):
            a, b = op.operands
            if self.splat[b] and not self.splat[a]:
                return a
            if op.name == "mul" and self.splat[a] and not self.splat[b]:
                return b
        return None


def live(tape: Tape) -> frozenset[int]:
    """Collects the values that a result or an observation needs."""
    needed = [*tape.results, *(observation.value for observation in tape.observations)]
    marked = bytearray(len(tape.ops))
    while needed:
        value = needed.pop()
        if not marked[value]:
            marked[value] = 1
            needed += tape.ops[value].operands
    return frozenset(value for value, mark in enumerate(marked) if mark)


def _is_splat(op: Op) -> bool:
    return op.name == "constant" and not (
        isinstance(op.attributes["value"], np.ndarray) and op.attributes["value"].ndim
    )


def content(value: Any) -> Any:
    """Gives what tells a constant from others of its type: its bits, or their digest."""
    array = np.asarray(value)
    data = array.tobytes()
    return (array.shape, data) if len(data) <= 64 else (array.shape, hashlib.blake2b(data, digest_size=16).digest())
