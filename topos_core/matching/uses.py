"""Value numbers, live values and how often each value is read.

A value that is read twice is a name in its author's head: sums and products are flattened only through values with one
use. Twins count once, dead ops are nobody's reader, and movement or a factor passes its use on: `K * x` is a use of x.
"""

from __future__ import annotations

import hashlib
from itertools import compress
from typing import Any, Final

import numpy as np

from topos_core.tape.leading import leading
from topos_core.tape.op import Op
from topos_core.tape.tape import Tape

COMMUTES: Final = frozenset(("add", "mul", "maximum", "minimum", "and", "or", "xor"))
ONE_OPERAND_MOVEMENT: Final = frozenset(
    ("reshape", "permute", "broadcast", "pad", "slice", "reverse", "unfold", "strided")
)
_PASSES: Final = frozenset(("neg", "gather", "mul", "div"))
_NEVER_TWINS: Final = frozenset(("input", "parameter", "opaque"))
_TOLD_APART: Final = COMMUTES | {"constant", "pad"}
"""Ops that are told otherwise than by their operands in order and their attributes."""


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
        counts: list[int] = [0] * len(tape.ops)  # how often a value is read, at the value behind movement and factors
        roots: list[int] = []
        counted: set[int] = set()
        numbers, sources, splats, constants, alive = self.number, self.source, self.splat, self.constant, self.live
        at = numbers.__getitem__
        for value, op in enumerate(tape.ops):
            name, operands, attributes, kind, _ = op
            if name in _NEVER_TWINS:
                number = value
            elif name in _TOLD_APART:
                number = known.setdefault(self._key(op), value)
            else:
                told = tuple(attributes.values()) if attributes else ()
                number = known.setdefault((name, *map(at, operands), told, kind), value)
            numbers.append(number)
            if name in ONE_OPERAND_MOVEMENT:
                through: int | None = operands[0]
                splats.append(name != "pad" and splats[operands[0]])
                constants.append(constants[operands[0]])
            else:
                through = self._through(op) if name in _PASSES else None
                splats.append(name == "constant" and _is_splat(op))
                constants.append(name == "constant" or name == "iota")
            if through is not None:
                sources.append(sources[through])
                roots.append(roots[through])
                continue
            sources.append(value)
            roots.append(number)
            if number not in counted and value in alive:
                counted.add(number)
                for operand in operands:
                    counts[roots[operand]] += 1
        self.count = [counts[root] for root in roots]

    def _key(self, op: Op) -> Any:
        numbers, name = self.number, op.name
        if name == "constant":
            return name, op.type, content(op.attributes["value"])
        operands = [numbers[operand] for operand in op.operands]
        if name == "pad":  # a fill of -0 equals one of 0, and is another number
            return name, *operands, repr(op.attributes), op.type
        operands.sort()
        return name, *operands, tuple(op.attributes.values()), op.type

    def _through(self, op: Op) -> int | None:
        """Gives the operand that an op only scales, or picks from."""
        if op.name == "neg":
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
    marked = leading(tape, (*tape.results, *[observation.value for observation in tape.observations]))
    return frozenset(compress(range(len(marked)), marked))


def _is_splat(op: Op) -> bool:
    value = op.attributes["value"]
    return not (isinstance(value, np.ndarray) and value.ndim)


def content(value: Any) -> Any:
    """Gives what tells a constant from others of its type: its bits, or their digest."""
    if isinstance(value, np.generic):
        return (), value.tobytes()
    array = np.asarray(value)
    data = array.tobytes()
    return (array.shape, data) if len(data) <= 64 else (array.shape, hashlib.blake2b(data, digest_size=16).digest())
