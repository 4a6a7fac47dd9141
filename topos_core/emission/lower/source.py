"""Sources; inputs and parameters are the function's arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from topos_core.emission.builder import Builder, Ssa
from topos_core.emission.lower.lowering import Lower
from topos_core.tape.op import Op


def _constant(builder: Builder, op: Op, operands: Sequence[Ssa]) -> Ssa:
    return builder.constant(op.attributes["value"], op.type)


def _iota(builder: Builder, op: Op, operands: Sequence[Ssa]) -> Ssa:
    return builder.iota(op.type, op.attributes["axis"])


LOWERINGS: Final[Mapping[str, Lower]] = {"constant": _constant, "iota": _iota}
