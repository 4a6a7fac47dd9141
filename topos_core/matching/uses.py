"""Value numbers, live values and how often each value is read.

A value that is read twice is a name in its author's head: sums and products are flattened only through values with one
use. Twins count once, dead ops are nobody's reader, and movement or a factor passes its use on: `K * x` is a use of x.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from topos_core.tape.leading import live
from topos_core.tape.op import Op
from topos_core.tape.signs import signs
from topos_core.tape.tape import Tape

COMMUTES: Final = frozenset(("add", "mul", "maximum", "minimum", "and", "or", "xor"))
ONE_OPERAND_MOVEMENT: Final = frozenset(
    ("reshape", "permute", "broadcast", "pad", "slice", "reverse", "unfold", "strided")
)
_PASSES: Final = frozenset(("neg", "gather", "mul", "div"))
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
        self.live = tape.once(live)
        self.number: list[int] = []
        self.source: list[int] = []
        self.splat: list[bool] = []
        self.constant: list[bool] = []
        known: dict[Any, int] = {}
        counts: list[int] = [0] * len(tape.ops)  # how often a value is read, at the value behind movement and factors
        roots: list[int] = []
        counted: set[int] = set()
        numbers, sources, splats, constants, alive = self.number, self.source, self.splat, self.constant, self.live
        at, told = numbers.__getitem__, tape.once(signs)
        for value, op in enumerate(tape.ops):
            name, operands, _, _, _ = op
            if name in _NEVER_TWINS:
                number = value
            elif name in COMMUTES:
                number = known.setdefault((told[value], *sorted(map(at, operands))), value)
            else:
                number = known.setdefault((told[value], *map(at, operands)), value)
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


def _is_splat(op: Op) -> bool:
    value = op.attributes["value"]
    return not (isinstance(value, np.ndarray) and value.ndim)
