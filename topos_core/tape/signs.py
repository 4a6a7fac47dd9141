"""What tells an op apart besides its operands, as one number: its name, its attributes bit for bit, its type and how much it reads."""

from __future__ import annotations

import hashlib
from typing import Any, Final

import numpy as np

from topos_core.tape.op import Op
from topos_core.tape.tape import Tape


def signs(tape: Tape) -> list[int]:
    """Gives every op a number, equal for ops that differ in their operands alone. Linear."""
    known: dict[Any, int] = {}
    out: list[int] = []
    for value, op in enumerate(tape.ops):
        name, operands, attributes, type_, _ = op
        told = (tuple(attributes.values()) if name not in _TOLD_APART else _told(op)) if attributes else None
        out.append(known.setdefault((name, type_, len(operands), told), value))
    return out


_TOLD_APART: Final = frozenset(("constant", "pad", "opaque"))
"""Told otherwise than by their attributes' values: a fill of -0.0 is none of 0.0, and a foreign op may hold anything."""


def _told(op: Op) -> Any:
    return content(op.attributes["value"]) if op.name == "constant" else repr(sorted(op.attributes.items()))


def content(value: Any) -> Any:
    """Gives what tells a constant from others of its type: its bits, or their digest."""
    if isinstance(value, np.generic):
        return (), value.tobytes()
    array = np.asarray(value)
    data = array.tobytes()
    return (array.shape, data) if len(data) <= 64 else (array.shape, hashlib.blake2b(data, digest_size=16).digest())
