"""How a program's limits make errors grow: a value that is limited keeps the error of what it was.

The error of a kernel is relative to the largest magnitude of what it computes. `relu6` of values up to 180 gives 6, and where it
does not limit them, their error stays 30 times as large relative to that. So an error relative to `x` is, relative to `op(x)`,
larger by max |x| / max |op(x)| for ops that limit or choose, and by max |x| for `exp`, as in a sigmoid.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from topos_core.tape.tape import Tape
from topos_core.tape.type import FLOATS

LIMITING: Final = ("maximum", "minimum", "select", "tanh", "erf")
COUNTED: Final = 17.0
"""Powers whose exponent is further below the largest one are lost beside it: exp(-17) is half an ulp of f32."""


def growths(tape: Tape, values: Sequence[np.ndarray | None], result: int) -> dict[int, float]:
    """Gives, for each value that a result depends on, by how much an error grows on its way to it, at least 1.

    Args:
        tape: The program.
        values: Of every op, as the interpreter gives them; None where it gives none.
        result: The value that is judged.
    """
    found = {result: 1.0}
    for value in range(result, -1, -1):
        if value not in found:
            continue
        op = tape.ops[value]
        for operand in op.operands:
            grown = found[value] * _growth(tape, values, op.name, operand, value)
            found[operand] = max(found.get(operand, 1.0), grown)
    return found


def largest(found: dict[int, float], computing: Iterable[int]) -> float:
    """Gives the largest growth of what a region computes."""
    return max((found.get(value, 1.0) for value in computing), default=1.0)


def _growth(tape: Tape, values: Sequence[np.ndarray | None], name: str, operand: int, value: int) -> float:
    before, after = values[operand], values[value]
    if before is None or after is None or tape.ops[operand].type.dtype not in FLOATS:
        return 1.0
    if name == "exp":
        known = before[np.isfinite(before)]
        return max(1.0, _magnitude(known[known >= known.max(initial=-np.inf) - COUNTED]))
    limited = _magnitude(after) if name in LIMITING else 0.0
    return max(1.0, _magnitude(before) / limited) if limited else 1.0


def _magnitude(values: np.ndarray) -> float:
    return float(np.abs(values[np.isfinite(values)]).max(initial=0.0))
