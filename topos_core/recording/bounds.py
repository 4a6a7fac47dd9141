"""Whether a recorded index can be negative: looked up on the tape through movement and simple arithmetic."""

from __future__ import annotations

from typing import Final

import numpy as np

from topos_core.recording.value import Value
from topos_core.tape.type import UNSIGNED

_THROUGH_FIRST: Final = (
    "reshape",
    "permute",
    "broadcast",
    "slice",
    "reverse",
    "unfold",
    "strided",
    "cast",
    "gather",
    "sum",
    "cumsum",
)
_THROUGH_ALL: Final = ("add", "mul", "concat", "minimum", "div", "and")
_STEPS: Final = 64


def is_never_negative(x: Value) -> bool:
    """Tells whether no element can be below 0; False where it cannot be known. Integer overflow is not considered."""
    recorder = x.recorder
    pending = [x.index]
    for _ in range(_STEPS):
        if not pending:
            return True
        index = pending.pop()
        op = recorder.ops[index]
        if op.type.dtype in UNSIGNED or op.type.dtype == "bool" or op.name in ("argmax", "iota"):
            continue
        if op.name == "input":
            if index not in recorder.ranges:
                return False
        elif op.name == "constant":
            if np.any(np.asarray(op.attributes["value"]) < 0):
                return False
        elif op.name in _THROUGH_FIRST:
            pending.append(op.operands[0])
        elif op.name in _THROUGH_ALL:
            pending.extend(op.operands)
        elif op.name == "select":
            pending.extend(op.operands[1:])
        elif op.name == "pad":
            if op.attributes["fill"] < 0:
                return False
            pending.append(op.operands[0])
        elif op.name in ("remainder", "maximum"):  # the divisor's sign; the larger one's
            pending.append(op.operands[1])
        else:
            return False
    return False
